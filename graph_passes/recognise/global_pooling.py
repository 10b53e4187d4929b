"""Recognise pooling over the whole plane.

    ReduceMean(x, all spatial axes)         ->  GlobalAveragePool(x)     keepdims = 0: Flatten behind
    ReduceMax(x, all spatial axes)          ->  GlobalMaxPool(x)
    AveragePool, MaxPool with the window of the plane  ->  GlobalAveragePool, GlobalMaxPool

Only for four dimensions and more: with three, the last axis is as often a feature as a place.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import dims, is_float, pads
from wpk.graph_passes.core.reductions import reduced_axes

_GLOBAL = {
    "ReduceMean": "GlobalAveragePool",
    "ReduceMax": "GlobalMaxPool",
    "AveragePool": "GlobalAveragePool",
    "MaxPool": "GlobalMaxPool",
}
_POOLS = ("AveragePool", "MaxPool")


class GlobalPooling(Rule[gs.Node]):
    """Replace reductions and poolings over all places by the operators made for that."""

    name = "global-pooling"
    ops = tuple(_GLOBAL)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal | None:
        """Recognise; a reduction over some but not all places is a refusal."""
        if not is_float(node.inputs[0]):
            return None
        of_places = _pools_plane(node) if node.op in _POOLS else _reduces_places(node)
        if not of_places:
            return None
        reason = _why_not_pool(node) if node.op in _POOLS else _why_not_reduce(node)
        return refusal(node, reason) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the global operator, and a Flatten where places are dropped."""
        source, output = match.inputs[0], match.outputs[0]
        shape = dims(source) or []
        plane = [*shape[:2], *[1] * (len(shape) - 2)]
        pooled = editor.add(_GLOBAL[match.op], [source], like=output, shape=plane)
        if match.op not in _POOLS and not match.attrs.get("keepdims", 1):
            pooled = editor.add("Flatten", [pooled], like=output, attrs={"axis": 1})
        editor.replace(output, pooled)


def _reduces_places(node: gs.Node) -> bool:
    """Whether a reduction is over places, as far as that is known."""
    axes, shape = reduced_axes(node), dims(node.inputs[0])
    return axes is None or shape is None or (len(shape) >= 4 and min(axes, default=0) >= 2)


def _pools_plane(node: gs.Node) -> bool:
    """Whether the window has the size of the plane; most are smaller."""
    shape = dims(node.inputs[0])
    return shape is not None and list(node.attrs["kernel_shape"]) == shape[2:]


def _why_not_reduce(node: gs.Node) -> str | None:
    axes, shape = reduced_axes(node), dims(node.inputs[0])
    if axes is None or shape is None:
        return f"the axes of '{node.name}' or the rank of its input are not known"
    if axes != list(range(2, len(shape))):
        return f"it reduces axes {axes} of {len(shape)}, not all places"
    return None


def _why_not_pool(node: gs.Node) -> str | None:
    if pads(node):
        return f"the window of '{node.name}' has the size of the plane, but it pads"
    if len(node.outputs) > 1:
        return f"'{node.name}' gives indices too"
    if any(dilation != 1 for dilation in node.attrs.get("dilations", [])):
        return f"'{node.name}' is dilated"
    return None
