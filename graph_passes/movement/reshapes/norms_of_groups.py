"""Give groups of channels that are normalised their channels and places as axes.

    Reshape(InstanceNormalization(Reshape(x, [n, g, -1]); s, b))
        ->  Reshape(InstanceNormalization(Reshape(x, [n, g, c / g, h, w]); s, b))       x of n x c x h x w

torch writes GroupNorm so. Exact: the same elements belong to each group. With one axis for all of
them, what has the channels of a place side by side would be copied first; with axes of their own it is read where it lies,
and what follows channel by channel is computed with the norm (`fuse-operators`).
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.group_norm import GroupNorm, group_norm
from wpk.graph_passes.core.query import Dims, same_dims, why_shared


@dataclass(frozen=True)
class _Groups:
    """A norm of groups, and the shape in which they have axes."""

    found: GroupNorm
    shape: Dims


class NormsOfGroups(Rule[_Groups]):
    """Keep the axes of what is normalised in groups."""

    name = "norms-of-groups"
    ops = ("Reshape",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Groups | Refusal | None:
        """Match norms between a Reshape to groups of one axis and the Reshape back."""
        found = group_norm(node)
        if found is None or len(found.rows) != 3:
            return None
        norm, shape, rows = found.norm, found.shape, found.rows
        channels, groups = shape[1], rows[1]
        if any(not isinstance(size, int) for size in (*shape[1:], groups)):
            return Refusal(
                norm.name, f"a size of '{found.source.name}' behind the first is not known"
            )
        if not isinstance(channels, int) or not isinstance(groups, int):
            return None
        if channels % groups or not same_dims(rows[:1], shape[:1]):
            return Refusal(norm.name, f"rows of '{norm.name}' are no groups of {channels} channels")
        reason = why_shared(graph, norm.outputs[0])
        wanted: Dims = [shape[0], groups, channels // groups, *shape[2:]]
        return refusal(norm, reason) or _Groups(found, wanted)

    def rewrite(self, editor: GraphEditor, match: _Groups) -> None:
        """Write the norm between axes that are kept, and the Reshape back from there."""
        source, norm, shape = match.found.source, match.found.norm, match.shape
        sizes = editor.constant(f"{norm.name}_groups", _target(shape))
        rows = editor.add("Reshape", [source, sizes], like=source, shape=shape)
        result = norm.outputs[0]
        normal = gs.Variable(editor.new_name(f"{result.name}_groups"), result.dtype, list(shape))
        norm.inputs, norm.outputs = [rows, *norm.inputs[1:]], [normal]
        back = editor.constant(f"{norm.name}_places", _target(match.found.shape))
        match.found.last.inputs = [normal, back]
        match.found.last.attrs.pop("allowzero", None)


def _target(shape: Dims) -> NDArray[np.int64]:
    """What a Reshape is given that leaves the batch as it is."""
    return np.array([0, *shape[1:]], np.int64)
