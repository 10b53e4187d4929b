"""Write DepthToSpace and SpaceToDepth as what they are: a transpose between two reshapes.

    DepthToSpace(x, b)  ->  Reshape(Transpose(Reshape(x, [n, b, b, c/b^2, h, w])))   DCR
                            Reshape(Transpose(Reshape(x, [n, c/b^2, b, b, h, w])))   CRD
    SpaceToDepth(x, b)  ->  Reshape(Transpose(Reshape(x, [n, c, h/b, b, w/b, b])))   DCR: b, b, c
                                                                                     CRD: c, b, b

The batch may be free; channels and places must be known.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import dims


class BlockMovement(Rule[tuple[gs.Node, list[int]]]):
    """Replace moves between channels and places by reshapes and one transpose."""

    name = "block-movement"
    ops = ("DepthToSpace", "SpaceToDepth")

    def match(self, graph: gs.Graph, node: gs.Node) -> tuple[gs.Node, list[int]] | Refusal:
        """Return the channels and places of a node where they are known."""
        shape = dims(node.inputs[0])
        if shape is None or len(shape) != 4 or not all(isinstance(n, int) for n in shape[1:]):
            reason = f"channels and places of '{node.inputs[0].name}' are not known"
            return Refusal(node.name, reason)
        if node.attrs.get("mode", "DCR") not in ("DCR", "CRD"):
            return Refusal(node.name, f"{node.op} with mode {node.attrs['mode']!r}")
        return node, [int(n or 0) for n in shape[1:]]

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, list[int]]) -> None:
        """Write the reshapes, and the transpose between them."""
        node, shape = match
        source, output = node.inputs[0], node.outputs[0]
        split, perm, joined = _plan(node, *shape)
        batch = (dims(source) or [None])[0]
        parts = editor.constant(f"{node.name}_split", np.array([0, *split], np.int64))
        whole = editor.constant(f"{node.name}_joined", np.array([0, *joined], np.int64))
        blocks = editor.add("Reshape", [source, parts], like=output, shape=[batch, *split])
        moved = [([batch, *split])[axis] for axis in perm]
        turned = editor.add("Transpose", [blocks], like=output, shape=moved, attrs={"perm": perm})
        editor.replace(output, editor.add("Reshape", [turned, whole], like=output))


def _plan(node: gs.Node, c: int, h: int, w: int) -> tuple[list[int], list[int], list[int]]:
    """Extents after the first reshape, the transpose, and extents at the end, without the batch."""
    b = int(node.attrs["blocksize"])
    depth_first = node.attrs.get("mode", "DCR") == "DCR"
    if node.op == "SpaceToDepth":
        perm = [0, 3, 5, 1, 2, 4] if depth_first else [0, 1, 3, 5, 2, 4]
        return [c, h // b, b, w // b, b], perm, [c * b * b, h // b, w // b]
    joined = [c // (b * b), h * b, w * b]
    if depth_first:
        return [b, b, c // (b * b), h, w], [0, 3, 4, 1, 5, 2], joined
    return [c // (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3], joined
