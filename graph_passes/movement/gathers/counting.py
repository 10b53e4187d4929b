"""Integers that count through the places of a tensor: what indices of a Gather often are.

    i[b, 0, 0, s] = 16 b + s        steps (16, 0, 0, 1), sizes (batch, 1, 1, 16)

Steps and sizes may hold free dimensions. A constant counts where its numbers say so, a Range over a
size does, and so do sums of such counts, multiples, and views that add dimensions of 1.
"""

from dataclasses import dataclass, replace

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_op,
    producer,
    values,
)
from wpk.graph_passes.core.sizes import ONE, ZERO, Size, known_sizes, product, size_of, sizes_in

_ADDS_ONES = ("Unsqueeze", "Reshape")
_SAME = ("Cast", "Identity")
_BROADCAST = ("Max", "Min", "Add", "Sub", "Mul")


@dataclass(frozen=True)
class Count:
    """``start + sum over the dimensions of steps[d] * place[d]``.

    Attributes:
        steps: What a place along each dimension adds; zero along a dimension of 1.
        sizes: Of the dimensions.
        start: Of the first place.
    """

    steps: tuple[Size, ...]
    sizes: tuple[Size, ...]
    start: int = 0

    @property
    def is_row_major(self) -> bool:
        """Whether the places count 0, 1, 2, ... in row-major order."""
        step = ONE
        for size, own in zip(reversed(self.sizes), reversed(self.steps), strict=True):
            if size != ONE and own != step:
                return False
            step = step.times(size)
        return self.start == 0

    @property
    def total(self) -> Size:
        """The number of places."""
        return product(self.sizes)


def count_of(tensor: gs.Tensor) -> Count | None:
    """Return how the integers of a tensor count; None where they are not known to."""
    constant = values(tensor)
    if constant is not None:
        return _of_constant(constant) if np.issubdtype(constant.dtype, np.integer) else None
    node = producer(tensor)
    if node is None:
        return None
    if is_op(node, "Range"):
        return _of_range(node)
    if is_op(node, "Add"):
        return sum_of(*(count_of(t) for t in node.inputs))
    if is_op(node, "Expand"):
        return _expanded(node)
    if is_op(node, "Mul"):
        return _multiple(node)
    if is_op(node, *_SAME) and node.outputs[0].dtype in (np.int32, np.int64):
        return count_of(node.inputs[0])
    return _with_ones(node) if is_op(node, *_ADDS_ONES) else None


def _of_constant(array: NDArray[np.generic]) -> Count | None:
    numbers = array.astype(np.int64)
    if numbers.size == 0:
        return None
    start = int(numbers.reshape(-1)[0])
    steps = []
    for axis, size in enumerate(numbers.shape):
        second = numbers[tuple(int(a == axis) if size > 1 else 0 for a in range(numbers.ndim))]
        steps.append(int(second) - start)
    places = np.indices(numbers.shape).reshape(numbers.ndim, numbers.size)
    if (numbers.reshape(-1) != start + np.array(steps, np.int64) @ places).any():
        return None
    return Count(tuple(map(Size, steps)), tuple(map(Size, numbers.shape)), start)


def _of_range(node: gs.Node) -> Count | None:
    """Range(0, size, 1)."""
    start, step = integers(node.inputs[0]), integers(node.inputs[2])
    size = size_of(node.inputs[1]) if (start, step) == ([0], [1]) else None
    return None if size is None else Count((ONE,), (size,))


def sum_of(a: Count | None, b: Count | None) -> Count | None:
    """Add two counts of which at most one steps along each dimension."""
    if a is None or b is None:
        return None
    rank = max(len(a.sizes), len(b.sizes))
    a, b = _of_rank(a, rank), _of_rank(b, rank)
    sizes = _broadcast(a.sizes, b.sizes)
    if sizes is None or any(ZERO not in pair for pair in zip(a.steps, b.steps, strict=True)):
        return None
    steps = (y if x == ZERO else x for x, y in zip(a.steps, b.steps, strict=True))
    return Count(tuple(steps), sizes, a.start + b.start)


def _of_rank(count: Count, rank: int) -> Count:
    more = rank - len(count.sizes)
    return replace(count, steps=(ZERO,) * more + count.steps, sizes=(ONE,) * more + count.sizes)


def _multiple(node: gs.Node) -> Count | None:
    """A count times one number or free dimension."""
    for index in (0, 1):
        factor, count = size_of(node.inputs[index]), count_of(node.inputs[1 - index])
        rank = len(node.inputs[index].shape or ())
        if factor is None or count is None or rank > len(count.sizes):
            continue
        if (result := times(count, factor)) is not None:
            return result
    return None


def times(count: Count, factor: Size) -> Count | None:
    """Return a count with each of its integers that many times as large."""
    if count.start and factor.free:
        return None
    steps = tuple(step if step == ZERO else step.times(factor) for step in count.steps)
    return Count(steps, count.sizes, count.start * factor.factor)


def _expanded(node: gs.Node) -> Count | None:
    """A count that is repeated along further dimensions."""
    inner, shape = count_of(node.inputs[0]), _target_sizes(node)
    if inner is None or shape is None or len(shape) < len(inner.sizes):
        return None
    inner = _of_rank(inner, len(shape))
    sizes = _broadcast(inner.sizes, shape)
    return None if sizes is None else replace(inner, sizes=sizes)


def _target_sizes(node: gs.Node) -> tuple[Size, ...] | None:
    """The sizes that an Expand names: numbers, or those of another tensor."""
    sizes = sizes_in(node.inputs[1])
    if sizes is not None:
        return sizes
    shape = producer(node.inputs[1])
    whole = shape is not None and is_op(shape, "Shape") and shape.attrs.get("end") is None
    if shape is None or not whole or shape.attrs.get("start", 0):
        return known_sizes(dims(node.outputs[0]))
    return _sizes_of(shape.inputs[0])


def _sizes_of(tensor: gs.Tensor) -> tuple[Size, ...] | None:
    """The sizes of a tensor: those that are inferred, or what its parts count through."""
    known = known_sizes(dims(tensor))
    if known is not None:
        return known
    count, node = count_of(tensor), producer(tensor)
    if count is not None or node is None or not is_op(node, *_BROADCAST):
        return None if count is None else count.sizes
    sizes: tuple[Size, ...] | None = ()
    for each in node.inputs:
        own = _sizes_of(each)
        sizes = None if sizes is None or own is None else _broadcast(sizes, own)
    return sizes


def _broadcast(a: tuple[Size, ...], b: tuple[Size, ...]) -> tuple[Size, ...] | None:
    """The sizes of two shapes laid together; None where they are not known to fit."""
    rank = max(len(a), len(b))
    a, b = (ONE,) * (rank - len(a)) + a, (ONE,) * (rank - len(b)) + b
    if any(ONE not in (x, y) and x != y for x, y in zip(a, b, strict=True)):
        return None
    return tuple(y if x == ONE else x for x, y in zip(a, b, strict=True))


def _with_ones(node: gs.Node) -> Count | None:
    """A count with more dimensions of 1, in front of its own or behind them."""
    inner = count_of(node.inputs[0])
    axes = integers(given(node, 1)) if is_op(node, "Unsqueeze") else None
    if inner is None:
        return None
    if axes is not None:
        rank = len(inner.sizes) + len(axes)
        places = sorted(set(range(rank)) - {axis % rank for axis in axes})
        steps, sizes = [ZERO] * rank, [ONE] * rank
        for place, size, step in zip(places, inner.sizes, inner.steps, strict=True):
            sizes[place], steps[place] = size, step
        return replace(inner, steps=tuple(steps), sizes=tuple(sizes))
    shape = _reshaped(node, inner)
    kept = [(n, s) for n, s in zip(inner.sizes, inner.steps, strict=True) if n != ONE]
    if shape is None or [size for size in shape if size != ONE] != [size for size, _ in kept]:
        return None
    rest = iter(kept)
    steps = [ZERO if size == ONE else next(rest)[1] for size in shape]
    return replace(inner, steps=tuple(steps), sizes=shape)


def _reshaped(node: gs.Node, inner: Count) -> tuple[Size, ...] | None:
    """The sizes behind a Reshape: those that are inferred, or its target, whose -1 is what is left."""
    known = known_sizes(dims(node.outputs[0]))
    target = integers(given(node, 1)) if known is None else None
    if target is None or target.count(-1) != 1 or min(target) < -1 or 0 in target:
        return known
    others = product(tuple(Size(n) for n in target if n != -1))
    return tuple(inner.total if n == -1 else Size(n) for n in target) if others == ONE else None
