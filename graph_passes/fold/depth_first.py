"""Let a convolution give the channels of a DepthToSpace in the order in which they lie behind it.

    DepthToSpace<CRD>(Conv(x; W, b))  ->  DepthToSpace<DCR>(Conv(x; W', b'))      W', b': W, b, their filters in that order

Exact: no number changes. Channels last, the second moves whole pixels, the first every element by itself. A pixel
shuffle, as exporters write it, is the first.
"""

from collections.abc import Callable

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import given, made_by, why_shared
from wpk.graph_passes.fold.linear_operator import output_channels, why_not_linear


class DepthFirst(Rule[tuple[gs.Node, gs.Node]]):
    """Turn the filters of a convolution, so that the blocks behind it are outermost in its channels."""

    name = "depth-first"
    ops = ("DepthToSpace",)

    def match(self, graph: gs.Graph, node: gs.Node) -> tuple[gs.Node, gs.Node] | Refusal | None:
        """Match what alone reads a convolution."""
        conv = made_by(node.inputs[0], "Conv")
        if conv is None or node.attrs.get("mode", "DCR") != "CRD":
            return None
        reason = why_not_linear(conv) or why_shared(graph, conv.outputs[0])
        if reason is None and int(conv.attrs.get("group", 1)) != 1:
            reason = f"'{conv.name}' has groups of channels"
        return refusal(node, reason) or (conv, node)

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, gs.Node]) -> None:
        """Write the convolution with turned filters, and the other mode."""
        conv, node = match
        block = int(node.attrs["blocksize"]) ** 2
        turned = np.arange(output_channels(conv)).reshape(-1, block).T.reshape(-1)
        weight, bias = conv.inputs[1], given(conv, 2)
        inputs = [conv.inputs[0]]
        for constant in (weight, *([] if bias is None else [bias])):
            name = editor.new_name(f"{constant.name}_turned")
            inputs.append(moved_constant(name, constant, _taking(turned)))
        made = editor.add("Conv", inputs, like=conv.outputs[0], attrs=dict(conv.attrs))
        attrs = {**node.attrs, "mode": "DCR"}
        editor.replace(
            node.outputs[0],
            editor.add("DepthToSpace", [made], like=node.outputs[0], attrs=attrs),
        )


def _taking(places: NDArray[np.int64]) -> Callable[[NDArray[np.generic]], NDArray[np.generic]]:
    return lambda held: held.take(places, 0)
