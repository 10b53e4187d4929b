"""Multiply quantised tensors as the integers, or 8-bit floating point, that they are.

    Conv(DQ(q, s, z), DQ(w, t, u), b)  ->  Conv(Cast(q), w - u) * (s t) + (b - z s t Σ(w - u))

and so Gemm and MatMul, the latter also of two tensors that are computed, without zero points. The new
factors are bytes, so that a kernel reads them as they lie, adds products in int32, which is exact, and
does all else in its epilogue. s, z are one number each, t, u one for each output channel or one in all;
all are constants. Zeros that a convolution pads with stand for zero, which q stores as z: padding takes z = 0. Floating
point has no zero points, and both factors are of one type.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import MOST_BYTE_PRODUCTS, DType
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.byte_products import (
    are_multiplied,
    byte_numbers,
    byte_type,
    holds_factor,
    uniform_origin,
)
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import floats, given, made_by, pads, rank, uniform

Vector = NDArray[np.float64]
_FP32 = np.dtype(np.float32)


@dataclass(frozen=True)
class _Bytes:
    """A tensor of bytes that the graph dequantises, each with one scale and one zero point."""

    q: gs.Tensor
    dtype: DType
    scale: float
    zero: int


@dataclass(frozen=True)
class _Weights:
    """Constant bytes as distances from their zero points, and the scales of output channels (or one)."""

    name: str
    dtype: DType
    distance: NDArray[np.float32]
    scale: Vector


@dataclass(frozen=True)
class _Product:
    node: gs.Node
    x: _Bytes
    other: _Bytes | _Weights


class ByteProducts(Rule[_Product]):
    """Replace products of what bytes stand for by products of the bytes."""

    name = "byte-products"
    ops = ("Conv", "Gemm", "MatMul")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Product | Refusal | None:
        """Match a product of two DequantizeLinear."""
        del graph
        made = [made_by(tensor, "DequantizeLinear") for tensor in node.inputs[:2]]
        if made[0] is None or made[1] is None:
            return None
        x, is_constant = _bytes_of(made[0]), isinstance(made[1].inputs[0], gs.Constant)
        two_computed = node.op == "MatMul" and not is_constant
        other = _bytes_of(made[1]) if two_computed else _weights_of(node, made[1])
        reason = next((each for each in (x, other) if isinstance(each, str)), None)
        if isinstance(x, str) or isinstance(other, str):
            return refusal(node, reason)
        return refusal(node, _why_not(node, x, other)) or _Product(node, x, other)

    def rewrite(self, editor: GraphEditor, match: _Product) -> None:
        """Write the product, and behind it the scale and what is added."""
        _Parts(editor, match.node).write(match.x, match.other)


def _bytes_of(node: gs.Node) -> _Bytes | str:
    """What a DequantizeLinear restores, or why it is not that."""
    q, scale = node.inputs[0], uniform(node.inputs[1])
    origin, dtype = uniform_origin(node), byte_type(q)
    if isinstance(q, gs.Constant) or dtype is None:
        return f"'{q.name}' is no tensor of bytes that is computed"
    if scale is None or origin is None or node.attrs.get("block_size", 0):
        return f"'{q.name}' has a scale or a zero point for each index, or one that is computed"
    if node.outputs[0].dtype != _FP32:
        return f"'{node.outputs[0].name}' is not fp32"
    return _Bytes(q, dtype, scale, int(origin))


def _weights_of(product: gs.Node, node: gs.Node) -> _Weights | str:
    """The constant that a DequantizeLinear restores, or why it is not that."""
    q, scale, zero = node.inputs[0], floats(node.inputs[1]), given(node, 2)
    array, origin = byte_numbers(q), np.zeros(1, np.float32) if zero is None else byte_numbers(zero)
    dtype = byte_type(q)
    if array is None or scale is None or origin is None or dtype is None:
        return f"'{q.name}' is no constant of bytes with constant scales"
    axis = node.attrs.get("axis", 1) % max(array.ndim, 1)
    columns = _column_axis(product, array.ndim)
    if node.attrs.get("block_size", 0) or (scale.size > 1 and axis != columns):
        return f"'{q.name}' has scales that are not those of output channels"
    shape = [1] * array.ndim
    shape[columns] = -1
    distance = array - origin.reshape(shape if origin.size > 1 else [1] * array.ndim)
    if not holds_factor(distance, dtype):
        return f"'{q.name}' has numbers further from their zero point than {dtype.value} reaches"
    return _Weights(q.name, dtype, distance, scale.reshape(-1))


def _column_axis(product: gs.Node, dimensions: int) -> int:
    """The axis of the output channels in weights."""
    if product.op == "Conv" or product.attrs.get("transB", 0):
        return 0
    return dimensions - 1


def _why_not(node: gs.Node, x: _Bytes, other: _Bytes | _Weights) -> str | None:
    if not are_multiplied(x.dtype, other.dtype):
        return f"one operand is {x.dtype.value}, the other {other.dtype.value}"
    if isinstance(other, _Bytes):
        return "both operands are computed, and have zero points" if x.zero or other.zero else None
    weights = other.distance
    if node.op == "MatMul" and (weights.ndim != 2 or (rank(node.inputs[0]) or 0) < 2):
        return f"'{other.name}' is no matrix, or multiplies a vector"
    if node.op == "Gemm" and (node.attrs.get("transA", 0) or node.attrs.get("beta", 1.0) != 1.0):
        return "it transposes its first operand, or scales its bias"
    terms = weights.size // weights.shape[_column_axis(node, weights.ndim)]
    if x.dtype.is_byte and terms > MOST_BYTE_PRODUCTS:
        return f"a sum of '{other.name}' may exceed int32"
    if node.op == "Conv" and node.attrs.get("group", 1) == len(weights) > 1:
        return "every group has one filter: its sums are short, and computed in fp32"
    if node.op == "Conv" and x.zero and pads(node):
        return f"it pads '{x.q.name}' with zeros, which stand for {-x.zero} steps of it"
    return None


class _Parts(NodeParts):
    """The nodes that one product becomes."""

    def write(self, x: _Bytes, other: _Bytes | _Weights) -> None:
        """The product, its scale, and its shifts."""
        name, scale = self.node.name, self._per_channel(x.scale * other.scale)
        if isinstance(other, _Weights):
            factor: gs.Tensor = self.editor.constant(f"{other.name}_distances", other.distance)
        else:
            factor = self.cast(other.q, _FP32)
        attrs = {key: v for key, v in self.node.attrs.items() if key not in ("alpha", "beta")}
        output = self.node.outputs[0]
        made = self.add(self.node.op, self.cast(x.q, _FP32), factor, like=output, **attrs)
        scale = scale * float(self.node.attrs.get("alpha", 1.0))
        made = self.add("Mul", made, self.editor.constant(f"{name}_scale", scale, _FP32))
        if x.zero and isinstance(other, _Weights):
            shift = self._per_channel(-x.zero * self._sums(other.distance)) * scale
            made = self.add("Add", made, self.editor.constant(f"{name}_shift", shift, _FP32))
        if (bias := given(self.node, 2)) is not None:
            made = self.add("Add", made, self._bias(bias))
        self.editor.replace(output, made)

    def _sums(self, distance: NDArray[np.float32]) -> Vector:
        """Of the weights of each output channel."""
        axis = _column_axis(self.node, distance.ndim)
        others = tuple(each for each in range(distance.ndim) if each != axis)
        return np.asarray(distance.astype(np.float64).sum(axis=others))

    def _per_channel(self, vector: Vector | float) -> Vector:
        """A vector over the output's channels in a shape that meets the output."""
        array = np.atleast_1d(np.asarray(vector, np.float64))
        ones = [1] * ((rank(self.node.outputs[0]) or 2) - 2) if self.node.op == "Conv" else []
        return array.reshape(-1, *ones) if array.size > 1 else array.reshape(1)

    def _bias(self, bias: gs.Tensor) -> gs.Tensor:
        if self.node.op != "Conv":
            return bias
        ones = [1] * ((rank(self.node.outputs[0]) or 2) - 2)
        return self.reshaped(bias, [bias.shape[0] if bias.shape else None, *ones])
