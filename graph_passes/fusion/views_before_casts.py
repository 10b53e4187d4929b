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
from wpk.graph_passes.core.query import dims, element_type, is_op, made_by, producer, why_shared
from wpk.graph_passes.movement.chains.views import trace, viewed, views_before


@dataclass(frozen=True)
class _Swap:
    """A cast and a view, one of which reads the other."""

    first: gs.Node
    second: gs.Node


class ViewsBeforeCasts(Rule[_Swap]):
    """Swap a cast of a graph's input with the view behind it, or with the view before it that would be a copy."""

    name = "views-before-casts"
    ops = (*VIEWS, "Cast")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Swap | Refusal | None:
        """Match a cast and a view between which nobody else reads."""
        first = made_by(node.inputs[0], *(VIEWS if is_op(node, "Cast") else ("Cast",)))
        if first is None or not _is_given(first.inputs[0]):
            return None
        cast, view = (node, first) if is_op(node, "Cast") else (first, node)
        before = views_before(first.inputs[0])
        if _is_copied(cast, [*before, view]) is not is_op(node, "Cast"):
            return None
        return refusal(node, why_shared(graph, first.outputs[0])) or _Swap(first, node)

    def rewrite(self, editor: GraphEditor, match: _Swap) -> None:
        """Write the second, and the first behind it."""
        first, second = match.first, match.second
        source, output = first.inputs[0], second.outputs[0]
        made = editor.add(
            second.op,
            [source, *second.inputs[1:]],
            like=output,
            shape=dims(source) if is_op(second, "Cast") else output.shape,
            attrs=dict(second.attrs),
        )
        made.dtype = element_type(output if is_op(second, "Cast") else source)
        inputs = [made, *first.inputs[1:]]
        editor.replace(output, editor.add(first.op, inputs, like=output, attrs=dict(first.attrs)))


def _is_copied(cast: gs.Node, chain: list[gs.Node]) -> bool:
    """Whether views of what is given cannot be read in place, by a cast that does not widen."""
    described = trace(chain[0].inputs[0], chain)
    return described is not None and not described.reads_strided() and not is_widening(cast)


def _is_given(tensor: gs.Tensor) -> bool:
    """Whether a tensor is an input of the graph, or a view of one."""
    first = viewed(tensor)
    return producer(first) is None and not isinstance(first, gs.Constant)
