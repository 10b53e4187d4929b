"""ScatterElements, ScatterND and OneHot: elements written where an index tensor says."""

from dataclasses import replace
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    constant_values,
    only_view,
)
from wpk.lowering.anchors.indexed import require_bare, require_fixed, require_within
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Advance, IndexedWrite, WriteKind


class ScatterElementsRule(AnchorRule):
    """Each update by an index of its own, along one axis."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        data, index, updates = _operands(inputs)
        axis = int(node.attrs.get("axis", 0)) % len(data.shape)
        require_within(node.op, data, index, axis)
        others = [place for place in range(len(data.shape)) if place != axis]
        if any(data.shape[place] != index.shape[place] for place in others):
            raise RefusedError(f"{node.op} into a part of {data.shape}, by {index.shape}")
        if index.shape != updates.shape or (axis == 0 and index.leading.free):
            raise RefusedError(f"{node.op} of updates {updates.shape} by indices {index.shape}")
        _kind(node)
        return data.shape, data.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        data, index, updates = _operands(anchor.inputs)
        axis = int(anchor.attributes.get("axis", 0)) % len(data.shape)
        size, count = data.shape[axis], index.shape[axis]
        outer, inner = prod(data.shape[:axis]), prod(data.shape[axis + 1 :])
        index = index.reshaped((outer, 1, count, inner))
        return _lowered(
            _kind(anchor.node),
            (size,),
            data.reshaped((outer, 1, size, inner)),
            replace(index, shape=(*index.shape, 1), strides=(*index.strides, 0)),
            updates.reshaped((outer, 1, count, inner)),
            y.reshaped((outer, 1, size, inner)),
        )


class ScatterNDRule(AnchorRule):
    """Slices, each by a tuple of indices."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        data, index, updates = _operands(inputs)
        numbers = index.shape[-1]
        rest = data.shape[numbers:]
        if not 1 <= numbers <= len(data.shape):
            raise RefusedError(f"ScatterND of {data.shape} by {index.shape}")
        if updates.shape != ((*index.shape[:-1], *rest) or (1,)):
            raise RefusedError(f"ScatterND of updates {updates.shape} by indices {index.shape}")
        require_fixed(node.op, data, range(numbers))
        if index.leading.free:
            raise RefusedError("ScatterND of a free number of updates")
        _kind(node)
        return data.shape, data.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        data, index, updates = _operands(anchor.inputs)
        numbers, count = index.shape[-1], prod(index.shape[:-1])
        sizes, inner = data.shape[:numbers], prod(data.shape[numbers:])
        whole = (1, 1, prod(sizes), inner)
        tuples = index.reshaped((count, numbers))
        step, number = tuples.strides
        shape, strides = (1, 1, count, inner, numbers), (0, 0, step, 0, number)
        return _lowered(
            _kind(anchor.node),
            sizes,
            data.reshaped(whole),
            replace(tuples, leading=Extent(1), shape=shape, strides=strides),
            updates.reshaped((1, 1, count, inner)),
            y.reshaped(whole),
        )


class OneHotRule(AnchorRule):
    """One value where the index is, and another everywhere else along a new axis."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        index = only_view(inputs[0], "the index")
        if index.dtype.is_float:
            raise RefusedError(f"OneHot of {index.dtype} indices")
        if inputs[1] is None:
            raise RefusedError("OneHot without its depth")
        depth = int(constant_values(inputs[1], context, "the depth of OneHot").reshape(-1)[0])
        if depth < 1:
            raise RefusedError(f"OneHot of depth {depth}")
        axis, given = _new_axis(node, inputs)
        shape = (*given[:axis], depth, *given[axis:])
        return shape, index.leading if axis else Extent(depth)

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        index = only_view(anchor.inputs[0], "the index")
        values = only_view(anchor.inputs[2], "the values")
        axis, given = _new_axis(anchor.node, anchor.inputs)
        outer, inner, depth = prod(given[:axis]), prod(given[axis:]), y.shape[axis]
        index = index.reshaped((outer, 1, 1, inner))
        off, on = (values.sliced(0, place, 1).reshaped((1, 1, 1, 1)) for place in (0, 1))
        return _lowered(
            WriteKind.NONE,
            (depth,),
            off.broadcast((outer, 1, depth, inner), index.leading),
            replace(index, shape=(*index.shape, 1), strides=(*index.strides, 0)),
            on.broadcast((outer, 1, 1, inner), index.leading),
            y.reshaped((outer, 1, depth, inner)),
            skips=True,
        )


class TensorScatterRule(AnchorRule):
    """New rows of a cache, of each batch from an index of its own on."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        past, update = only_view(inputs[0], "the cache"), only_view(inputs[1], "the update")
        axis = int(node.attrs.get("axis", -2)) % len(past.shape)
        others = [place for place in range(len(past.shape)) if place != axis]
        fits = len(past.shape) == len(update.shape) and update.shape[axis] <= past.shape[axis]
        if axis == 0 or not fits or any(past.shape[i] != update.shape[i] for i in others):
            raise RefusedError(f"TensorScatter of {update.shape} into {past.shape}, axis {axis}")
        _advance(node)
        return past.shape, past.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        require_bare(anchor, result)
        past, update = (only_view(each, "an input") for each in anchor.inputs[:2])
        axis = int(anchor.attributes.get("axis", -2)) % len(past.shape)
        batch, heads, inner = past.shape[0], prod(past.shape[1:axis]), prod(past.shape[axis + 1 :])
        size, count = past.shape[axis], update.shape[axis]
        given = anchor.inputs[2] if len(anchor.inputs) > 2 else None
        if given is None:
            index = context.added(f"{anchor.node.name}.write_indices", np.zeros(1, np.int64))
        else:
            index = only_view(given, "the index")
        index = index.broadcast((batch,), past.leading)
        shape, strides = (batch, heads, count, inner, 1), (index.strides[0], 0, 0, 0, 0)
        return _lowered(
            WriteKind.NONE,
            (size,),
            past.reshaped((batch, heads, size, inner)),
            replace(index, shape=shape, strides=strides),
            update.reshaped((batch, heads, count, inner)),
            y.reshaped((batch, heads, size, inner)),
            advance=_advance(anchor.node),
        )


def _advance(node: gs.Node) -> Advance:
    text = node.attrs.get("mode", "linear")
    text = text.decode() if isinstance(text, bytes) else str(text)
    if text not in (Advance.LINEAR, Advance.CIRCULAR):
        raise RefusedError(f"TensorScatter in mode {text!r}")
    return Advance(text)


def _operands(inputs: Inputs) -> tuple[View, View, View]:
    data, index, updates = (
        only_view(symbol, what)
        for symbol, what in zip(inputs, ("the data", "the index", "the updates"), strict=True)
    )
    return data, index, updates


def _new_axis(node: gs.Node, inputs: Inputs) -> tuple[int, tuple[int, ...]]:
    """Where a OneHot adds its axis, and the shape of its index."""
    shape = only_view(inputs[0], "the index").shape
    return int(node.attrs.get("axis", -1)) % (len(shape) + 1), shape


def _kind(node: gs.Node) -> WriteKind:
    text = node.attrs.get("reduction", "none")
    text = text.decode() if isinstance(text, bytes) else str(text)
    if text not in list(WriteKind):
        raise RefusedError(f"{node.op} with reduction {text!r}")
    return WriteKind(text)


def _lowered(
    kind: WriteKind,
    sizes: tuple[int, ...],
    data: View,
    index: View,
    updates: View,
    y: View,
    *,
    skips: bool = False,
    advance: Advance = Advance.NONE,
) -> LoweredProblem:
    """The problem of views over (outer, 1, places or updates, inner)."""
    problem = IndexedWrite(
        kind=kind,
        leading=y.leading,
        outer=y.shape[:2],
        sizes=sizes,
        count=updates.shape[2],
        inner=y.shape[3],
        skips=skips,
        advance=advance,
        data=data.tensor(),
        index=index.tensor(),
        updates=updates.tensor(),
        y=y.tensor(),
    )
    return LoweredProblem(problem, (data, index, updates))
