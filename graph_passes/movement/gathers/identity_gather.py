"""Read a Gather that only counts through its data as the Reshape that it is.

    Gather(Reshape(x, [-1]), i)  ->  Reshape(x)      i = 0, 1, 2, ... in row-major order, to the end
    GatherND(x, i)               ->  Reshape(x)      i[b, 0, k] = (b, k), of all b and k

torch writes ``as_strided`` so, e.g. behind the average pool of ConvNeXt and Swin, and an attention
mask that is indexed by batch and key. The index is a constant, or computed from Ranges over free
dimensions.
"""

from dataclasses import replace

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Replacement, ReplacementRule
from wpk.graph_passes.core.query import Dims, dims, is_op, made_by
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.core.sizes import ONE, Size, known_sizes, product
from wpk.graph_passes.movement.gathers.counting import (
    Count,
    count_of,
    sum_of,
    times,
)

_VIEWS = ("Reshape", "Flatten")


class IdentityGather(ReplacementRule):
    """Replace a Gather of all elements in order by a Reshape."""

    name = "identity-gather"
    ops = ("Gather", "GatherND")

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | None:
        """Match a gather along the first dimensions."""
        source = node.inputs[0]
        shape = dims(source)
        along = node.attrs.get("axis", 0) or node.attrs.get("batch_dims", 0)
        if not shape or isinstance(source, gs.Constant) or along:
            return None
        if is_op(node, "Gather"):
            index, rows, depth = count_of(node.inputs[1]), _rows(source), 1
        else:
            index, rows, depth = _places(node.inputs[1], shape)
        if index is None or not index.is_row_major or index.total != rows:
            return None
        target = reshape_target(shape, [*_shape(index), *shape[depth:]])
        flat = made_by(source, *_VIEWS) if target is None and is_op(node, "Gather") else None
        if (
            flat is not None
        ):  # the rows may be of several dimensions, which the view's own input names
            source = flat.inputs[0]
            target = reshape_target(dims(source), [*_shape(index), *shape[depth:]])
        if target is None:
            return None
        sizes = NewConstant(f"{node.name}_shape", np.array(target, np.int64))
        return Replacement(node.outputs[0], "Reshape", [source, sizes])


def _places(index: gs.Tensor, shape: Dims) -> tuple[Count | None, Size | None, int]:
    """Return how the places that tuples of indices name count, how many there are, and the tuples' length."""
    joined = made_by(index, "Concat")
    parts = joined.inputs if joined is not None else [index]
    depth = len(parts)
    sizes, counts = known_sizes(shape[:depth]), [count_of(part) for part in parts]
    rank = len(index.shape or ())
    last = joined is None or int(joined.attrs["axis"]) in (-1, rank - 1)
    if sizes is None or len(sizes) < depth or not last:
        return None, None, depth
    total: Count | None = Count((), ())
    for number, count in enumerate(counts):
        if count is None or total is None or len(count.sizes) != rank or count.sizes[-1] != ONE:
            return None, None, depth
        inner = replace(count, steps=count.steps[:-1], sizes=count.sizes[:-1])
        total = sum_of(total, times(inner, product(sizes[number + 1 :])))
    return total, product(sizes), depth


def _shape(index: Count) -> Dims:
    """The index's shape; a size that is more than one free dimension is open."""
    return [_dim(size) for size in index.sizes]


def _dim(size: Size) -> int | str | None:
    if not size.free:
        return size.factor
    return size.free[0] if size == Size(1, size.free[:1]) else None


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
