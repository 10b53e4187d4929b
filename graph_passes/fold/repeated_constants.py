"""Compute on a constant before it is repeated over a free batch, so that it stays a constant.

    f(Expand(c, t))               ->  Expand(f(c), t')        f element-wise, its other operands so as well
    g(Expand(c, [batch, n]))      ->  Expand(g(c'), t')       g works apart from the first axes

c' is the constant of one element of the batch. g cuts, joins, turns, counts up or looks up: exporters
make positions, masks and what is looked up by them so, for every element of the batch anew.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    integers,
    is_op,
    made_by,
    rank,
    static_shape,
)
from wpk.graph_passes.fold.expanded import expand_target
from wpk.graph_passes.movement.reshape_chains import RESHAPES


class _Repeated(NamedTuple):
    """A node, the shape of its result, and how many of its first axes only repeat; None if any axis may."""

    node: gs.Node
    shape: Dims
    axes: int | None


class RepeatedConstants(Rule[_Repeated]):
    """Move each Expand of a constant behind what reads only such."""

    name = "repeated-constants"

    def match(self, graph: gs.Graph, node: gs.Node) -> _Repeated | None:
        """Match a node that reads constants and repeated ones, and whose shape is known."""
        if not node.outputs or not any(_is_repeated(tensor) for tensor in node.inputs):
            return None
        if is_elementwise(node) or is_op(node, "Expand"):
            found = _anywhere(node)
        else:
            found = _behind_first_axes(node) if is_op(node, *RESHAPES, *_APART) else None
        free = {size for tensor in graph.inputs for size in dims(tensor) or [] if size is not None}
        named = found is not None and all(isinstance(n, int) or n in free for n in found.shape)
        return found if named else None

    def rewrite(self, editor: GraphEditor, match: _Repeated) -> None:
        """Write the node for the constants, and the Expand behind it."""
        output = match.node.outputs[0]
        small = _small(editor, match)
        target = expand_target(editor, output.name, match.shape)
        assert target is not None  # each free dimension is one of an input
        editor.replace(
            output, editor.add("Expand", [small, target], like=output, shape=match.shape)
        )


def _is_repeated(tensor: gs.Tensor) -> bool:
    expand = made_by(tensor, "Expand")
    return expand is not None and isinstance(expand.inputs[0], gs.Constant)


def _source(tensor: gs.Tensor) -> gs.Tensor:
    return tensor.inputs[0].inputs[0] if _is_repeated(tensor) else tensor


def _anywhere(node: gs.Node) -> _Repeated | None:
    data = node.inputs[:1] if is_op(node, "Expand") else node.inputs
    fixed = (isinstance(_source(tensor), gs.Constant) or tensor.is_empty() for tensor in data)
    shape = dims(node.outputs[0])
    if shape is None or None in shape or not all(fixed):
        return None
    return _Repeated(node, shape, None)


def _behind_first_axes(node: gs.Node) -> _Repeated | None:
    """Match where the axes in front of all repeated inputs are the same free ones, and nothing mixes them."""
    fronts = {_front(tensor) for tensor in node.inputs if _is_repeated(tensor)}
    front = fronts.pop() if len(fronts) == 1 else None
    shape = dims(node.outputs[0])
    if not front or shape is None or len(shape) < len(front):
        return None
    rest = shape[len(front) :]
    if not all(isinstance(size, int) for size in rest):
        return None
    axes = len(front)
    if is_op(node, *RESHAPES):
        kept = _keeps_front(node, front, shape)
    else:
        kept = shape[:axes] == list(front) and _APART[node.op](node, axes)
    return _Repeated(node, [*front, *rest], axes) if kept else None


def _front(tensor: gs.Tensor) -> tuple[str, ...]:
    """The free dimensions in front of a tensor whose other ones are numbers; none where it is another."""
    shape, source = dims(tensor) or [], _source(tensor)
    front = [size for size in shape if isinstance(size, str)]
    own = [1] * (len(shape) - len(source.shape)) + list(source.shape)
    whole = [*front, *(size for size in shape if isinstance(size, int))] == shape
    return tuple(front) if whole and own[: len(front)] == [1] * len(front) else ()


def _keeps_front(node: gs.Node, front: tuple[str, ...], shape: Dims) -> bool:
    """Whether a Reshape only changes what lies behind; a size that is not known is what is left."""
    axes = len(front)
    known = [size in (None, name) for size, name in zip(shape, front, strict=False)]
    before = [int(size or 0) for size in (dims(node.inputs[0]) or [])[axes:]]
    after = [int(size or 0) for size in shape[axes:]]
    return (
        all(known) and shape[:axes].count(None) <= 1 and math.prod(before) == math.prod(after) != 0
    )


def _cuts_behind(node: gs.Node, axes: int) -> bool:
    starts = integers(given(node, 1))
    places = integers(given(node, 3))
    along = list(range(len(starts or ()))) if given(node, 3) is None else places
    parameters = all(isinstance(t, gs.Constant) or t.is_empty() for t in node.inputs[1:])
    return (
        starts is not None and along is not None and parameters and _are_behind(node, along, axes)
    )


def _joins_behind(node: gs.Node, axes: int) -> bool:
    return all(map(_is_repeated, node.inputs)) and _are_behind(node, [node.attrs["axis"]], axes)


def _counts_behind(node: gs.Node, axes: int) -> bool:
    along = integers(node.inputs[1])
    return along is not None and _are_behind(node, along, axes)


def _turns_behind(node: gs.Node, axes: int) -> bool:
    return list(node.attrs.get("perm", []))[:axes] == list(range(axes))


def _looks_up(node: gs.Node, axes: int) -> bool:
    """Whether repeated indices pick of the first axis of a constant, or constant ones behind the batch."""
    data, index = node.inputs
    along = int(node.attrs.get("axis", 0))
    if _is_repeated(index):
        return isinstance(data, gs.Constant) and along % len(data.shape) == 0
    return isinstance(index, gs.Constant) and _are_behind(node, [along], axes)


def _looks_up_tuples(node: gs.Node, axes: int) -> bool:
    data, index = node.inputs
    single = isinstance(data, gs.Constant) and not node.attrs.get("batch_dims", 0)
    return single and (rank(index) or 0) > axes


def _are_behind(node: gs.Node, along: list[int], axes: int) -> bool:
    count = rank(node.inputs[0]) or 1
    return all(axis % count >= axes for axis in along)


_APART: dict[str, Callable[[gs.Node, int], bool]] = {
    "Slice": _cuts_behind,
    "Concat": _joins_behind,
    "CumSum": _counts_behind,
    "Transpose": _turns_behind,
    "Gather": _looks_up,
    "GatherND": _looks_up_tuples,
}
"""Nodes that may work apart from the first axes, and whether one does."""


def _small(editor: GraphEditor, match: _Repeated) -> gs.Tensor:
    """What the node makes of the constants."""
    node, output = match.node, match.node.outputs[0]
    if match.axes is None:
        inputs = [_source(tensor) for tensor in node.inputs]
        if is_op(node, "Expand"):
            return inputs[0]
        shapes = [static_shape(tensor) or [] for tensor in inputs if not tensor.is_empty()]
        shape: Dims = list(np.broadcast_shapes(*map(tuple, shapes)))
        return editor.add(node.op, inputs, like=output, shape=shape, attrs=node.attrs)
    rows = [_row(editor, tensor, match.axes) for tensor in node.inputs]
    shape = [*[1] * match.axes, *match.shape[match.axes :]]
    if is_op(node, *RESHAPES):
        target = editor.constant(f"{output.name}_row", np.array(shape, np.int64))
        return editor.add("Reshape", [rows[0], target], like=output, shape=shape)
    return editor.add(node.op, rows, like=output, shape=shape, attrs=node.attrs)


def _row(editor: GraphEditor, tensor: gs.Tensor, axes: int) -> gs.Tensor:
    """The constant of one element of the batch, which is repeated; other tensors as they are."""
    source = _source(tensor)
    shape: Dims = [*[1] * axes, *(dims(tensor) or [])[axes:]]
    if source is tensor or static_shape(source) == shape:
        return source
    target = editor.constant(f"{tensor.name}_row", np.array(shape, np.int64))
    return editor.add("Expand", [source, target], like=tensor, shape=shape)
