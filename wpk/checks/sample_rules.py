"""How operators compute a few samples of a batch: each rule says what makes a node's work that of single samples.

A tensor holds samples along an axis (`Along`): as many neighbours for each, one sample behind the other, and that perhaps
several times, as of words of sentences that are one matrix. For a node whose operands hold samples a rule returns the axis of the outputs and what must be changed
of operands that hold none: targets of reshapes name the batch, and constants may repeat the same for every sample. It
follows that for any samples the changed node gives those of the outputs that the node itself gives for the whole batch.
A node that no rule knows is taken to mix samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.operators import OperatorKind, of_kind

Array = NDArray[np.generic]

Shape = tuple[int, ...]


class NotAloneError(Exception):
    """A node may mix samples or tell them apart: a few of them do not stand for all."""


class Along(NamedTuple):
    """Where samples lie in a tensor.

    Attributes:
        axis: The axis. Its extent is that of all samples, times what each has there, times the repetitions.
        times: How often all samples lie there, one behind the other.
    """

    axis: int
    times: int = 1


@dataclass(frozen=True)
class Batch:
    """Samples.

    Attributes:
        count: Of the whole batch.
        kept: The first ones, which are computed; at least 2, so that no axis that holds them has one element.
    """

    count: int
    kept: int

    def whole(self, extent: int) -> int:
        """Return what the extent of an axis that holds samples is for all of them."""
        return extent // self.kept * self.count

    def part(self, array: Array, along: Along) -> Array:
        """Return the elements of the samples that are kept, of an array that has all."""
        before, extent, behind = _around(array.shape, along.axis)
        own = extent // (self.count * along.times)
        each = array.reshape(*before, along.times, self.count, own, *behind)
        kept = each[(slice(None),) * (len(before) + 1) + (slice(self.kept),)]
        found: Array = kept.reshape(*before, along.times * self.kept * own, *behind)
        return found

    def alike(self, array: Array, along: Along) -> Array:
        """Return the same of an array that holds no samples, but numbers for each.

        Raises:
            NotAloneError: They are not the same for all samples.
        """
        before, extent, behind = _around(array.shape, along.axis)
        unit = self.count * along.times
        each = array.reshape(*before, along.times, self.count, extent // unit, *behind)
        first = each[(slice(None),) * (len(before) + 1) + (slice(1),)]
        if not bool(((each == first) | ((each != each) & (first != first))).all()):
            raise NotAloneError("a constant differs between samples")
        return self.part(array, along)


def _around(shape: Shape, axis: int) -> tuple[Shape, int, Shape]:
    return shape[:axis], shape[axis], shape[axis + 1 :]


@dataclass(frozen=True)
class Operand:
    """What a node reads.

    Attributes:
        array: The few samples, or a tensor that holds none.
        along: Where samples lie; None where it holds none.
    """

    array: Array
    along: Along | None

    @property
    def shape(self) -> Shape:
        """Its shape as it is."""
        return self.array.shape


Change = Callable[[Array], Array]
"""Makes of an operand what the node reads for the few samples; of what lies beside it element by element, too."""


@dataclass(frozen=True)
class Way:
    """How a node computes the few samples.

    Attributes:
        along: Where samples lie in its outputs; None where these hold none.
        changes: What becomes of operands, by their places.
    """

    along: Along | None
    changes: Mapping[int, Change] = field(default_factory=dict)

    def operands(self, arrays: Sequence[Array | None]) -> list[Array | None]:
        """Return what the node is evaluated on."""
        return [
            self.changes[place](array) if array is not None and place in self.changes else array
            for place, array in enumerate(arrays)
        ]


Given = Sequence[Operand | None]
Rule = Callable[[Batch, onnx.NodeProto, Given], Way]


def way_of(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Return how a node computes the few samples.

    Args:
        batch: The samples.
        node: A node of ONNX's own domain.
        given: What it reads; None where an optional operand is missing.

    Raises:
        NotAloneError: It may mix samples, or tell them apart.
    """
    if not any(each is not None and each.along is not None for each in given):
        return Way(None)
    inner = any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute)
    rule = None if inner or node.domain not in ("", "ai.onnx") else _RULES.get(node.op_type)
    if rule is None:
        raise NotAloneError(f"nobody knows whether {node.op_type} computes each sample alone")
    return rule(batch, node, given)


def _require(fits: bool, node: onnx.NodeProto) -> None:
    if not fits:
        raise _mixes(node)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    found = (onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name)
    return next(found, default)


def _mixes(node: onnx.NodeProto) -> NotAloneError:
    return NotAloneError(f"'{node.name}' ({node.op_type}) may mix samples")


def _first(node: onnx.NodeProto, given: Given) -> tuple[Operand, Along]:
    """The first operand and where its samples lie; no other holds any."""
    first, *others = given
    if (
        first is None
        or first.along is None
        or any(e is not None and e.along is not None for e in others)
    ):
        raise _mixes(node)
    return first, first.along


def _two(node: onnx.NodeProto, given: Given) -> tuple[Operand, Operand]:
    """Two operands."""
    first, second = given
    if first is None or second is None:
        raise _mixes(node)
    return first, second


def _optional(node: onnx.NodeProto, given: Given, place: int) -> list[int] | None:
    """The integers of an operand that holds no samples; None where it is missing."""
    operand = given[place] if place < len(given) else None
    if operand is None:
        return None
    _require(operand.along is None and operand.array.dtype.kind in "iu", node)
    return [int(each) for each in operand.array.reshape(-1)]


def _numbers(node: onnx.NodeProto, given: Given, place: int) -> list[int]:
    """The integers of an operand that holds no samples, and must be there."""
    found = _optional(node, given, place)
    if found is None:
        raise _mixes(node)
    return found


def _axes(node: onnx.NodeProto, given: Given, rank: int) -> list[int] | None:
    """The axes that the second operand or an attribute names, counted from the first; None where neither does."""
    named = _optional(node, given, 1)
    axes = named if named is not None else _attribute(node, "axes", None)
    return None if axes is None else [axis % rank for axis in axes]


def _whole_shape(batch: Batch, operand: Operand) -> Shape:
    return tuple(
        batch.whole(n) if operand.along is not None and place == operand.along.axis else n
        for place, n in enumerate(operand.shape)
    )


def _aligned(
    batch: Batch, node: onnx.NodeProto, shapes: Mapping[int, tuple[Shape, Along | None]]
) -> Way:
    """Operands that are broadcast: samples meet samples, or what is the same for all of them."""
    rank = max(len(shape) for shape, _ in shapes.values())
    held = {
        (along.axis + rank - len(shape), along.times, shape[along.axis])
        for shape, along in shapes.values()
        if along is not None
    }
    _require(len(held) == 1, node)
    ((place, times, extent),) = held
    changes: dict[int, Change] = {}
    for index, (shape, along) in shapes.items():
        own = place - rank + len(shape)
        if along is None and own >= 0 and shape[own] != 1:
            _require(shape[own] == batch.whole(extent), node)
            changes[index] = _part(batch, Along(own, times))
    return Way(Along(place, times), changes)


def _part(batch: Batch, along: Along) -> Change:
    return lambda array: batch.alike(array, along) if array.ndim else array


def _element_wise(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    _require(len(node.output) == 1, node)
    shapes = {i: (each.shape, each.along) for i, each in enumerate(given) if each is not None}
    return _aligned(batch, node, shapes)


def _like_first(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The second operand says a type."""
    return Way(None if given[0] is None else given[0].along)


def _matmul(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    sides = _two(node, given)
    _require(min(each.array.ndim for each in sides) >= 2, node)
    rank = max(each.array.ndim for each in sides)
    (left, right), from_end = (s.along for s in sides), [_from_end(s) for s in sides]
    if left is not None and from_end == [-2, None]:
        return Way(Along(rank - 2, left.times))
    if right is not None and from_end == [None, -1]:
        return Way(Along(rank - 1, right.times))
    _require(all(place is None or place < -2 for place in from_end), node)
    return _aligned(batch, node, {i: (s.shape[:-2], s.along) for i, s in enumerate(sides)})


def _from_end(operand: Operand) -> int | None:
    return None if operand.along is None else operand.along.axis - operand.array.ndim


def _gemm(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, along = _first(node, given)
    _require(along.axis == 0 and not _attribute(node, "transA", 0), node)
    third = given[2] if len(given) > 2 else None
    if third is None:
        return Way(along)
    return _aligned(batch, node, {0: (first.shape, along), 2: (third.shape, None)})


def _images(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Each image is computed alone, whatever the other operands."""
    _, along = _first(node, given)
    trains = _attribute(node, "training_mode", 0)
    named = [name for name in node.output if name]
    _require(along.axis == 0 and not trains and len(named) == 1, node)
    return Way(along)


def _resize(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """By scales; the sizes of outputs name the batch."""
    first, _ = _first(node, given)
    scales = given[2] if len(given) > 2 else None
    fits = (
        scales is not None and scales.array.size == first.array.ndim and scales.array.flat[0] == 1
    )
    crops = _attribute(node, "coordinate_transformation_mode", b"") == b"tf_crop_and_resize"
    sized = len(given) > 3 and given[3] is not None and given[3].array.size > 0
    _require(fits and not crops and not sized, node)
    return _images(batch, node, given)


def _layer_norm(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    row = _attribute(node, "axis", -1) % first.array.ndim
    behind = [each.array.ndim for each in given[1:] if each is not None]
    named = [name for name in node.output if name]
    fits = axis < row and all(n <= first.array.ndim - row for n in behind) and len(named) == 1
    _require(fits, node)
    return Way(Along(axis, times))


def _softmax(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Before opset 13 all axes behind are of the row, and the default was another."""
    first, (axis, times) = _first(node, given)
    rows = {_attribute(node, "axis", each) % first.array.ndim for each in (1, -1)}
    _require(axis < min(rows), node)
    return Way(Along(axis, times))


def _along(default: int) -> Rule:
    """Work along one axis, which an attribute names."""

    def rule(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
        first, (axis, times) = _first(node, given)
        _require(_attribute(node, "axis", default) % first.array.ndim != axis, node)
        return Way(Along(axis, times))

    return rule


def _running(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    along = _numbers(node, given, 1)
    _require(axis not in [each % first.array.ndim for each in along], node)
    return Way(Along(axis, times))


def _quantised(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Scales of a whole tensor, or along another axis."""
    first, (axis, times) = _first(node, given)
    scale = given[1]
    along = _attribute(node, "axis", 1)
    alone = scale is not None and (
        scale.array.size == 1 or (scale.array.ndim == 1 and along % first.array.ndim != axis)
    )
    _require(alone, node)
    return Way(Along(axis, times))


def _reduced(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    axes = _axes(node, given, first.array.ndim)
    if not axes:
        _require(bool(_attribute(node, "noop_with_empty_axes", 0)), node)
        return Way(Along(axis, times))
    _require(axis not in axes, node)
    gone = 0 if _attribute(node, "keepdims", 1) else sum(each < axis for each in axes)
    return Way(Along(axis - gone, times))


def _place_of_most(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    along = _attribute(node, "axis", 0) % first.array.ndim
    _require(along != axis, node)
    gone = along < axis and not _attribute(node, "keepdims", 1)
    return Way(Along(axis - gone, times))


def _transposed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    perm = _attribute(node, "perm", list(range(first.array.ndim))[::-1])
    return Way(Along(list(perm).index(axis), times))


def _reshaped(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The samples stay the outer part of an axis before which there are as many elements as before."""
    first, (axis, times) = _first(node, given)
    whole = _whole_shape(batch, first)
    target = _numbers(node, given, 1)
    keeps = not _attribute(node, "allowzero", 0)
    shape = [whole[i] if n == 0 and keeps and i < len(whole) else n for i, n in enumerate(target)]
    known = prod(n for n in shape if n != -1)
    _require(known > 0 and shape.count(-1) <= 1 and prod(whole) > 0, node)
    shape = [prod(whole) // known if n == -1 else n for n in shape]
    _require(prod(shape) == prod(whole), node)
    before = prod(whole[:axis]) * times
    ahead = [prod(shape[:i]) for i in range(len(shape))]
    places = [
        i
        for i, n in enumerate(shape)
        if before % ahead[i] == 0 and n % (before // ahead[i] * batch.count) == 0
    ]
    _require(len(places) == 1, node)
    (place,) = places
    few = [n // batch.count * batch.kept if i == place else n for i, n in enumerate(shape)]
    return Way(Along(place, before // ahead[place]), {1: lambda _: np.array(few, np.int64)})


def _flattened(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    cut = _attribute(node, "axis", 1)
    cut += first.array.ndim if cut < 0 else 0
    before = first.shape[:axis] if axis < cut else first.shape[cut:axis]
    return Way(Along(int(axis >= cut), prod(before) * times))


def _squeezed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    axes = _axes(node, given, first.array.ndim)
    if axes is None:
        axes = [place for place, n in enumerate(first.shape) if n == 1]
    return Way(Along(axis - sum(each < axis for each in axes), times))


def _unsqueezed(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    named = _optional(node, given, 1)
    axes = named if named is not None else _attribute(node, "axes", [])
    rank = first.array.ndim + len(axes)
    inserted = {each % rank for each in axes}
    left = [place for place in range(rank) if place not in inserted]
    return Way(Along(left[axis], times))


def _sliced(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Along other axes, or all of the samples."""
    first, (axis, times) = _first(node, given)
    starts, ends = (_numbers(node, given, place) for place in (1, 2))
    axes, steps = (_optional(node, given, place) for place in (3, 4))
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, along, step in zip(starts, ends, axes, steps, strict=True):
        everything = (start, step) == (0, 1) and end >= batch.whole(first.shape[axis])
        _require(along % first.array.ndim != axis or everything, node)
    return Way(Along(axis, times))


def _padded(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    pads, rank = _numbers(node, given, 1), first.array.ndim
    axes = _optional(node, given, 3)
    along = list(range(rank)) if axes is None else [each % rank for each in axes]
    _require(len(pads) == 2 * len(along), node)
    ends = zip(along, pads[: len(along)], pads[len(along) :], strict=True)
    _require(all(place != axis or (begin, end) == (0, 0) for place, begin, end in ends), node)
    return Way(Along(axis, times))


def _gathered(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Of each sample the same, or by each sample's own indices of what holds no samples, or within each."""
    data, indices = _two(node, given)
    along = _attribute(node, "axis", 0) % data.array.ndim
    if data.along is None and indices.along is not None:
        return Way(Along(along + indices.along.axis, indices.along.times))
    if indices.along is not None or data.along is None:
        raise _mixes(node)
    if data.along.axis == along:
        return _gathered_within(batch, node, data, indices.array)
    axis, times = data.along
    return Way(Along(axis if axis < along else axis - 1 + indices.array.ndim, times))


def _gathered_within(batch: Batch, node: onnx.NodeProto, data: Operand, indices: Array) -> Way:
    """Each sample's elements from that sample, at the same places in each."""
    fits = data.along is not None and data.along.times == 1 and indices.ndim > 0
    _require(fits and indices.shape[0] % batch.count == 0 and indices.size > 0, node)
    assert data.along is not None
    own = data.shape[data.along.axis] // batch.kept
    each = indices.reshape(batch.count, -1).astype(np.int64)
    first = each[:1]
    alike = bool((each - first == own * np.arange(batch.count)[:, None]).all())
    _require(alike and first.min() >= 0 and first.max() < own, node)
    few = slice(len(indices) // batch.count * batch.kept)
    return Way(data.along, {1: lambda array: array[few]})


def _joined(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Along another axis; each has samples, or the same for all."""
    shapes = {i: (each.shape, each.along) for i, each in enumerate(given) if each is not None}
    (rank,) = {len(shape) for shape, _ in shapes.values()}
    way = _aligned(batch, node, shapes)
    if way.along is None or _attribute(node, "axis", 0) % rank == way.along.axis:
        raise _mixes(node)
    place = way.along.axis
    _require(all(shape[place] != 1 for shape, _ in shapes.values()), node)
    return way


def _expanded(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    target = _numbers(node, given, 1)
    rank = max(first.array.ndim, len(target))
    place = axis + rank - first.array.ndim
    own = place - rank + len(target)
    if own < 0 or target[own] == 1:
        return Way(Along(place, times))
    _require(target[own] == batch.whole(first.shape[axis]), node)
    few = [first.shape[axis] if i == own else n for i, n in enumerate(target)]
    return Way(Along(place, times), {1: lambda _: np.array(few, np.int64)})


def _tiled(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = _first(node, given)
    repeats = _numbers(node, given, 1)
    _require(len(repeats) == first.array.ndim and repeats[axis] == 1, node)
    return Way(Along(axis, times))


def _matrices(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The last two axes of each."""
    first, (axis, times) = _first(node, given)
    _require(axis < first.array.ndim - 2, node)
    return Way(Along(axis, times))


def _shape(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """That of all samples."""
    first, _ = _first(node, given)
    whole = np.broadcast_to(np.zeros((), first.array.dtype), _whole_shape(batch, first))
    return Way(None, {0: lambda _: whole})


def _rules(names: Sequence[str], rule: Rule) -> Iterator[tuple[str, Rule]]:
    return ((name, rule) for name in names)


_RULES: dict[str, Rule] = {
    **dict(_rules((*of_kind(OperatorKind.ELEMENTWISE), "Celu", "ThresholdedRelu"), _element_wise)),
    **dict(_rules(of_kind(OperatorKind.REDUCTION), _reduced)),
    **dict(
        _rules(
            (
                *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace"),
                *("GlobalAveragePool", "GlobalMaxPool", "GroupNormalization", "LRN", "MaxPool"),
                *("InstanceNormalization", "SpaceToDepth"),
            ),
            _images,
        )
    ),
    "ArgMax": _place_of_most,
    "ArgMin": _place_of_most,
    "CastLike": _like_first,
    "Concat": _joined,
    "CumSum": _running,
    "DequantizeLinear": _quantised,
    "Expand": _expanded,
    "Flatten": _flattened,
    "Gather": _gathered,
    "Gemm": _gemm,
    "Identity": _element_wise,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _softmax,
    "LpNormalization": _along(-1),
    "MatMul": _matmul,
    "Pad": _padded,
    "QuantizeLinear": _quantised,
    "RMSNormalization": _layer_norm,
    "Reshape": _reshaped,
    "Resize": _resize,
    "Shape": _shape,
    "Size": _shape,
    "Slice": _sliced,
    "Softmax": _softmax,
    "Split": _along(0),
    "Squeeze": _squeezed,
    "Tile": _tiled,
    "TopK": _along(-1),
    "Transpose": _transposed,
    "Trilu": _matrices,
    "Unsqueeze": _unsqueezed,
}
"""Attributes that an operator has since some opset are read by their present defaults only where any default fits."""
