"""The precision that was really used, in sentences: from the machine code, not from the request."""

from collections.abc import Sequence

from wpk.dtypes import Precision
from wpk.report.facts import PrecisionFacts

_MOST_NAMES = 6


def precision_sentences(precision: PrecisionFacts) -> list[str]:
    """What was asked for, what the memory holds, and which cores multiply."""
    values = ", ".join(f"{count} {name}" for name, count in precision.values.items())
    sentences = [f"Asked for {precision.asked}. Activations in memory: {values}."]
    matrix = len(precision.on_tensor_cores) + len(precision.on_ordinary_cores)
    matrix += len(precision.by_library)
    if matrix == 0:
        return [*sentences, "The model has no convolution and no matrix product."]
    kinds = ", ".join(precision.instructions)
    if precision.on_tensor_cores:
        sentences.append(
            f"{len(precision.on_tensor_cores)} of {matrix} convolutions and matrix products run on "
            f"the tensor cores ({kinds}); the instructions were counted in the machine code."
        )
        if precision.asked == Precision.FP32.value:
            sentences.append(
                "There each product of fp32 is three of tf32, of operands split in two: errors are of "
                "fp32's size."
            )
    if precision.on_ordinary_cores:
        depthwise = f", {precision.depthwise} of them depthwise" if precision.depthwise else ""
        sentences.append(
            f"{len(precision.on_ordinary_cores)} of {matrix} run on the ordinary cores{depthwise}: "
            f"{_names(precision.on_ordinary_cores)}."
        )
    if precision.by_library:
        sentences.append(
            f"{len(precision.by_library)} of {matrix} are computed by a library, which chooses the "
            f"cores within that precision: {_names(precision.by_library)}."
        )
    return sentences


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
