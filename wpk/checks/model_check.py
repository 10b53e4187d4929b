"""Compare a whole engine with ONNX Runtime on the untouched model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from wpk.checks.float64_nodes import Array
from wpk.dtypes import Precision
from wpk.errors import EngineError, LaunchError
from wpk.plans.plan import Check


@dataclass(frozen=True)
class Limit:
    """Largest allowed error of an output element, relative to the RMS of the output."""

    median: float
    worst: float


LIMITS: dict[Precision, Limit] = {
    # Both sides compute in fp32 in different orders: sqrt(layers x terms) roundings of 6e-8.
    Precision.FP32: Limit(1e-5, 5e-5),
    # Operands have 11 bits: 5e-4 each, averaged over the terms of a product, grown over 50 to 100
    # layers; small outputs of a depthwise layer or of a normalised row make the worst element.
    Precision.TF32: Limit(5e-3, 4e-2),
    Precision.FP16: Limit(5e-3, 4e-2),
    # The same with 8 bits: 4e-3 each.
    Precision.BF16: Limit(3e-2, 2e-1),
}
"""What whole models may differ by. Operators alone are held to bounds derived for each element
(`wpk.checks.error_bounds`); these limits catch what only shows when they are put together."""

ROUNDING_FACTOR = 2.0
"""A model may amplify the rounding of its activations beyond the limits, whoever computes it. What the
float64 reference differs by, rounded where values lie in memory, is allowed so many times."""


@dataclass(frozen=True)
class OutputError:
    """Errors of one output, relative to its RMS."""

    median: float
    worst: float


def import_onnxruntime() -> ModuleType:
    """ONNX Runtime, which only checks need.

    Raises:
        EngineError: It is missing.
    """
    try:
        return import_module("onnxruntime")
    except ImportError as error:
        raise EngineError(
            f"verification needs onnxruntime, which cannot be imported: {error}",
            fix="pip install onnxruntime, or optimize with --check off",
        ) from error


class ModelReference:
    """ONNX Runtime on the model's own file."""

    def __init__(self, path: Path) -> None:
        """Load the model.

        Raises:
            EngineError: ONNX Runtime is missing, or cannot execute the model.
        """
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions share no base class
            raise EngineError(
                f"ONNX Runtime cannot load {path}: {str(error).splitlines()[0]}",
                fix="export the model with an opset that this onnxruntime knows, or update it",
            ) from error

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))


def output_error(actual: Array, expected: Array) -> OutputError:
    """Errors relative to the RMS of ``expected``; what is not finite must be the same."""
    if actual.shape != expected.shape or expected.size == 0:
        same = actual.shape == expected.shape
        return OutputError(0.0, 0.0) if same else OutputError(np.inf, np.inf)
    y, ref = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(ref)
    rms = float(np.sqrt(np.mean(ref[finite] ** 2))) if finite.any() else 0.0
    with np.errstate(all="ignore"):
        error = np.abs(y - ref)
        error = np.where(error == 0.0, 0.0, error / rms if rms > 0 else np.inf)
    same = (y == ref) | (np.isnan(y) & np.isnan(ref))
    error = np.where(finite & np.isfinite(y), error, np.where(same, 0.0, np.inf))
    return OutputError(float(np.median(error)), float(error.max()))


def check_outputs(
    run: Callable[[Mapping[str, Array]], Mapping[str, Array]],
    expected: Mapping[str, Array],
    inputs: Mapping[str, Array],
    precision: Precision,
    name: str,
    rounded: Mapping[str, OutputError] | None = None,
) -> Check:
    """Run an engine and compare all outputs.

    Args:
        run: The engine.
        expected: What is right.
        inputs: By name.
        precision: Decides the limits; integers and booleans must be equal.
        name: What the check is called.
        rounded: By how much each output differs where only the values in memory are rounded; None
            where that is not known.
    """
    try:
        actual = run(inputs)
    except LaunchError as failure:
        return Check(name, False, failure.what)
    errors, passed = [], True
    for output, right in expected.items():
        error = output_error(actual[output], right)
        exact = right.dtype.kind in "iub"
        own = None if rounded is None else rounded.get(output)
        limit = Limit(0.0, 0.0) if exact else allowed(precision, own)
        passed = passed and error.median <= limit.median and error.worst <= limit.worst
        errors.append(
            f"'{output}' median {error.median:.1e}, worst {error.worst:.1e} of its RMS, "
            f"allowed {limit.median:.0e} / {limit.worst:.0e}"
        )
    return Check(name, passed, "; ".join(errors))


def allowed(precision: Precision, rounded: OutputError | None) -> Limit:
    """The limit of an output, given what the rounding of values in memory alone does to it."""
    limit = LIMITS[precision]
    if rounded is None or not np.isfinite(rounded.worst):
        return limit
    return Limit(
        max(limit.median, ROUNDING_FACTOR * rounded.median),
        max(limit.worst, ROUNDING_FACTOR * rounded.worst),
    )
