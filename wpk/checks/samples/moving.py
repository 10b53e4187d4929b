"""Rules of operators that move elements, change how they are seen, or tell a shape."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from wpk.checks.bounded import attribute_of
from wpk.checks.samples.batch import Along, Array, Batch
from wpk.checks.samples.way import (
    Given,
    Operand,
    Way,
    aligned,
    axes_of,
    first_of,
    mixes,
    numbers,
    optional,
    require,
    two,
    whole_shape,
)


def transposed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    perm = attribute_of(node, "perm", list(range(first.array.ndim))[::-1])
    return Way(Along(list(perm).index(axis), times))


def reshaped(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The samples stay the outer part of an axis before which there are as many elements as before."""
    first, (axis, times) = first_of(node, given)
    whole = whole_shape(batch, first)
    target = numbers(node, given, 1)
    keeps = not attribute_of(node, "allowzero", 0)
    shape = [whole[i] if n == 0 and keeps and i < len(whole) else n for i, n in enumerate(target)]
    known = prod(n for n in shape if n != -1)
    require(known > 0 and shape.count(-1) <= 1 and prod(whole) > 0, node)
    shape = [prod(whole) // known if n == -1 else n for n in shape]
    require(prod(shape) == prod(whole), node)
    before = prod(whole[:axis]) * times
    ahead = [prod(shape[:i]) for i in range(len(shape))]
    places = [
        i
        for i, n in enumerate(shape)
        if before % ahead[i] == 0 and n % (before // ahead[i] * batch.count) == 0
    ]
    require(len(places) == 1, node)
    (place,) = places
    few = [n // batch.count * batch.kept if i == place else n for i, n in enumerate(shape)]
    return Way(Along(place, before // ahead[place]), {1: lambda _: np.array(few, np.int64)})


def flattened(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    cut = attribute_of(node, "axis", 1)
    cut += first.array.ndim if cut < 0 else 0
    before = first.shape[:axis] if axis < cut else first.shape[cut:axis]
    return Way(Along(int(axis >= cut), prod(before) * times))


def squeezed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    axes = axes_of(node, given, first.array.ndim)
    if axes is None:
        axes = [place for place, n in enumerate(first.shape) if n == 1]
    return Way(Along(axis - sum(each < axis for each in axes), times))


def unsqueezed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    named = optional(node, given, 1)
    axes = named if named is not None else attribute_of(node, "axes", [])
    rank = first.array.ndim + len(axes)
    inserted = {each % rank for each in axes}
    left = [place for place in range(rank) if place not in inserted]
    return Way(Along(left[axis], times))


def sliced(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Along other axes, or all of the samples."""
    first, (axis, times) = first_of(node, given)
    starts, ends = (numbers(node, given, place) for place in (1, 2))
    axes, steps = (optional(node, given, place) for place in (3, 4))
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, along, step in zip(starts, ends, axes, steps, strict=True):
        everything = (start, step) == (0, 1) and end >= batch.whole(first.shape[axis])
        require(along % first.array.ndim != axis or everything, node)
    return Way(Along(axis, times))


def padded(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    pads, rank = numbers(node, given, 1), first.array.ndim
    axes = optional(node, given, 3)
    along = list(range(rank)) if axes is None else [each % rank for each in axes]
    require(len(pads) == 2 * len(along), node)
    ends = zip(along, pads[: len(along)], pads[len(along) :], strict=True)
    require(all(place != axis or (begin, end) == (0, 0) for place, begin, end in ends), node)
    return Way(Along(axis, times))


def gathered(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Of each sample the same, or by each sample's own indices of what holds no samples, or within each."""
    data, indices = two(node, given)
    along = attribute_of(node, "axis", 0) % data.array.ndim
    if data.along is None and indices.along is not None:
        return Way(Along(along + indices.along.axis, indices.along.times))
    if indices.along is not None or data.along is None:
        raise mixes(node)
    if data.along.axis == along:
        return _gathered_within(batch, node, data, indices.array)
    axis, times = data.along
    return Way(Along(axis if axis < along else axis - 1 + indices.array.ndim, times))


def _gathered_within(batch: Batch, node: onnx.NodeProto, data: Operand, indices: Array) -> Way:
    """Each sample's elements from that sample, at the same places in each."""
    fits = data.along is not None and data.along.times == 1 and indices.ndim > 0
    require(fits and indices.shape[0] % batch.count == 0 and indices.size > 0, node)
    assert data.along is not None
    own = data.shape[data.along.axis] // batch.kept
    each = indices.reshape(batch.count, -1).astype(np.int64)
    first = each[:1]
    alike = bool((each - first == own * np.arange(batch.count)[:, None]).all())
    require(alike and first.min() >= 0 and first.max() < own, node)
    few = slice(len(indices) // batch.count * batch.kept)
    return Way(data.along, {1: lambda array: array[few]})


def joined(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Along another axis; each has samples, or the same for all."""
    shapes = {i: (each.shape, each.along) for i, each in enumerate(given) if each is not None}
    (rank,) = {len(shape) for shape, _ in shapes.values()}
    way = aligned(batch, node, shapes)
    if way.along is None or attribute_of(node, "axis", 0) % rank == way.along.axis:
        raise mixes(node)
    place = way.along.axis
    require(all(shape[place] != 1 for shape, _ in shapes.values()), node)
    return way


def expanded(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    target = numbers(node, given, 1)
    rank = max(first.array.ndim, len(target))
    place = axis + rank - first.array.ndim
    own = place - rank + len(target)
    if own < 0 or target[own] == 1:
        return Way(Along(place, times))
    require(target[own] == batch.whole(first.shape[axis]), node)
    few = [first.shape[axis] if i == own else n for i, n in enumerate(target)]
    return Way(Along(place, times), {1: lambda _: np.array(few, np.int64)})


def tiled(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    repeats = numbers(node, given, 1)
    require(len(repeats) == first.array.ndim and repeats[axis] == 1, node)
    return Way(Along(axis, times))


def matrices(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The last two axes of each."""
    first, (axis, times) = first_of(node, given)
    require(axis < first.array.ndim - 2, node)
    return Way(Along(axis, times))


def shape(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """That of all samples."""
    first, _ = first_of(node, given)
    whole = np.broadcast_to(np.zeros((), first.array.dtype), whole_shape(batch, first))
    return Way(None, {0: lambda _: whole})
