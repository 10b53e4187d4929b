"""Read a Gather of neighbours as the Slice that it is.

    Gather(x, [3, 4, 5])  ->  Slice(x, 3, 6)

torch writes ``x[..., [-2], :]`` so, e.g. Falcon's one head of keys in its joined projection. A slice is a
view of memory, or the views behind it go into the operators that read them.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Replacement, ReplacementRule
from wpk.graph_passes.core.query import dims, integers, rank

_LEAST_RANK = 2
"""Of the data: vectors are shapes, whose parts other passes know as Gathers."""


class RangeGather(ReplacementRule):
    """Replace a Gather of constant indices that follow each other by a Slice."""

    name = "range-gather"
    ops = ("Gather",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | None:
        """Match a vector of indices along a dimension of known size."""
        del graph
        source, shape = node.inputs[0], dims(node.inputs[0]) or []
        index = integers(node.inputs[1])
        if isinstance(source, gs.Constant) or len(shape) < _LEAST_RANK:
            return None
        axis = int(node.attrs.get("axis", 0)) % len(shape)
        size = shape[axis]
        if not index or rank(node.inputs[1]) != 1 or not isinstance(size, int):
            return None
        if any(not -size <= each < size for each in index):
            return None
        first, *others = (each % size for each in index)
        if others != list(range(first + 1, first + len(index))):
            return None
        bounds = [
            NewConstant(f"{node.name}_{what}", np.array([value], np.int64))
            for what, value in (("begin", first), ("end", first + len(index)), ("axis", axis))
        ]
        return Replacement(node.outputs[0], "Slice", [source, *bounds])
