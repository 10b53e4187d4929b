"""Compute on a constant before it is repeated over a free batch, so that it stays a constant.

    f(Expand(c, t))               ->  Expand(f(c), t')        f element-wise, its other operands so as well
    g(Expand(c, [batch, n]))      ->  Expand(g(c'), t')       g works apart from the first axes

c' is the constant of one element of the batch. g cuts, joins, turns, counts up, looks up or multiplies by
a weight: exporters make positions, masks, what is looked up by them, and queries that are learned so, for
every element of the batch anew. Dimensions of 1 before the batch are put there last, by an Unsqueeze.
"""

import math
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    integers,
    is_op,
    made_by,
    producer,
    rank,
    static_shape,
)
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES
from wpk.graph_passes.movement.repeats.expanded import expand_target


class _Repeated(NamedTuple):
    """A node whose result is repeated.

    Attributes:
        node: It.
        shape: Of its result.
        axes: The count of first axes along which its repeated inputs only repeat; None if any axis may.
        made: The same of the result.
    """

    node: gs.Node
    shape: Dims
    axes: int | None
    made: int = 0


class RepeatedConstants(Rule[_Repeated]):
    """Move each Expand of a constant behind what reads only such."""

    name = "repeated-constants"

    def match(self, graph: gs.Graph, node: gs.Node) -> _Repeated | None:
        """Match a node that reads constants and repeated ones, and whose shape is known."""
        if not node.outputs or not any(map(_is_repeated, node.inputs)) or _adds_ones(node):
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
        editor.replace(match.node.outputs[0], _repeated(editor, match, _small(editor, match)))


def _is_repeated(tensor: gs.Tensor) -> bool:
    return _source(tensor) is not tensor


def _source(tensor: gs.Tensor) -> gs.Tensor:
    """The constant that a tensor repeats, maybe behind more dimensions of 1; other tensors are their own."""
    expand, view = made_by(tensor, "Expand"), producer(tensor)
    if view is not None and _adds_ones(view):
        expand = made_by(view.inputs[0], "Expand")
    fixed = expand is not None and isinstance(expand.inputs[0], gs.Constant)
    return expand.inputs[0] if expand is not None and fixed else tensor


def _adds_ones(node: gs.Node) -> bool:
    """Whether a node puts dimensions of 1 in front, and no more."""
    if not is_op(node, *RESHAPES):
        return False
    before, after = dims(node.inputs[0]), dims(node.outputs[0])
    if before is None or after is None or None in after:
        return False
    ones = len(after) - len(before)
    return ones > 0 and after == [*[1] * ones, *before]


def _anywhere(node: gs.Node) -> _Repeated | None:
    data = node.inputs[:1] if is_op(node, "Expand") else node.inputs
    fixed = (isinstance(_source(tensor), gs.Constant) or tensor.is_empty() for tensor in data)
    shape = dims(node.outputs[0])
    if shape is None or None in shape or not all(fixed):
        return None
    return _Repeated(node, shape, None)


def _behind_first_axes(node: gs.Node) -> _Repeated | None:
    """Match where the axes in front of all repeated inputs are the same free ones, and nothing mixes them."""
    fronts = {_front(dims(tensor), tensor) for tensor in node.inputs if _is_repeated(tensor)}
    front = fronts.pop() if len(fronts) == 1 else ()
    shape = dims(node.outputs[0])
    if not front or shape is None:
        return None
    axes = len(front)
    if is_op(node, *RESHAPES):
        named = _with_names(node, front, shape)
        return None if named is None else _Repeated(node, named, axes, len(_first(named)))
    rest = shape[axes:]
    kept = shape[:axes] == list(front) and all(isinstance(size, int) for size in rest)
    return _Repeated(node, shape, axes, axes) if kept and _APART[node.op](node, axes) else None


def _first(shape: Dims | None) -> tuple[int | str | None, ...]:
    """Dimensions of 1, and the free ones behind them; none where another one is not a number."""
    ones = list(takewhile(lambda size: size == 1, shape or []))
    names = list(takewhile(lambda size: isinstance(size, str), (shape or [])[len(ones) :]))
    rest = (shape or [])[len(ones) + len(names) :]
    return (*ones, *names) if names and all(isinstance(size, int) for size in rest) else ()


def _front(shape: Dims | None, tensor: gs.Tensor) -> tuple[int | str | None, ...]:
    """The first axes of a repeated tensor, along which it only repeats."""
    first, source = _first(shape), _source(tensor)
    own = [1] * (len(shape or []) - len(source.shape)) + list(source.shape)
    return first if own[: len(first)] == [1] * len(first) else ()


def _with_names(node: gs.Node, front: tuple[int | str | None, ...], shape: Dims) -> Dims | None:
    """The shape that a Reshape gives, if it only changes what lies behind; an unknown size is what is left."""
    names = [size for size in front if isinstance(size, str)]
    ones = len(list(takewhile(lambda size: size == 1, shape)))
    free, rest = shape[ones : ones + len(names)], shape[ones + len(names) :]
    known = [size in (None, name) for size, name in zip(free, names, strict=False)]
    before = [int(size or 0) for size in (dims(node.inputs[0]) or [])[len(front) :]]
    after = [size for size in rest if isinstance(size, int)]
    same = len(after) == len(rest) and math.prod(before) == math.prod(after) != 0
    fits = len(known) == len(names) and all(known) and free.count(None) <= 1
    return [*[1] * ones, *names, *rest] if same and fits else None


def _cuts_behind(node: gs.Node, axes: int) -> bool:
    starts = integers(given(node, 1))
    places = integers(given(node, 3))
    along = list(range(len(starts or ()))) if given(node, 3) is None else places
    parameters = all(map(is_constant, node.inputs[1:]))
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


def _multiplies(node: gs.Node, axes: int) -> bool:
    """Whether rows are multiplied by a weight, and those behind them, if any, by one that is added."""
    x, weight, *added = node.inputs
    rows = _is_repeated(x) and (rank(x) or 0) > axes and not node.attrs.get("transA", 0)
    alike = all(isinstance(t, gs.Constant) and set(t.shape[:-1]) <= {1} for t in added)
    return rows and isinstance(weight, gs.Constant) and len(weight.shape) == 2 and alike


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
    "MatMul": _multiplies,
    "Gemm": _multiplies,
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
    shape = [*[1] * match.made, *match.shape[match.made :]]
    if is_op(node, *RESHAPES):
        target = editor.constant(f"{output.name}_row", np.array(shape, np.int64))
        return editor.add("Reshape", [rows[0], target], like=output, shape=shape)
    return editor.add(node.op, rows, like=output, shape=shape, attrs=node.attrs)


def _repeated(editor: GraphEditor, match: _Repeated, small: gs.Tensor) -> gs.Tensor:
    """Repeat what was made, and put dimensions of 1 in front of the free ones."""
    output, shape = match.node.outputs[0], match.shape
    free = any(isinstance(size, str) for size in shape)
    ones = len(list(takewhile(lambda size: size == 1, shape))) if free else 0
    inner, own = shape[ones:], dims(small) or []
    if len(own) > len(inner):
        rest = own[len(own) - len(inner) :]
        sizes = editor.constant(f"{output.name}_inner", np.array(rest, np.int64))
        small = editor.add("Reshape", [small, sizes], like=output, shape=rest)
    target = expand_target(editor, output.name, inner)
    assert target is not None  # each free dimension is one of an input
    whole = editor.add("Expand", [small, target], like=output, shape=inner)
    if not ones:
        return whole
    front = editor.constant(f"{output.name}_front", np.arange(ones))
    return editor.add("Unsqueeze", [whole, front], like=output, shape=shape)


def _row(editor: GraphEditor, tensor: gs.Tensor, axes: int) -> gs.Tensor:
    """The constant of one element of the batch, which is repeated; other tensors as they are."""
    source = _source(tensor)
    shape: Dims = [*[1] * axes, *(dims(tensor) or [])[axes:]]
    if source is tensor or static_shape(source) == shape:
        return source
    target = editor.constant(f"{tensor.name}_row", np.array(shape, np.int64))
    return editor.add("Expand", [source, target], like=tensor, shape=shape)
