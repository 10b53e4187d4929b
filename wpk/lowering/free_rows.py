"""Nodes that take or repeat rows by a free dimension: of a table, of every sequence, the first of one."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.graph_passes import Size, free_part, sizes_in
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.free_axis import broadcast_shapes, extent_of, is_free, stand_in
from wpk.lowering.state import LoweringState
from wpk.lowering.views import View
from wpk.problems import PlacedRows, RowPlacing


def take_free_part(state: LoweringState, node: gs.Node) -> bool:
    """Make a view of the first rows of a constant; False for any other node.

    The plan takes no more of the dimension than the constant has rows.
    """
    part = free_part(node)
    if part is None or part.dimension not in state.free:
        return False
    whole = state.view(node.inputs[0])
    rows = stand_in(part.dimension, list(state.free))
    shape = (*whole.shape[: part.axis], rows, *whole.shape[part.axis + 1 :])
    state.views[node.outputs[0].name] = replace(whole, shape=shape, leading=extent_of(shape[0]))
    known = state.largest.get(part.dimension, part.rows)
    state.largest[part.dimension] = min(known, part.rows)
    return True


def spread(state: LoweringState, node: gs.Node) -> bool:
    """Copy the rows of an Expand to where free dimensions repeat them; False for any other Expand."""
    sizes, view = sizes_in(node.inputs[1]), state.view(node.inputs[0])
    if sizes is None or len(view.shape) > len(sizes):
        return False
    target = tuple(_stand_in(size, list(state.free)) for size in sizes)
    shape = broadcast_shapes(view.shape, target)
    own = (1,) * (len(shape) - len(view.shape)) + view.shape
    found = _placing(own, shape)
    if found is None:
        return False
    placing, last, cols = found
    first = last if placing is RowPlacing.REPEATED else _outer_axes(own, last)
    outer, inner = prod(shape[:first]), prod(shape[first : last + 1])
    source = inner if placing is RowPlacing.REPEATED else outer
    rows = view.reshaped((source, cols))
    _emit(state, node, placing, (outer, inner), rows, shape)
    return True


def _stand_in(size: Size, free: Sequence[str]) -> int:
    return size.factor * prod(stand_in(name, free) for name in size.free)


def take_first(state: LoweringState, node: gs.Node, source: View) -> bool:
    """Copy the first row of every sequence."""
    batch, length, *rest = source.shape
    cols = prod(rest)
    rows = source.reshaped((batch * length, cols))
    _emit(state, node, RowPlacing.FIRST, (batch, length), rows, (batch, *rest))
    return True


def _placing(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[RowPlacing, int, int] | None:
    """How rows are placed, the last axis of free dimensions, and elements behind it."""
    last = max((axis for axis, size in enumerate(shape) if is_free(size)), default=0)
    if last == 0 or own[last + 1 :] != shape[last + 1 :] or own[: last + 1] == shape[: last + 1]:
        return None
    cols = prod(shape[last + 1 :])
    if own[last] == shape[last] and all(size == 1 for size in own[:last]):
        return RowPlacing.REPEATED, last, cols
    outer = _outer_axes(own, last)
    if outer and own[:outer] == shape[:outer] and any(map(is_free, own[:outer])):
        return RowPlacing.SPREAD, last, cols
    return None


def _outer_axes(own: tuple[int, ...], last: int) -> int:
    """How many axes in front of the free ones are not repeated; 0 where others lie behind them."""
    repeated = [axis for axis in range(last + 1) if own[axis] == 1]
    first = repeated[0] if repeated else 0
    return first if repeated == list(range(first, last + 1)) else 0


def _emit(
    state: LoweringState,
    node: gs.Node,
    placing: RowPlacing,
    axes: tuple[int, int],
    rows: View,
    shape: tuple[int, ...],
) -> None:
    output = node.outputs[0]
    home = state.memory.home(output.name, rows.dtype, shape, extent_of(shape[0]))
    state.views[output.name] = home
    outer, inner = map(extent_of, axes)
    leading: Extent = outer if placing is RowPlacing.FIRST else outer.of(inner)
    y = home.reshaped((leading.value, rows.shape[-1]))
    problem = PlacedRows(placing, outer, inner, rows.shape[-1], rows.tensor(), y.tensor())
    state.emit(node.name, (node.name,), LoweredProblem(problem, (rows,)), output.name, node.name)
