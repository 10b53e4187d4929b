"""Write what is made of rows of one element each as the constant that it is.

    LayerNormalization(x, scale, bias)  ->  bias        rows of one element: its distance from their mean is 0
    Softmax(x)                          ->  1           along one element

Exact for finite numbers. CSATv2's attention over places normalises rows of a single channel so, and what follows is
constant, too (`constant_folding`).
"""

from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import given, is_graph_output, is_op, static_shape

_MOST_ELEMENTS = 1 << 18
"""A constant that has more would swell the plan."""


class _Single(NamedTuple):
    """A node, and the one number that all its results are: a constant, or one and zero where there is none."""

    node: gs.Node
    shape: list[int]
    value: gs.Constant | float


class SingleElements(Rule[_Single]):
    """Replace normalisations and softmaxes of rows that have one element each."""

    name = "single-elements"
    ops = ("LayerNormalization", "Softmax")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Single | Refusal | None:
        """Match nodes whose rows have one element."""
        output = node.outputs[0]
        shape = static_shape(output)
        if shape is None or not shape or len(node.outputs) != 1 or is_graph_output(graph, output):
            return None
        axis = int(node.attrs.get("axis", -1)) % len(shape)
        row = shape[axis : axis + 1] if is_op(node, "Softmax") else shape[axis:]
        if any(size != 1 for size in row) or isinstance(output.dtype, int):
            return None
        if np.prod(shape) > _MOST_ELEMENTS:
            return refusal(node, f"the constant would have {np.prod(shape)} elements")
        if is_op(node, "Softmax"):
            return _Single(node, shape, 1.0)
        bias = given(node, 2)
        if bias is not None and not isinstance(bias, gs.Constant):
            return refusal(node, f"its bias '{bias.name}' is no constant")
        return _Single(node, shape, 0.0 if bias is None else bias)

    def rewrite(self, editor: GraphEditor, match: _Single) -> None:
        """Let the readers read the constant."""
        output, value = match.node.outputs[0], match.value
        name = editor.new_name(f"{output.name}_values")
        if isinstance(value, gs.Constant):
            constant = moved_constant(
                name, value, lambda array: np.broadcast_to(array.reshape(()), match.shape)
            )
        else:
            constant = gs.Constant(name, np.full(match.shape, value, output.dtype))
        editor.replace(output, constant)
