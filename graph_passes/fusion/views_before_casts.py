"""View what is given before it is cast, as far as it can be read in place.

    Reshape(Cast(x))  ->  Cast(Reshape(x))      x an input of the graph
    Cast(Reshape(x))  ->  Reshape(Cast(x))      where the Cast makes less of what no operator could read in place

Exact: a view does not change elements. Operators read through views and then a cast, in this order; a
mask that is given as integers is then cast by those that choose by it, and not by an operator of its own.
What computes ``x``, where something does, would rather take the cast (`hoist`). Elements that must be copied
anyway, since no strides say the view, are copied by the cast: the patches of a picture, which a product reads.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import VIEWS, is_widening
from wpk.graph_passes.core.query import dims, element_type, made_by, producer, why_shared
from wpk.graph_passes.movement.views import trace, viewed, views_before


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
        if _is_copied(cast, [*views_before(cast.inputs[0]), node]):
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


class CastsBeforeCopies(Rule[_ViewedCast]):
    """Swap a narrowing cast of a graph's input with the view before it that would be a copy."""

    name = "casts-before-copies"
    ops = ("Cast",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _ViewedCast | Refusal | None:
        """Match a cast of a view that nobody else reads."""
        view = made_by(node.inputs[0], *VIEWS)
        if view is None or not _is_given(view.inputs[0]) or not _is_copied(node, [view]):
            return None
        return refusal(node, why_shared(graph, view.outputs[0])) or _ViewedCast(node, view)

    def rewrite(self, editor: GraphEditor, match: _ViewedCast) -> None:
        """Write the cast, and the view behind it."""
        cast, view = match.cast, match.view
        source, output = view.inputs[0], cast.outputs[0]
        attrs = dict(cast.attrs)
        made = editor.add("Cast", [source], like=output, shape=dims(source), attrs=attrs)
        inputs = [made, *view.inputs[1:]]
        editor.replace(output, editor.add(view.op, inputs, like=output, attrs=dict(view.attrs)))


def _is_copied(cast: gs.Node, views: list[gs.Node]) -> bool:
    """Whether the last of some views of what is given cannot be read in place, by a cast to a smaller type."""
    chain = [*views_before(views[0].inputs[0]), *views]
    described = trace(chain[0].inputs[0], chain)
    return described is not None and not described.reads_strided() and not is_widening(cast)


def _is_given(tensor: gs.Tensor) -> bool:
    """Whether a tensor is an input of the graph, or a view of one."""
    first = viewed(tensor)
    return producer(first) is None and not isinstance(first, gs.Constant)
