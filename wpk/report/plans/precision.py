"""The precision that was really used, in sentences: from the machine code, not from the request."""

from collections import Counter
from dataclasses import dataclass

from wpk.dtypes import DType, Precision
from wpk.plan import Plan, Step
from wpk.problems import Family
from wpk.report.plans.words import listed


@dataclass(frozen=True)
class PrecisionFacts:
    """The precision that was really used.

    Attributes:
        asked: What the user asked for.
        values: Number of activations by element type.
        instructions: Tensor-core instructions in all cubins by kind.
        on_tensor_cores: Matrix-like operators whose cubins hold tensor-core instructions.
        on_ordinary_cores: Matrix-like operators whose cubins hold none.
        depthwise: How many of those are depthwise, with one product for each channel and tap.
        by_library: Matrix-like operators that a library computes, with cores of its choice.
        of_bytes: How many matrix-like operators multiply integers of 8 bits.
        of_float8: How many multiply floating point of 8 bits.
        in_double: How many operators of any kind compute in fp64.
    """

    asked: str
    values: dict[str, int]
    instructions: dict[str, int]
    on_tensor_cores: tuple[str, ...]
    on_ordinary_cores: tuple[str, ...]
    depthwise: int
    by_library: tuple[str, ...]
    of_bytes: int
    of_float8: int
    in_double: int


def precision_of(plan: Plan) -> PrecisionFacts:
    """Return what a plan's values and machine code use."""
    matrix = [each for each in plan.steps if each.operator.problem.matrix_precision is not None]
    precisions = [p for s in matrix if (p := s.operator.problem.matrix_precision) is not None]
    own = [each for each in matrix if each.launches]
    ordinary = [each for each in own if not _uses_tensor_cores(plan, each)]
    types = [value.dtype for value in plan.values.values()]
    instructions: Counter[str] = Counter()
    for name in sorted({launch.kernel for step in plan.steps for launch in step.launches}):
        instructions.update(plan.kernels[name].tensor_core_instructions)
    return PrecisionFacts(
        asked=plan.precision.value,
        values={each.value: types.count(each) for each in DType if each in types},
        instructions=dict(instructions),
        on_tensor_cores=tuple(s.operator.name for s in own if _uses_tensor_cores(plan, s)),
        on_ordinary_cores=tuple(each.operator.name for each in ordinary),
        depthwise=sum(each.operator.problem.family is Family.DEPTHWISE for each in ordinary),
        by_library=tuple(each.operator.name for each in matrix if not each.launches),
        of_bytes=sum(each is Precision.INT8 for each in precisions),
        of_float8=sum(each.is_fp8 for each in precisions),
        in_double=sum(s.operator.problem.numbers is DType.FP64 for s in plan.steps),
    )


def _uses_tensor_cores(plan: Plan, step: Step) -> bool:
    return any(plan.kernels[each.kernel].tensor_core_instructions for each in step.launches)


def precision_sentences(precision: PrecisionFacts) -> list[str]:
    """Say what was asked for, what the memory holds, and which cores multiply."""
    values = ", ".join(f"{count} {name}" for name, count in precision.values.items())
    sentences = [f"Asked for {precision.asked}. Activations in memory: {values}."]
    if precision.in_double:
        sentences.append(
            f"{precision.in_double} operators compute in fp64, as the model has it, whatever was asked for."
        )
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
        if precision.asked == Precision.FP32.value and precision.of_bytes < matrix:
            sentences.append(
                "There each product of fp32 is three of tf32, of operands split in two: errors are of "
                "fp32's size."
            )
    if precision.of_bytes:
        sentences.append(
            f"{precision.of_bytes} of {matrix} multiply integers of 8 bits, as the model has them; their "
            "sums, in int32, are exact."
        )
    if precision.of_float8:
        sentences.append(
            f"{precision.of_float8} of {matrix} multiply floating point of 8 bits, as the model has it, unpacked "
            "to fp16 between shared memory and the tensor cores; sums are fp32."
        )
    if precision.on_ordinary_cores:
        depthwise = f", {precision.depthwise} of them depthwise" if precision.depthwise else ""
        sentences.append(
            f"{len(precision.on_ordinary_cores)} of {matrix} run on the ordinary cores{depthwise}: "
            f"{listed(precision.on_ordinary_cores)}."
        )
    if precision.by_library:
        sentences.append(
            f"{len(precision.by_library)} of {matrix} are computed by a library, which chooses the "
            f"cores within that precision: {listed(precision.by_library)}."
        )
    return sentences
