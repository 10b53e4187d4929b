"""Recognise pooling over the whole plane.

    ReduceMean(x, all spatial axes)         ->  GlobalAveragePool(x)     keepdims = 0: Flatten behind
    ReduceMax(x, all spatial axes)          ->  GlobalMaxPool(x)
    AveragePool, MaxPool with the window of the plane  ->  GlobalAveragePool, GlobalMaxPool

Only for four dimensions and more: with three, the last axis is as often a feature as a place.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import dims, is_float, live_nodes
from wpk.graph_passes.core.reductions import reduced_axes

_GLOBAL = {
    "ReduceMean": "GlobalAveragePool",
    "ReduceMax": "GlobalMaxPool",
    "AveragePool": "GlobalAveragePool",
    "MaxPool": "GlobalMaxPool",
}


class GlobalPooling(GraphPass):
    """Replace reductions and poolings over all places by the operators made for that."""

    name = "global-pooling"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Recognise; a reduction over some but not all places is a refusal."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, *_GLOBAL):
            if not is_float(node.inputs[0]):
                continue
            pooling = node.op in ("AveragePool", "MaxPool")
            reason = _why_not_pool(node) if pooling else _why_not_reduce(node)
            if reason == "":
                continue
            if reason is not None:
                result.refuse(node, reason)
                continue
            source, output = node.inputs[0], node.outputs[0]
            shape = dims(source) or []
            plane = [*shape[:2], *[1] * (len(shape) - 2)]
            pooled = editor.add(_GLOBAL[node.op], [source], like=output, shape=plane)
            if not pooling and not node.attrs.get("keepdims", 1):
                pooled = editor.add("Flatten", [pooled], like=output, attrs={"axis": 1})
            editor.replace(output, pooled)
            result.rewritten += 1
        return result


def _why_not_reduce(node: gs.Node) -> str | None:
    """Say why not; "" where the reduction is not over places at all."""
    axes, shape = reduced_axes(node), dims(node.inputs[0])
    if axes is None or shape is None:
        return f"the axes of '{node.name}' or the rank of its input are not known"
    if len(shape) < 4 or min(axes, default=0) < 2:
        return ""
    if axes != list(range(2, len(shape))):
        return f"it reduces axes {axes} of {len(shape)}, not all places"
    return None


def _why_not_pool(node: gs.Node) -> str | None:
    """Say why not; "" where the window is smaller than the plane, which is the usual case."""
    shape = dims(node.inputs[0])
    if shape is None or list(node.attrs["kernel_shape"]) != shape[2:]:
        return ""
    if any(node.attrs.get("pads", [])) or node.attrs.get("auto_pad", "NOTSET") not in (
        "NOTSET",
        "VALID",
    ):
        return f"the window of '{node.name}' has the size of the plane, but it pads"
    if len(node.outputs) > 1:
        return f"'{node.name}' gives indices too"
    if any(dilation != 1 for dilation in node.attrs.get("dilations", [])):
        return f"'{node.name}' is dilated"
    return None
