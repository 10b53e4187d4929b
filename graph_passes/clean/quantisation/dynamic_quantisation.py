"""Write DynamicQuantizeLinear as what it is defined by, its scale and zero point computed from its tensor.

    high = max(ReduceMax(x), 0)        scale = (high - low) / 255, 1 where x is nothing but zeros
    low = min(ReduceMin(x), 0)         zero = clip(round(-low / scale), 0, 255)
    y = clip(round(x / scale) + zero, 0, 255)

in fp32, as ONNX Runtime computes; ONNX's own function divides by 0 where x is zero everywhere.
"""

from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, rank, static_shape

_FP32, _BYTE = np.dtype(np.float32), np.dtype(np.uint8)
_LARGEST = float(np.iinfo(_BYTE).max)
_AXES_ARE_INPUTS = 18
"""The opset since which ReduceMax and ReduceMin are given their axes as an input."""

_FEWEST_AXES, _MANY = 2, 2**14
"""From so many elements on the rows are reduced first, by as many blocks of threads as they fill."""


class DynamicQuantisation(Rule[gs.Node]):
    """Replace DynamicQuantizeLinear by reductions, and element-wise arithmetic."""

    name = "dynamic-quantisation"
    ops = ("DynamicQuantizeLinear",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match every one whose rank is known."""
        del graph
        x = node.inputs[0]
        unknown = f"the rank of '{x.name}' is not known" if rank(x) is None else None
        return refusal(node, unknown) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the arithmetic; what makes the results makes the node's outputs."""
        made = _Parts(editor, match).results()
        outputs = list(match.outputs)
        match.outputs.clear()
        for output, tensor in zip(outputs, made, strict=False):
            if not output.is_empty():
                _make_instead(tensor, output)


def _make_instead(made: gs.Variable, output: gs.Tensor) -> None:
    """Let the node that makes one tensor make another in its place, and its readers read that."""
    for reader in list(made.outputs):
        reader.inputs = [output if tensor is made else tensor for tensor in reader.inputs]
    (maker,) = made.inputs
    maker.outputs = [output]


class _Parts(NodeParts):
    """The nodes that one quantisation becomes."""

    def results(self) -> tuple[gs.Variable, gs.Variable, gs.Variable]:
        """Make the bytes, the scale and the zero point."""
        nothing, most = self._number("nothing", 0.0), self._number("most", _LARGEST)
        high = self._one("Max", self._extreme("ReduceMax"), nothing)
        low = self._one("Min", self._extreme("ReduceMin"), nothing)
        reach = self._one("Sub", high, low)
        is_zero = self.add("Equal", reach, nothing, dtype=np.bool_)
        step = self._one("Div", reach, most)
        scale = self._one("Where", is_zero, self._number("one", 1.0), step)
        place = self._one("Sub", nothing, self._one("Div", low, scale))
        zero = self._one("Clip", self._one("Round", place), nothing, most)
        steps = self.add("Round", self.add("Div", self.node.inputs[0], scale, dtype=_FP32))
        limited = self.add("Clip", self.add("Add", steps, zero), nothing, most)
        return self._byte(limited), scale, self._byte(zero)

    def _byte(self, number: gs.Variable) -> gs.Variable:
        made = self.cast(number, _BYTE)
        assert isinstance(made, gs.Variable)  # of what is no byte
        return made

    def _extreme(self, op: str) -> gs.Variable:
        """Reduce the whole tensor."""
        x = self.node.inputs[0]
        shape = static_shape(x)
        if shape is None or len(shape) < _FEWEST_AXES or np.prod(shape) < _MANY:
            return self._one(op, x, keepdims=0)
        rows: Dims = list(shape[:-1])
        if self.editor.graph.opset < _AXES_ARE_INPUTS:
            largest = self.add(op, x, shape=rows, axes=[-1], keepdims=0)
        else:
            largest = self.add(op, x, self.ints([-1]), shape=rows, keepdims=0)
        return self._one(op, largest, keepdims=0)

    def _number(self, name: str, value: float) -> gs.Constant:
        return self.editor.constant(f"{self.node.name}_{name}", np.array(value, np.float32))

    def _one(self, op: str, *inputs: gs.Tensor, **attributes: Any) -> gs.Variable:
        """Append a node of one number in fp32."""
        return self.add(op, *inputs, shape=[], dtype=_FP32, **attributes)
