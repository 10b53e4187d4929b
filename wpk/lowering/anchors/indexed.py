"""GatherElements and GatherND: elements read where an index tensor says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_graphsurgeon as gs

from wpk.expression import Acc
from wpk.extent import Extent
from wpk.lowering.anchors.base import AnchorRule, AnchorShape, Inputs, LoweredProblem, only_view
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.free_axis import is_free
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import NotAViewError, View
from wpk.problems import IndexedRead

_MAX_AXES = 4


@dataclass(frozen=True)
class _Places:
    """What a node reads, over the domain of its output.

    Attributes:
        data: Strides of the data; 0 along axes that lead to no other element.
        index: Strides of the index's first number.
        sizes: Extents of the axes that indices pick along.
        steps: Strides of the data along these.
        next: Elements between the numbers of an index.
    """

    data: tuple[int, ...]
    index: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    next: int


class GatherElementsRule(AnchorRule):
    """Each element by an index of its own, along one axis."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        data, index, axis = _elements(node, inputs)
        require_within(node.op, data, index, axis)
        return index.shape, index.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        data, index, axis = _elements(anchor.node, anchor.inputs)
        steps = (*data.strides[:axis], 0, *data.strides[axis + 1 :])
        places = _Places(steps, index.strides, (data.shape[axis],), (data.strides[axis],), 0)
        return _lowered(data, index, y, places)


class GatherNDRule(AnchorRule):
    """Slices, each by a tuple of indices."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        data, index, batch = _slices(node, inputs)
        last = batch + index.shape[-1]
        if batch < 0 or batch >= len(index.shape) or not batch < last <= len(data.shape):
            raise RefusedError(
                f"GatherND of {data.shape} by {index.shape} with {batch} axes of batches"
            )
        if data.shape[:batch] != index.shape[:batch]:
            raise RefusedError(f"GatherND of batches {data.shape[:batch]}, {index.shape[:batch]}")
        require_fixed(node.op, data, range(batch, last))
        shape = (*index.shape[:-1], *data.shape[last:])
        leading = index.leading if index.shape[:-1] else Extent(shape[0] if shape else 1)
        return shape or (1,), leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        data, index, batch = _slices(anchor.node, anchor.inputs)
        last, tuples = batch + index.shape[-1], len(index.shape) - 1
        rest = len(data.shape) - last
        steps = (*data.strides[:batch], *(0,) * (tuples - batch), *data.strides[last:])
        numbers = (*index.strides[:-1], *(0,) * rest)
        places = _Places(
            steps or (0,),
            numbers or (0,),
            data.shape[batch:last],
            data.strides[batch:last],
            index.strides[-1],
        )
        return _lowered(data, index, y, places)


def _elements(node: gs.Node, inputs: Inputs) -> tuple[View, View, int]:
    data, index = only_view(inputs[0], "the data"), only_view(inputs[1], "the index")
    return data, index, int(node.attrs.get("axis", 0)) % len(data.shape)


def _slices(node: gs.Node, inputs: Inputs) -> tuple[View, View, int]:
    data, index = only_view(inputs[0], "the data"), only_view(inputs[1], "the index")
    return data, index, int(node.attrs.get("batch_dims", 0))


def require_within(op: str, data: View, index: View, axis: int) -> None:
    """Check that an index tensor names no more than the data has, along all axes but one.

    Raises:
        RefusedError: It does, or that is not known.
    """
    if len(data.shape) != len(index.shape):
        raise RefusedError(f"{op} of {len(data.shape)} axes by {len(index.shape)}")
    require_fixed(op, data, (axis,))
    for place, (size, count) in enumerate(zip(data.shape, index.shape, strict=True)):
        if place != axis and (count > size or (is_free(count) and count != size)):
            raise RefusedError(f"{op} of {data.shape} along axis {axis} by {index.shape}")


def require_fixed(op: str, data: View, axes: Sequence[int]) -> None:
    """Check that no index picks along the free dimension.

    Raises:
        RefusedError: One does.
    """
    if 0 in axes and data.leading.free:
        raise RefusedError(f"{op} along the free dimension {data.leading.free!r}")


def require_bare(anchor: Anchor, result: Computation) -> None:
    """Check that nothing else is computed in a body.

    Raises:
        RefusedError: Something is.
    """
    if result.expression != Acc():
        raise RefusedError(f"element-wise work fused into {anchor.node.op}")


def _lowered(data: View, index: View, y: View, places: _Places) -> LoweredProblem:
    if y.padding and (len(y.shape) == 1 or y.strides[-1] != 1):
        raise NotAViewError(y.source, y.shape, y.shape)
    over = (
        y,
        replace(data, shape=y.shape, strides=places.data, leading=y.leading, padding=0),
        replace(index, shape=y.shape, strides=places.index, leading=y.leading, padding=0),
    )
    shape, views = collapse(over, _MAX_AXES, len(y.shape) - 1 if y.padding else None)
    if not y.leading.free and len(shape) < _MAX_AXES:  # the leading axis is no row
        shape, views = (1, *shape), [_behind_one(view) for view in views]
    target, source, numbers = views
    picked = replace(
        source,
        shape=(*shape, *places.sizes),
        strides=(*source.strides, *places.steps),
    )
    tuples = replace(
        numbers,
        shape=(*shape, len(places.sizes)),
        strides=(*numbers.strides, places.next),
    )
    problem = IndexedRead(
        leading=target.leading,
        shape=shape,
        sizes=places.sizes,
        data=picked.tensor(),
        index=tuples.tensor(),
        y=target.tensor(),
    )
    return LoweredProblem(problem, (picked, tuples))


def _behind_one(view: View) -> View:
    """The view with a leading axis of one element in front."""
    shape, strides = (1, *view.shape), (0, *view.strides)
    return replace(view, leading=Extent(1), shape=shape, strides=strides)
