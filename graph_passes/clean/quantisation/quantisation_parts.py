"""Write the quantisation of tensors as the arithmetic that it is defined by.

    QuantizeLinear(x, s, z)    ->  Cast(Clip(Round(x / s) + z, least, largest))
    DequantizeLinear(q, s, z)  ->  (Cast(q) - z) * s
    QuantizeLinear(x, s, 0)    ->  Cast(x / s)                    to 8-bit floating point

with rounding to the nearest even number, in fp32, as ONNX Runtime computes. Scales and zero points are
one number, one for each index of an axis, or one for each block of it; constants among them are spread
over the axes once. A constant q becomes a constant, also of types that kernels do not read (4-bit
integers, 8-bit floating point of other forms): so do quantised weights.
"""

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import is_fp8
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import FLOAT8, element_type, given, rank, static_shape

_FP32 = np.dtype(np.float32)
_INTEGERS = tuple(np.dtype(each) for each in (np.int8, np.uint8, np.int16, np.uint16, np.int32))
_SCALE, _ZERO = 1, 2


class QuantisationParts(Rule[gs.Node]):
    """Replace QuantizeLinear and DequantizeLinear by element-wise operators."""

    name = "quantisation-parts"
    ops = ("QuantizeLinear", "DequantizeLinear")

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match what kernels can compute element by element."""
        del graph
        return refusal(node, _why_not(node)) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the arithmetic."""
        parts = _Parts(editor, match)
        made = parts.quantised() if match.op == "QuantizeLinear" else parts.restored()
        editor.replace(match.outputs[0], made)


def _why_not(node: gs.Node) -> str | None:
    stored, other = _stored_and_real(node)
    dtype = _type_of(stored)
    if not is_constant(stored) and dtype not in _INTEGERS and (dtype is None or not is_fp8(dtype)):
        return f"'{stored.name}' has a type that kernels do not quantise to"
    if _type_of(other) is None:
        return f"'{other.name}' has a type that NumPy lacks, or none that is known"
    if node.attrs.get("precision", 0) not in (0, onnx.TensorProto.FLOAT):
        return "it divides in another type than fp32"
    if rank(node.inputs[0]) is None:
        return f"the rank of '{node.inputs[0].name}' is not known"
    zero = given(node, _ZERO)
    if dtype is not None and is_fp8(dtype) and zero is not None and not _is_zero(zero):
        return f"'{zero.name}' is not known to be 0, as zero points of 8-bit floating point are"
    return next((why for why in map(_why_not_spread, *_parameters_of(node)) if why), None)


def _stored_and_real(node: gs.Node) -> tuple[gs.Tensor, gs.Tensor]:
    """The quantised tensor, and the other one."""
    given_, made = node.inputs[0], node.outputs[0]
    return (made, given_) if node.op == "QuantizeLinear" else (given_, made)


def _parameters_of(node: gs.Node) -> tuple[list[gs.Node], list[gs.Tensor]]:
    found = [t for index in (_SCALE, _ZERO) if (t := given(node, index)) is not None]
    return [node] * len(found), found


def _why_not_spread(node: gs.Node, parameter: gs.Tensor) -> str | None:
    shape = static_shape(parameter)
    if shape is None:
        return f"the shape of '{parameter.name}' is not known"
    if node.attrs.get("block_size", 0) and not is_constant(parameter):
        return f"'{parameter.name}', a number for each block, is computed"
    if node.attrs.get("block_size", 0) and static_shape(node.inputs[0]) is None:
        return f"'{node.inputs[0].name}' has blocks, and a shape that is not known"
    return None


def _is_zero(tensor: gs.Tensor) -> bool:
    return isinstance(tensor, gs.Constant) and not tensor.values.astype(np.float32).any()


def _type_of(tensor: gs.Tensor) -> "np.dtype[Any] | None":
    """The type, where NumPy has it, or kernels do."""
    dtype = element_type(tensor)
    if dtype in FLOAT8:
        return onnx.helper.tensor_dtype_to_np_dtype(dtype)
    return None if dtype is None or isinstance(dtype, int) else np.dtype(dtype)


class _Parts(NodeParts):
    """The nodes that one quantisation becomes."""

    def quantised(self) -> gs.Tensor:
        """Divide, round, move to the zero point, limit and store."""
        x, made = self.node.inputs[0], self.node.outputs[0]
        dtype = _type_of(made)
        assert dtype is not None  # `_why_not`
        value = self._computed("Div", self.cast(x, _FP32), self._spread(_SCALE))
        if is_fp8(dtype):
            return self.cast(value, dtype, saturate=self.node.attrs.get("saturate", 1))
        value = self._computed("Round", value)
        if (zero := self._zero()) is not None:
            value = self._computed("Add", value, zero)
        limits = np.iinfo(dtype)
        value = self._computed("Clip", value, self._number(limits.min), self._number(limits.max))
        return self.cast(value, dtype)

    def restored(self) -> gs.Tensor:
        """Multiply the distance from the zero point by the scale."""
        q, made = self.node.inputs[0], self.node.outputs[0]
        if isinstance(q, gs.Constant):
            return self._restored_constant(q)
        value = self.cast(q, _FP32)
        if (zero := self._zero()) is not None:
            value = self._computed("Sub", value, zero)
        value = self._computed("Mul", value, self._spread(_SCALE))
        dtype = _type_of(made)
        return value if dtype is None else self.cast(value, dtype)

    def _restored_constant(self, q: gs.Constant) -> gs.Tensor:
        scale, zero = self._spread(_SCALE), self._zero()
        if not isinstance(scale, gs.Constant) or not (zero is None or is_constant(zero)):
            held = self.editor.constant(f"{q.name}_fp32", q.values.astype(np.float32))
            value = held if zero is None else self._computed("Sub", held, zero)
            return self._computed("Mul", value, scale)
        distance = q.values.astype(np.float64)
        if zero is not None:
            distance -= zero.values
        name, dtype = f"{q.name}_restored", _type_of(self.node.outputs[0])
        return self.editor.constant(name, distance * scale.values.astype(np.float64), dtype)

    def _zero(self) -> gs.Tensor | None:
        """The zero point; None where it is 0 everywhere."""
        zero = given(self.node, _ZERO)
        if zero is None or _is_zero(zero):
            return None
        return self._spread(_ZERO)

    def _spread(self, index: int) -> gs.Tensor:
        """A scale or zero point in fp32, in a shape that meets the tensor's."""
        parameter = given(self.node, index)
        assert parameter is not None
        shape = self._shape_of(parameter)
        if isinstance(parameter, gs.Constant):
            array = _blocks(parameter.values.astype(np.float32), self.node)
            return self.editor.constant(
                f"{parameter.name}_spread", array if shape is None else array.reshape(shape)
            )
        number = self.cast(parameter, _FP32)
        if shape is None or shape == list(parameter.shape):
            return number
        return self.reshaped(number, list(shape))

    def _shape_of(self, parameter: gs.Tensor) -> list[int] | None:
        """Ones around the axis; None where there are blocks, whose shape is the tensor's."""
        if self.node.attrs.get("block_size", 0):
            return None
        count, axes = int(np.prod(parameter.shape)), rank(self.node.inputs[0]) or 0
        if count == 1 or axes == 0:
            return [] if axes == 0 or not parameter.shape else [1]
        shape = [1] * axes
        shape[self.node.attrs.get("axis", 1)] = count
        return shape

    def _number(self, value: float) -> gs.Constant:
        return self.editor.constant(f"{self.node.name}_limit", np.array(value, np.float32))

    def _computed(self, op: str, *inputs: gs.Tensor) -> gs.Variable:
        """Append a node in fp32, of the tensor's shape."""
        return self.add(op, *inputs, shape=list(self.node.inputs[0].shape), dtype=_FP32)


def _blocks(array: NDArray[np.float32], node: gs.Node) -> NDArray[np.float32]:
    """A number for each element, where there is one for each block of an axis."""
    size = node.attrs.get("block_size", 0)
    if not size:
        return array
    axis = node.attrs.get("axis", 1)
    extent = node.inputs[0].shape[axis]
    return np.take(np.repeat(array, size, axis), range(extent), axis)
