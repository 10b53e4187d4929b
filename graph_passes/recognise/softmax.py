"""Recognise Softmax written with Exp.

    e / ReduceSum(e, axis)    e = exp(x - ReduceMax(x, axis))    ->  Softmax(x, axis)

Without the maximum they are equal in exact arithmetic alone: where exp(x) overflows, or vanishes in all
of a row, such a model gives no number, and Softmax does.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import Refusal, Replacement, ReplacementRule
from wpk.graph_passes.core.query import is_op, made_by, rank, why_shared
from wpk.graph_passes.core.reductions import reduced_axes


class RecognizeSoftmax(ReplacementRule):
    """Replace the quotient of an exponential and its sum by one node."""

    name = "recognize-softmax"
    ops = ("Div",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Recognise along one axis; the exponential must have no other readers."""
        exponential = made_by(node.inputs[0], "Exp")
        total = made_by(node.inputs[1], "ReduceSum")
        if exponential is None or total is None or total.inputs[0] is not node.inputs[0]:
            return None
        axes = reduced_axes(total)
        if axes is None:
            return Refusal(node.name, f"the axes of '{total.name}' are not known")
        reason = _why_not(graph, exponential, total, axes)
        if reason is not None:
            return Refusal(node.name, reason)
        source = _without_maximum(exponential.inputs[0], axes)
        if source is None:
            reason = f"'{exponential.name}' may overflow: no maximum is subtracted"
            return Refusal(node.name, reason)
        return Replacement(node.outputs[0], "Softmax", [source], {"axis": axes[0]})


def _why_not(graph: gs.Graph, exponential: gs.Node, total: gs.Node, axes: list[int]) -> str | None:
    if len(axes) != 1:
        return f"'{total.name}' sums over axes {axes}, Softmax over one"
    if not total.attrs.get("keepdims", 1):
        return f"'{total.name}' drops the axis that it sums over"
    if graph.opset < 13 and axes[0] != (rank(total.inputs[0]) or 0) - 1:
        return f"Softmax flattens before opset 13, the graph has {graph.opset}"
    if len(exponential.outputs[0].outputs) != 2:
        return f"'{exponential.outputs[0].name}' is read elsewhere"
    return why_shared(graph, total.outputs[0])


def _without_maximum(argument: gs.Tensor, axes: list[int]) -> gs.Tensor | None:
    """Return x where ``argument`` is x - ReduceMax(x) along the same axes, else None."""
    difference = made_by(argument, "Sub")
    if difference is None:
        return None
    x, largest = difference.inputs
    maximum = made_by(largest, "ReduceMax")
    if maximum is None or not is_op(maximum, "ReduceMax") or maximum.inputs[0] is not x:
        return None
    keeps = maximum.attrs.get("keepdims", 1)
    return x if keeps and reduced_axes(maximum) == axes else None
