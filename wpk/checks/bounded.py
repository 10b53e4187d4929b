"""What a node's error bound is computed from: values with bounds, one node's call, rounding."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.dtypes import DType, is_float, is_fp8

Floats = NDArray[np.float64]

U = DType.FP32.unit_roundoff
"""Unit roundoff of a kernel's accumulation and element-wise arithmetic."""


@dataclass(frozen=True)
class Arithmetic:
    """What sums and element-wise work are computed in.

    Attributes:
        roundoff: Its unit roundoff.
        smallest: Its smallest positive number: what is less may become zero.
        narrows: Whether a Cast to a 16-bit type rounds.
        other_forms: Whether a function may be computed in another form, whose roundings a limit
            does not cut off: ``relu(a x + b)`` as ``a (max(x, -b / a) + b / a)``.
    """

    roundoff: float
    smallest: float
    narrows: bool
    other_forms: bool = False


KERNELS = Arithmetic(U, 2.0**-149, narrows=True)
"""fp32, as kernels compute all that has no fp64."""

DOUBLE = Arithmetic(2.0 * DType.FP64.unit_roundoff, 2.0**-1074, narrows=True)
"""fp64, as kernels compute what has it: the reference rounds as often, and stands for itself too."""

FLOAT64 = Arithmetic(2.0**-53, 2.0**-1074, narrows=False)
"""The arithmetic of the reference: nothing is narrower than float64."""


@dataclass(frozen=True)
class Ball:
    """A value and the radius around it that holds what a kernel may give, as in ball arithmetic.

    The value is float64 where it is floating point; the error is None where it is exact. A boolean
    with an error of 1 may be either, an integer is at most its error away.
    """

    value: Array
    error: Floats | None = None


@dataclass(frozen=True)
class Call:
    """One output of a node about to be bounded.

    Attributes:
        evaluate: The node.
        inputs: Its inputs; None where an optional one is missing.
        outputs: Its float64 outputs.
        multiply_roundoff: u_mul.
        arithmetic: The arithmetic in which it is computed.
        place: The place of the output among the outputs.
    """

    evaluate: NodeEvaluator
    inputs: Sequence[Ball | None]
    outputs: Sequence[Array]
    multiply_roundoff: float
    arithmetic: Arithmetic = KERNELS
    place: int = 0

    @property
    def roundoff(self) -> float:
        """u: of sums and element-wise work."""
        return self.arithmetic.roundoff

    @property
    def node(self) -> onnx.NodeProto:
        """The node."""
        return self.evaluate.node

    @property
    def x(self) -> Array:
        """The first input's value."""
        return self.value(0)

    @property
    def y(self) -> Array:
        """The output's value."""
        return self.outputs[self.place]

    def value(self, index: int) -> Array:
        """Return an input's value."""
        given = self.inputs[index]
        if given is None:
            raise ValueError(f"{self.node.op_type} without input {index}")
        return given.value

    def errs(self, index: int) -> bool:
        """Tell whether an input is given and is not exact."""
        given = self.inputs[index] if index < len(self.inputs) else None
        return given is not None and given.error is not None

    def error(self, index: int) -> Floats:
        """Return an input's error; zeros where it is exact."""
        given = self.inputs[index] if index < len(self.inputs) else None
        if given is None:
            return np.zeros(())
        return np.zeros(given.value.shape) if given.error is None else given.error

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute's value."""
        return attribute_of(self.node, name, default)

    def again(self, changed: Mapping[int, Array]) -> Floats:
        """Return the output for other inputs."""
        arrays = [None if given is None else given.value for given in self.inputs]
        for index, array in changed.items():
            arrays[index] = array
        return np.asarray(self.evaluate(arrays)[self.place], np.float64)

    def end(self, index: int, side: int) -> Array:
        """An input at one end of what it may be (-1: the lower, 1: the upper); of its own type."""
        value: Any = self.value(index)
        error = self.error(index)
        if is_float(value.dtype):
            end: Array = value + side * error
            return end
        wrong = np.broadcast_to(error, value.shape) > 0
        if value.dtype.kind == "b":
            end = value | wrong if side == 1 else value & ~wrong
        elif is_fp8(value.dtype):
            ends = np.clip(value.astype(np.float64) + side * error, *_ends(value.dtype))
            end = np.where(wrong, ends.astype(value.dtype), value)
        else:
            ends = np.clip(value + side * error, *integer_limits(value.dtype))
            end = np.where(wrong, ends.astype(value.dtype), value)
        return end

    def moved(self, indices: Iterable[int]) -> Floats:
        """Return how far errors of some inputs can move the output; each is tried in both directions."""
        y = np.asarray(self.y, np.float64)
        total = np.zeros(y.shape)
        for index in indices:
            change = _distance(self.again({index: self.end(index, 1)}), y)
            np.maximum(change, _distance(self.again({index: self.end(index, -1)}), y), out=change)
            change[np.isnan(change)] = 0.0
            total += change
        return total


def attribute_of(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """Return a node's attribute's value."""
    values = (onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return next(values, default)


def _distance(fresh: Floats, y: Floats) -> Floats:
    """|fresh - y|, in the memory of the first."""
    fresh -= y
    return np.abs(fresh, out=fresh)


def _ends(dtype: np.dtype[np.generic]) -> tuple[float, float]:
    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return -largest, largest


def integer_limits(dtype: np.dtype[np.generic]) -> tuple[float, float]:
    """Return the least and the largest number of an integer type that float64 has, too."""
    limits: Any = np.iinfo(dtype.name)
    largest = float(limits.max)
    fits = int(largest) <= limits.max
    return float(limits.min), largest if fits else float(np.nextafter(largest, -np.inf))


def float_type(dtype: np.dtype[np.generic]) -> DType | None:
    """The floating point type that a NumPy dtype is; None where it is another, or float64."""
    floats = (each for each in DType if each.is_float and each is not DType.FP64)
    return next((each for each in floats if each.numpy == dtype), None)


def rounding(value: Array, dtype: DType) -> Floats:
    """Return the error of rounding to a type in memory."""
    if not dtype.is_float:
        return np.zeros(value.shape)
    return dtype.unit_roundoff * np.abs(np.asarray(value, np.float64)) + _SUBNORMAL[dtype]


# Half the distance between the smallest numbers: what rounding near zero can cost.
_SUBNORMAL = {
    DType.FP64: 2.0**-1074,
    DType.FP32: 2.0**-150,
    DType.FP16: 2.0**-25,
    DType.BF16: 2.0**-134,
}
