"""Write the computed sizes of a Resize as scales, which hold for every batch.

    Resize(x, sizes = [batch, c, 8, 8])  ->  Resize(x, scales = [1, 1, 2, 2])     x: [batch, c, 4, 4]

A Resize to sizes divides them by the input's in float32, so these scales are the same numbers. They
are only written where they lead back to the sizes, whether a reader multiplies in float32, as ONNX
Runtime, or in float64, as ONNX's reference: floor(3 * float32(5 / 3)) is 4.
"""

from collections.abc import Mapping
from math import floor

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, PassResult
from wpk.graph_passes.core.query import Dims, dims, given


def rewrite_sizes(
    editor: GraphEditor, node: gs.Node, known: Mapping[str, Dims], result: PassResult
) -> int:
    """Replace partly known sizes of a Resize by scales; return the count of rewrites.

    Args:
        editor: Of the graph.
        node: A Resize.
        known: Partial values of computed tensors, by name.
        result: Told why sizes stay.
    """
    sizes = given(node, 3)
    entries = known.get(sizes.name) if sizes is not None else None
    if sizes is None or entries is None or isinstance(sizes, gs.Constant):
        return 0
    scales = _scales(dims(node.inputs[0]), entries)
    if scales is None or node.attrs.get("axes") is not None or _keeps_aspect(node):
        result.refuse(node, f"no constant scales resize '{node.inputs[0].name}' to {entries}")
        return 0
    constant = editor.constant(f"{node.name}_scales", np.array(scales, np.float32))
    node.inputs = [node.inputs[0], node.inputs[1], constant]
    return 1


def _keeps_aspect(node: gs.Node) -> bool:
    policy = node.attrs.get("keep_aspect_ratio_policy", "stretch")
    return policy not in ("stretch", b"stretch")


def _scales(source: Dims | None, entries: Dims) -> list[float] | None:
    if source is None or len(source) != len(entries):
        return None
    scales: list[float] = []
    for old, new in zip(source, entries, strict=True):
        if new is not None and old == new:
            scales.append(1.0)
        elif isinstance(old, int) and isinstance(new, int) and old > 0:
            scale = np.float32(new) / np.float32(old)
            if floor(np.float32(old) * scale) != new or floor(old * float(scale)) != new:
                return None
            scales.append(float(scale))
        else:
            return None
    return scales
