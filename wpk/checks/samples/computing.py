"""Rules of operators that compute: which of their operands may hold samples, and along which axes."""

from __future__ import annotations

import onnx

from wpk.checks.bounded import attribute_of
from wpk.checks.samples.batch import Along, Batch
from wpk.checks.samples.way import (
    Given,
    Operand,
    Rule,
    Way,
    aligned,
    axes_of,
    first_of,
    numbers,
    require,
    two,
)


def element_wise(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    named = attribute_of(node, "broadcast", 0)  # before opset 7 an attribute says where axes meet
    require(len(node.output) == 1 and not named, node)
    shapes = {i: (each.shape, each.along) for i, each in enumerate(given) if each is not None}
    return aligned(batch, node, shapes)


def like_first(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """The second operand says a type."""
    return Way(None if given[0] is None else given[0].along)


def matmul(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    sides = two(node, given)
    require(min(each.array.ndim for each in sides) >= 2, node)
    rank = max(each.array.ndim for each in sides)
    (left, right), from_end = (s.along for s in sides), [_from_end(s) for s in sides]
    if left is not None and from_end == [-2, None]:
        return Way(Along(rank - 2, left.times))
    if right is not None and from_end == [None, -1]:
        return Way(Along(rank - 1, right.times))
    require(all(place is None or place < -2 for place in from_end), node)
    return aligned(batch, node, {i: (s.shape[:-2], s.along) for i, s in enumerate(sides)})


def _from_end(operand: Operand) -> int | None:
    return None if operand.along is None else operand.along.axis - operand.array.ndim


def gemm(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, along = first_of(node, given)
    require(along.axis == 0 and not attribute_of(node, "transA", 0), node)
    third = given[2] if len(given) > 2 else None
    if third is None:
        return Way(along)
    return aligned(batch, node, {0: (first.shape, along), 2: (third.shape, None)})


def images(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Each image is computed alone, whatever the other operands."""
    _, along = first_of(node, given)
    trains = attribute_of(node, "training_mode", 0)
    named = [name for name in node.output if name]
    require(along.axis == 0 and not trains and len(named) == 1, node)
    return Way(along)


def resize(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """By scales; the sizes of outputs name the batch."""
    first, _ = first_of(node, given)
    scales = given[2] if len(given) > 2 else None
    fits = (
        scales is not None and scales.array.size == first.array.ndim and scales.array.flat[0] == 1
    )
    crops = attribute_of(node, "coordinate_transformation_mode", b"") == b"tf_crop_and_resize"
    sized = len(given) > 3 and given[3] is not None and given[3].array.size > 0
    require(fits and not crops and not sized, node)
    return images(batch, node, given)


def layer_norm(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    row = attribute_of(node, "axis", -1) % first.array.ndim
    behind = [each.array.ndim for each in given[1:] if each is not None]
    named = [name for name in node.output if name]
    fits = axis < row and all(n <= first.array.ndim - row for n in behind) and len(named) == 1
    require(fits, node)
    return Way(Along(axis, times))


def softmax(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Before opset 13 all axes behind are of the row, and the default was another."""
    first, (axis, times) = first_of(node, given)
    rows = {attribute_of(node, "axis", each) % first.array.ndim for each in (1, -1)}
    require(axis < min(rows), node)
    return Way(Along(axis, times))


def along_axis(default: int) -> Rule:
    """Work along one axis, which an attribute names."""

    def rule(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
        first, (axis, times) = first_of(node, given)
        require(attribute_of(node, "axis", default) % first.array.ndim != axis, node)
        return Way(Along(axis, times))

    return rule


def running(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    along = numbers(node, given, 1)
    require(axis not in [each % first.array.ndim for each in along], node)
    return Way(Along(axis, times))


def quantised(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Scales of a whole tensor, or along another axis."""
    first, (axis, times) = first_of(node, given)
    scale = given[1]
    along = attribute_of(node, "axis", 1)
    alone = scale is not None and (
        scale.array.size == 1 or (scale.array.ndim == 1 and along % first.array.ndim != axis)
    )
    require(alone, node)
    return Way(Along(axis, times))


def reduced(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    axes = axes_of(node, given, first.array.ndim)
    if not axes:
        require(bool(attribute_of(node, "noop_with_empty_axes", 0)), node)
        return Way(Along(axis, times))
    require(axis not in axes, node)
    gone = 0 if attribute_of(node, "keepdims", 1) else sum(each < axis for each in axes)
    return Way(Along(axis - gone, times))


def place_of_most(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    first, (axis, times) = first_of(node, given)
    along = attribute_of(node, "axis", 0) % first.array.ndim
    require(along != axis, node)
    gone = along < axis and not attribute_of(node, "keepdims", 1)
    return Way(Along(axis - gone, times))
