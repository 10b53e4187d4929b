"""Let quantised tensors move as they are.

    QuantizeLinear(views(DequantizeLinear(q, s, z)), s, z)  ->  views(q)

Quantisers put a pair of them around everything that moves data. The same scale and zero point give the
same bytes again: (q - z) s / s is off by less than 2^-14 of a step in fp32, and rounded.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.byte_products import byte_type, uniform_origin
from wpk.graph_passes.core.query import FLOAT8, made_by, uniform, why_not_replace
from wpk.graph_passes.movement.chains.views import views_before

_MOVED_FLOAT8 = 21
"""The opset from which on Transpose, Reshape and the like take 8-bit floating point."""


@dataclass(frozen=True)
class _Moved:
    """Views, in order, between a tensor of bytes and the node that quantises it again."""

    node: gs.Node
    q: gs.Tensor
    views: list[gs.Node]


class IdleQuantisation(Rule[_Moved]):
    """Replace a quantisation of what was restored with the same numbers by what was restored."""

    name = "idle-quantisation"
    ops = ("QuantizeLinear",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Moved | Refusal | None:
        """Match where scales and zero points are the same one number each."""
        views = views_before(node.inputs[0])
        source = views[0].inputs[0] if views else node.inputs[0]
        restored = made_by(source, "DequantizeLinear")
        if restored is None or byte_type(restored.inputs[0]) is None:
            return None
        q, made = restored.inputs[0], node.outputs[0]
        if _numbers(restored) is None or _numbers(restored) != _numbers(node):
            return Refusal(node.name, f"'{q.name}' was restored from another scale or zero point")
        if byte_type(q) is not byte_type(made):
            return Refusal(node.name, f"'{q.name}' has another type than '{made.name}'")
        if views and q.dtype in FLOAT8 and graph.opset < _MOVED_FLOAT8:
            return Refusal(node.name, f"nothing moves '{q.name}' before opset {_MOVED_FLOAT8}")
        reason = why_not_replace(graph, made, q) if not views else None
        return Refusal(node.name, reason) if reason is not None else _Moved(node, q, views)

    def rewrite(self, editor: GraphEditor, match: _Moved) -> None:
        """Write the views anew, since others may read what they made of the restored numbers."""
        tensor = match.q
        for view in match.views:
            inputs = [tensor, *list(view.inputs)[1:]]
            name, like = f"{view.name}_bytes", view.outputs[0]
            tensor = editor.add(view.op, inputs, like=like, name=name, attrs=view.attrs)
            tensor.dtype = match.q.dtype
        editor.replace(match.node.outputs[0], tensor)


def _numbers(node: gs.Node) -> tuple[float, float] | None:
    """The scale and the zero point of a quantisation; None where they are several, or computed."""
    scale, origin = uniform(node.inputs[1]), uniform_origin(node)
    if scale is None or origin is None or node.attrs.get("block_size", 0):
        return None
    return scale, origin
