"""Write products of quantised tensors as products between quantisations.

    QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b)  ->  Q(Conv(DQ(x), DQ(w), DQ(b, sx sw, 0)), sy, zy)
    QLinearMatMul(a, sa, za, b, sb, zb, sy, zy)   ->  Q(MatMul(DQ(a), DQ(b)), sy, zy)
    ConvInteger(x, w, zx, zw)                     ->  Cast(Conv(x - zx, w - zw))
    MatMulInteger(a, b, za, zb)                   ->  Cast(MatMul(a - za, b - zb))

where Q and DQ are QuantizeLinear and DequantizeLinear, which `quantisation-parts` takes further. The sums
of the last two are integers: computed in fp32 they are exact as long as none can exceed 2^24, which the
weights say, in 16 bits as well, which hold the differences of bytes. Where all that reads the
sum is a Cast back to floating point, a sum that is rounded serves as well as one that is converted.
"""

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import given, is_graph_output, is_op, values

_EXACT = 2**24
_LARGEST_DISTANCE = 255
"""How far an 8-bit number may be from its zero point."""

_FP32 = np.dtype(np.float32)
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


class QuantisedProducts(Rule[gs.Node]):
    """Replace products of 8-bit integers by products of what they stand for."""

    name = "quantised-products"
    ops = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match what stays exact, or is rounded anyhow."""
        integers = node.op in ("ConvInteger", "MatMulInteger")
        reason = _why_not_exact(graph, node) if integers else _why_not_scaled(node)
        return refusal(node, reason) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the product, and what stands around it."""
        parts = _Parts(editor, match)
        if match.op == "QLinearConv":
            editor.replace(match.outputs[0], parts.scaled_convolution())
        elif match.op == "QLinearMatMul":
            editor.replace(match.outputs[0], parts.scaled_product())
        else:
            parts.sum_of_integers()


def _why_not_scaled(node: gs.Node) -> str | None:
    output_scale = node.inputs[6]
    if output_scale.dtype != _FP32:
        return f"'{output_scale.name}' is not fp32"
    if node.op == "QLinearMatMul":
        if any(t.shape is None or np.prod(t.shape) != 1 for t in (node.inputs[1], node.inputs[4])):
            return "its operands have a scale for each row"
        return None
    weight_scale, scale = node.inputs[4], node.inputs[1]
    if given(node, 8) is not None and (values(scale) is None or values(weight_scale) is None):
        return "it has a bias, and scales that are computed"
    return None


def _why_not_exact(graph: gs.Graph, node: gs.Node) -> str | None:
    for index, tensor in enumerate(node.inputs[:2]):
        if tensor.dtype not in _BYTES:
            return f"'{tensor.name}' does not hold bytes"
        zero = given(node, index + 2)
        for_columns = node.op == "MatMulInteger" and index == 1
        if zero is None or (for_columns and len(zero.shape or ()) == 1):
            continue
        if zero.shape is None or np.prod(zero.shape) != 1:
            return f"'{zero.name}' has a zero point for each row"
    if _is_rounded_anyhow(graph, node.outputs[0]):
        return None
    weights = values(node.inputs[1])
    zero = given(node, 3)
    origin = np.zeros(1) if zero is None else values(zero)
    if weights is None or origin is None:
        return "its sums of integers may exceed 2^24, and are read as integers"
    axes = tuple(range(1, weights.ndim)) if node.op == "ConvInteger" else -2 % weights.ndim
    spread = origin.astype(np.int64) if node.op == "MatMulInteger" else int(origin.reshape(-1)[0])
    distance = np.abs(weights.astype(np.int64) - spread)
    largest = int(distance.sum(axes).max(initial=0)) * _LARGEST_DISTANCE
    if largest > _EXACT:
        return f"its sums of integers may reach {largest}, beyond 2^24, and are read as integers"
    return None


def _is_rounded_anyhow(graph: gs.Graph, tensor: gs.Tensor) -> bool:
    if is_graph_output(graph, tensor) or not tensor.outputs:
        return False
    return all(is_op(each, "Cast") and each.outputs[0].dtype == _FP32 for each in tensor.outputs)


class _Parts(NodeParts):
    """The nodes that one product becomes."""

    def scaled_convolution(self) -> gs.Tensor:
        """A convolution of what its operands stand for, quantised."""
        x = self._restored(0, 1, 2, axis=1)
        w = self._restored(3, 4, 5, axis=0)
        operands = [x, w]
        if (bias := given(self.node, 8)) is not None:
            scales = [values(self.node.inputs[index]) for index in (1, 4)]
            assert scales[0] is not None  # `_why_not_scaled`
            assert scales[1] is not None
            scale = scales[0].astype(np.float64) * scales[1].astype(np.float64)
            shape = () if scale.size == 1 else (scale.size,)
            constant = self.editor.constant(
                f"{self.node.name}_bias_scale", scale.reshape(shape), _FP32
            )
            operands.append(self.add("DequantizeLinear", bias, constant, dtype=_FP32, axis=0))
        return self._quantised(self._product("Conv", *operands, **self.node.attrs))

    def scaled_product(self) -> gs.Tensor:
        """A product of what its operands stand for, quantised."""
        a, b = self._restored(0, 1, 2), self._restored(3, 4, 5)
        return self._quantised(self._product("MatMul", a, b))

    def sum_of_integers(self) -> None:
        """A product of distances from zero points; readers that want no integer get none."""
        operands = [self._distance(index) for index in (0, 1)]
        op = self.node.op.removesuffix("Integer")
        product = self._product(op, *operands, **self.node.attrs)
        output = self.node.outputs[0]
        if _is_rounded_anyhow(self.editor.graph, output):
            for cast in list(output.outputs):
                self.editor.replace(cast.outputs[0], product)
            return
        self.editor.replace(output, self.cast(product, np.int32))

    def _restored(self, index: int, scale: int, zero: int, axis: int = 0) -> gs.Tensor:
        tensor = self.node.inputs[index]
        parameters = [self._number(self.node.inputs[each]) for each in (scale, zero)]
        return self.add("DequantizeLinear", tensor, *parameters, dtype=_FP32, axis=axis)

    def _quantised(self, product: gs.Tensor) -> gs.Tensor:
        parameters = [self._number(self.node.inputs[each]) for each in (6, 7)]
        return self.add("QuantizeLinear", product, *parameters, like=self.node.outputs[0])

    def _number(self, parameter: gs.Tensor) -> gs.Tensor:
        """A parameter; one number without an axis, as quantisations of a whole tensor want it."""
        array = values(parameter)
        if array is None or array.size != 1:
            return parameter
        return self.editor.constant(f"{parameter.name}_number", array.reshape(()))

    def _distance(self, index: int) -> gs.Tensor:
        tensor, zero = self.node.inputs[index], given(self.node, index + 2)
        wide = self.cast(tensor, _FP32)
        array = None if zero is None else values(zero)
        if zero is None or (array is not None and not array.any()):
            return wide
        return self.add("Sub", wide, self.cast(zero, _FP32))

    def _product(self, op: str, *operands: gs.Tensor, **attributes: Any) -> gs.Variable:
        """Append a product in fp32, of the shape of the node's output."""
        return self.add(op, *operands, like=self.node.outputs[0], dtype=_FP32, **attributes)
