"""What a node's error bound is computed from: values with bounds, one node's call, rounding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.dtypes import DType

Floats = NDArray[np.float64]

U = DType.FP32.unit_roundoff
"""Unit roundoff of accumulation and of element-wise arithmetic."""


@dataclass(frozen=True)
class Bounded:
    """A float64 value with a bound of its error; None where it is exact."""

    value: Array
    error: Floats | None = None


@dataclass(frozen=True)
class Call:
    """One node about to be bounded.

    Attributes:
        evaluate: The node.
        inputs: Its inputs; None where an optional one is missing.
        outputs: Its float64 outputs.
        multiply_roundoff: u_mul.
    """

    evaluate: NodeEvaluator
    inputs: Sequence[Bounded | None]
    outputs: Sequence[Array]
    multiply_roundoff: float

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
        """The first output's value."""
        return self.outputs[0]

    def value(self, index: int) -> Array:
        """An input's value."""
        given = self.inputs[index]
        if given is None:
            raise ValueError(f"{self.node.op_type} without input {index}")
        return given.value

    def errs(self, index: int) -> bool:
        """Whether an input is there that is not exact."""
        given = self.inputs[index] if index < len(self.inputs) else None
        return given is not None and given.error is not None

    def error(self, index: int) -> Floats:
        """An input's error, zeros where it is exact."""
        given = self.inputs[index] if index < len(self.inputs) else None
        if given is None:
            return np.zeros(())
        return np.zeros(given.value.shape) if given.error is None else given.error

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute's value."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return onnx.helper.get_attribute_value(attribute)
        return default

    def again(self, changed: dict[int, Array]) -> Floats:
        """The first output for other inputs."""
        arrays = [None if given is None else given.value for given in self.inputs]
        for index, array in changed.items():
            arrays[index] = array
        return np.asarray(self.evaluate(arrays)[0], np.float64)


def rounding(value: Array, dtype: DType) -> Floats:
    """The error of rounding to a type in memory."""
    if not dtype.is_float:
        return np.zeros(value.shape)
    return dtype.unit_roundoff * np.abs(np.asarray(value, np.float64)) + _SUBNORMAL[dtype]


# Half the distance between the smallest numbers: what rounding near zero can cost.
_SUBNORMAL = {DType.FP32: 2.0**-150, DType.FP16: 2.0**-25, DType.BF16: 2.0**-134}
