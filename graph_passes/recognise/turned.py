"""Turned halves and turned pairs: what a rotary embedding multiplies by its sines.

Concat(-x1, x0)                                 x = [x0 x1] along the last axis
Reshape(Concat(Unsqueeze(-x1), Unsqueeze(x0)))  x0 the elements of even places, x1 those of odd ones
"""

from collections.abc import Sequence
from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import dims, given, integers, is_op, made_by, producer, same_dims


class Turned(NamedTuple):
    """What is made on the way from a tensor to its turned halves, and whether they are pairs beside each other."""

    inner: list[gs.Tensor]
    pairs: bool


def turned(tensor: gs.Tensor, x: gs.Tensor) -> Turned | None:
    """Read a tensor as the turned halves or pairs of another; None where it is neither."""
    sizes = dims(x)
    if not sizes or not isinstance(sizes[-1], int) or sizes[-1] % 2:
        return None
    return _turned_halves(tensor, x, sizes[-1]) or _turned_pairs(tensor, x)


def _turned_halves(tensor: gs.Tensor, x: gs.Tensor, size: int) -> Turned | None:
    joined, axis = made_by(tensor, "Concat"), len(dims(x) or []) - 1
    if joined is None or len(joined.inputs) != 2 or int(joined.attrs["axis"]) % (axis + 1) != axis:
        return None
    negative = made_by(joined.inputs[0], "Neg")
    if negative is None:
        return None
    ranges = [range_of(part, x, axis) for part in (joined.inputs[1], negative.inputs[0])]
    if ranges != [(0, size // 2), (size // 2, size)]:
        return None
    return Turned([tensor, negative.outputs[0]], pairs=False)


def _turned_pairs(tensor: gs.Tensor, x: gs.Tensor) -> Turned | None:
    merged, axis = made_by(tensor, "Reshape"), len(dims(x) or []) - 1
    joined = made_by(merged.inputs[0], "Concat") if merged is not None else None
    if joined is None or len(joined.inputs) != 2 or not same_dims(dims(tensor), dims(x)):
        return None
    parts = [_last_axis_before(part, axis) for part in joined.inputs]
    negative = made_by(parts[0], "Neg") if parts[0] is not None else None
    if int(joined.attrs["axis"]) % (axis + 2) != axis + 1 or negative is None or parts[1] is None:
        return None
    places = [_every_second(part, x, axis) for part in (parts[1], negative.inputs[0])]
    if places != [0, 1]:
        return None
    inner = [tensor, joined.outputs[0], *joined.inputs, negative.outputs[0]]
    return Turned(inner, pairs=True)


def _last_axis_before(tensor: gs.Tensor, axis: int) -> gs.Tensor | None:
    """What a tensor was before it got one more axis of one element, its last."""
    node = made_by(tensor, "Unsqueeze", "Reshape")
    shape = dims(node.inputs[0]) if node is not None else None
    if node is None or shape is None or len(shape) != axis + 1:
        return None
    return node.inputs[0] if same_dims([*shape, 1], dims(tensor)) else None


def _every_second(part: gs.Tensor, x: gs.Tensor, axis: int) -> int | None:
    """From which element on a Slice takes every second one of ``x`` along an axis; None where it does not."""
    node, size = made_by(part, "Slice"), (dims(x) or [])[axis]
    if node is None or node.inputs[0] is not x or not isinstance(size, int):
        return None
    bounds = _bounds(node, axis, size)
    if bounds is None:
        return None
    places = range(*bounds)
    for first in (0, 1):
        if places == range(first, size, 2):
            return first
    return None


def _bounds(node: gs.Node, axis: int, size: int) -> tuple[int, int, int] | None:
    """Begin, end and step of a Slice along an axis; None where it takes along others, too."""
    read: Sequence[list[int] | None] = [integers(given(node, index)) for index in (1, 2, 3)]
    steps = [1] if given(node, 4) is None else integers(given(node, 4))
    if any(bound is None or len(bound) != 1 for bound in (*read, steps)):
        return None
    start, end, along = (bound[0] for bound in read if bound is not None)
    if along % len(dims(node.inputs[0]) or []) != axis:
        return None
    return slice(start, end, (steps or [1])[0]).indices(size)


def range_of(part: gs.Tensor, x: gs.Tensor, axis: int) -> tuple[int, int] | None:
    """Return which elements of ``x`` along an axis a Slice or Split takes; None where it takes others."""
    node, size = producer(part), (dims(x) or [])[axis]
    if node is None or not is_op(node, "Slice", "Split") or node.inputs[0] is not x:
        return None
    if not isinstance(size, int):
        return None
    rank_of_x = len(dims(x) or [])
    if is_op(node, "Split"):
        sizes = [(dims(output) or [None] * rank_of_x)[axis] for output in node.outputs]
        index = next(i for i, output in enumerate(node.outputs) if output is part)
        if int(node.attrs.get("axis", 0)) % rank_of_x != axis:
            return None
        before = [n for n in sizes[: index + 1] if isinstance(n, int)]
        return (sum(before[:-1]), sum(before)) if len(before) == index + 1 else None
    bounds = _bounds(node, axis, size)
    return None if bounds is None or bounds[2] != 1 else bounds[:2]
