"""Write DynamicQuantizeLinear as what it is defined by, its scale and zero point computed from its tensor.

    high = max(ReduceMax(x), 0)        scale = (high - low) / 255, 1 where x is nothing but zeros
    low = min(ReduceMin(x), 0)         zero = clip(round(-low / scale), 0, 255)
    y = clip(round(x / scale) + zero, 0, 255)

in fp32, as ONNX Runtime computes; ONNX's own function divides by 0 where x is zero everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.editor import Attributes
from wpk.graph_passes.core.query import rank, static_shape

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


@dataclass(frozen=True)
class _Parts:
    """The nodes that one quantisation becomes."""

    editor: GraphEditor
    node: gs.Node

    def results(self) -> tuple[gs.Variable, gs.Variable, gs.Variable]:
        """Make the bytes, the scale and the zero point."""
        nothing, most = self._number("nothing", 0.0), self._number("most", _LARGEST)
        high = self._add("Max", self._extreme("ReduceMax"), nothing)
        low = self._add("Min", self._extreme("ReduceMin"), nothing)
        reach = self._add("Sub", high, low)
        is_zero = self._add("Equal", reach, nothing, dtype=np.dtype(np.bool_))
        step = self._add("Div", reach, most)
        scale = self._add("Where", is_zero, self._number("one", 1.0), step)
        place = self._add("Sub", nothing, self._add("Div", low, scale))
        zero = self._add("Clip", self._add("Round", place), nothing, most)
        x = self.node.inputs[0]
        shape = list(x.shape)
        steps = self._add("Round", self._add("Div", x, scale, shape=shape), shape=shape)
        moved = self._add("Add", steps, zero, shape=shape)
        limited = self._add("Clip", moved, nothing, most, shape=shape)
        return self._byte(limited, shape), scale, self._byte(zero, [])

    def _byte(self, number: gs.Tensor, shape: Sequence[int | str]) -> gs.Variable:
        attrs = {"to": onnx.helper.np_dtype_to_tensor_dtype(_BYTE)}
        return self._add("Cast", number, dtype=_BYTE, shape=shape, attrs=attrs)

    def _extreme(self, op: str) -> gs.Variable:
        """Reduce the whole tensor."""
        x, keep = self.node.inputs[0], {"keepdims": 0}
        shape = static_shape(x)
        if shape is None or len(shape) < _FEWEST_AXES or np.prod(shape) < _MANY:
            return self._add(op, x, attrs=keep)
        rows = shape[:-1]
        if self.editor.graph.opset < _AXES_ARE_INPUTS:
            largest = self._add(op, x, shape=rows, attrs=keep | {"axes": [-1]})
        else:
            last = self.editor.constant(f"{self.node.name}_last", np.array([-1], np.int64))
            largest = self._add(op, x, last, shape=rows, attrs=keep)
        return self._add(op, largest, attrs=keep)

    def _number(self, name: str, value: float) -> gs.Constant:
        return self.editor.constant(f"{self.node.name}_{name}", np.array(value, np.float32))

    def _add(
        self,
        op: str,
        *inputs: gs.Tensor,
        dtype: "np.dtype[Any]" = _FP32,
        shape: Sequence[int | str] = (),
        attrs: Attributes | None = None,
    ) -> gs.Variable:
        """Append a node, by default of one number in fp32."""
        made = self.editor.add(
            op,
            inputs,
            like=self.node.inputs[0],
            shape=list(shape),
            name=f"{self.node.name}_{op}",
            attrs=attrs,
        )
        made.dtype = dtype
        return made
