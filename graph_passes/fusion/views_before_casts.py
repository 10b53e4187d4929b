"""View what is given before it is cast.

    Reshape(Cast(x))  ->  Cast(Reshape(x))      x an input of the graph

Exact: a view does not change elements. Operators read through views and then a cast, in this order; a
mask that is given as integers is then cast by those that choose by it, and not by an operator of its own.
What computes ``x``, where something does, would rather take the cast (`hoist`).
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import element_type, made_by, producer, why_shared
from wpk.graph_passes.movement.views import viewed


@dataclass(frozen=True)
class _ViewedCast:
    """A cast, and the view that reads it."""

    cast: gs.Node
    view: gs.Node


class ViewsBeforeCasts(Rule[_ViewedCast]):
    """Swap a cast of a graph's input with the view behind it."""

    name = "views-before-casts"
    ops = VIEWS

    def match(self, graph: gs.Graph, node: gs.Node) -> _ViewedCast | Refusal | None:
        """Match a view of a cast that nobody else reads."""
        cast = made_by(node.inputs[0], "Cast")
        if cast is None or not _is_given(cast.inputs[0]):
            return None
        return refusal(node, why_shared(graph, cast.outputs[0])) or _ViewedCast(cast, node)

    def rewrite(self, editor: GraphEditor, match: _ViewedCast) -> None:
        """Write the view, and the cast behind it."""
        cast, view = match.cast, match.view
        source, output = cast.inputs[0], view.outputs[0]
        inputs = [source, *view.inputs[1:]]
        viewed = editor.add(view.op, inputs, like=output, attrs=dict(view.attrs))
        viewed.dtype = element_type(source)
        new = editor.add("Cast", [viewed], like=output, attrs=dict(cast.attrs))
        editor.replace(output, new)


def _is_given(tensor: gs.Tensor) -> bool:
    """Whether a tensor is an input of the graph, or a view of one."""
    first = viewed(tensor)
    return producer(first) is None and not isinstance(first, gs.Constant)
