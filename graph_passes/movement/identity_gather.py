"""Read a Gather that only counts through its data as the Reshape that it is.

    Gather(Reshape(x, [-1]), i)  ->  Reshape(x)      i = 0, 1, 2, ... in row-major order, to the end

torch writes ``as_strided`` so, e.g. behind the average pool of ConvNeXt and Swin, and an attention
mask that is indexed by batch and key. The index is a constant, or computed from Ranges over free
dimensions.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Replacement, ReplacementRule
from wpk.graph_passes.core.query import Dims, dims, made_by
from wpk.graph_passes.movement.counting import Count, Size, count_of, known_sizes, product
from wpk.graph_passes.movement.reshape_target import reshape_target

_VIEWS = ("Reshape", "Flatten")


class IdentityGather(ReplacementRule):
    """Replace a Gather of all elements in order by a Reshape."""

    name = "identity-gather"
    ops = ("Gather",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | None:
        """Match a Gather along the first dimension."""
        source = node.inputs[0]
        shape = dims(source)
        if not shape or isinstance(source, gs.Constant) or node.attrs.get("axis", 0) != 0:
            return None
        index, rows = count_of(node.inputs[1]), _rows(source)
        if index is None or not index.is_row_major or index.total != rows:
            return None
        target = reshape_target(shape, [*_shape(index), *shape[1:]])
        if target is None:
            return None
        sizes = NewConstant(f"{node.name}_shape", np.array(target, np.int64))
        return Replacement(node.outputs[0], "Reshape", [source, sizes])


def _shape(index: Count) -> Dims:
    """The index's shape; a size that holds free dimensions is open."""
    return [None if size.free else size.factor for size in index.sizes]


def _rows(source: gs.Tensor) -> Size | None:
    """The first extent of a tensor, which a view may have made of several dimensions."""
    own = known_sizes((dims(source) or [])[:1])
    if own is not None:
        return own[0]
    view = made_by(source, *_VIEWS)
    before = known_sizes(dims(view.inputs[0])) if view is not None else None
    rest = known_sizes((dims(source) or [])[1:])
    if before is None or rest is None:
        return None
    whole, each = product(before), product(rest)
    if each.free or not each.factor or whole.factor % each.factor:
        return None
    return Size(whole.factor // each.factor, whole.free)
