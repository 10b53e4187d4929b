"""The order in memory that an operator's body asks for of what it reads.

    Conv(x)                                  x in NCHW lies best in NHWC: channels last
    Conv(Transpose(x, (0, 3, 1, 2)))         x in NHWC lies best as it is
    LayerNorm(Transpose(x, (0, 2, 3, 1)))    x in NCHW lies best in NHWC, where a row is in one piece
    MatMul(Transpose(Reshape(x)), w)         x in NCHW, its pixels the rows of a product, lies best in NHWC
    Attention(Transpose(Reshape(x)), ..)     x in NCHW, its channels the rows of heads, lies best in NHWC
    Relu(x), to be written channels last     x lies best like the result
    ReduceSum(Reshape(x)), likewise          x lies best so that only the axes that go are taken out

An order is a list: at each place in memory, slowest first, an axis of the tensor.
"""

from collections.abc import Iterator
from enum import IntEnum
from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import ANCHORS, ROWS, SOFTMAX, SPATIAL, is_elementwise
from wpk.graph_passes.core.query import REDUCTIONS, Dims, dims, is_op, producer, rank
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.graph_passes.layout.axes import RANKS, to_last
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.graph_passes.movement.chains.views import trace, views_before

Order = list[int]

_PRODUCTS = 2
"""Of attention: queries with keys, and weights with values."""


class Weight(IntEnum):
    """How much it matters to an operator that what it reads lies in some order, least first."""

    NONE = 0
    PRODUCT = 1
    ROWS = 2
    PIXELS = 3


def weight_of(function: gs.Function, index: int, order: Order) -> Weight:
    """How much it matters to the anchor of ``function`` that its input ``index`` lies in ``order``.

    Products read transposed operands nearly as well; normalisations, windows and attention do not.
    """
    if (rows := _rows_of_attention(function, function.inputs[index])) is not None:
        return Weight.ROWS if order == rows else Weight.NONE
    wanted = _of_anchor(function)
    if wanted is None:
        return Weight.NONE
    start, suits, weight = wanted
    met = any(each == order for each in _orders_of(function.inputs[index], start, suits))
    return weight if met else Weight.NONE


def passes_last_on(function: gs.Function, index: int) -> bool:
    """Tell whether ``function`` writes channels last best where its input ``index`` lies so, too."""
    tensor, output = function.inputs[index], function.outputs[0]
    dimensions, after = rank(tensor), rank(output)
    if dimensions not in RANKS or after not in RANKS:
        return False
    last = to_last(dimensions or 0)
    return any(order == last for order in _orders_of(tensor, output, to_last(after or 0)))


def body_anchor(function: gs.Function) -> gs.Node | None:
    """Return the anchor of an operator's body; None for an element-wise graph."""
    return next((node for node in function.nodes if is_op(node, *ANCHORS)), None)


def _rows_of_attention(function: gs.Function, tensor: gs.Tensor) -> Order | None:
    """The order of an image in which the rows of queries, keys or values that attention takes of it are in one piece."""
    products = [node for node in function.nodes if is_op(node, "MatMul")]
    if rank(tensor) not in RANKS or len(products) != _PRODUCTS:
        return None
    if not any(is_op(node, *SOFTMAX) for node in function.nodes):
        return None
    first, last = products
    for operand, axis in ((first.inputs[0], -1), (first.inputs[1], -2), (last.inputs[1], -1)):
        chain = views_before(operand)
        if not chain or chain[0].inputs[0] is not tensor:
            continue
        views = trace(tensor, chain)
        group = views.groups[axis] if views is not None else ()
        if group and group[-1].step == 1 and group[-1].axis == 1:
            return to_last(rank(tensor) or 0)
    return None


def _of_anchor(function: gs.Function) -> tuple[gs.Tensor, Order, Weight] | None:
    """What the anchor slides over, or takes the rows of, with the order that suits it."""
    anchor = body_anchor(function)
    if anchor is None:
        return None
    data = anchor.inputs[0]
    dimensions = rank(data)
    if dimensions not in RANKS:
        return None
    if is_op(anchor, *SPATIAL):
        return data, to_last(dimensions or 0), Weight.PIXELS
    if is_op(anchor, *ROWS):
        return data, list(range(dimensions or 0)), Weight.ROWS
    if is_op(anchor, "MatMul"):
        return data, list(range(dimensions or 0)), Weight.PRODUCT
    return None


def _orders_of(tensor: gs.Tensor, start: gs.Tensor, order: Order) -> Iterator[Order]:
    """The orders of ``tensor`` that give ``start`` its order, along each way through the body."""
    if start is tensor:
        yield order
        return
    maker = producer(start)
    if maker is None:
        return
    if is_op(maker, "Transpose"):
        perm = permutation(maker)
        if perm is not None:
            yield from _orders_of(tensor, maker.inputs[0], [perm[axis] for axis in order])
    elif is_op(maker, "Reshape"):
        merged = _merged_axes(dims(maker.inputs[0]), dims(start))
        split = _merged_axes(dims(start), dims(maker.inputs[0]))
        if merged is not None:
            yield from _orders_of(
                tensor, maker.inputs[0], [a for axis in order for a in merged[axis]]
            )
        elif split is not None and (whole := _joined(order, split)) is not None:
            yield from _orders_of(tensor, maker.inputs[0], whole)
    elif is_op(maker, *REDUCTIONS):
        for before in _orders_before_reduction(maker, order):
            yield from _orders_of(tensor, maker.inputs[0], before)
    elif is_elementwise(maker) or is_op(maker, *ANCHORS):
        for each in maker.inputs:
            if rank(each) == len(order):
                yield from _orders_of(tensor, each, order)


def _orders_before_reduction(node: gs.Node, order: Order) -> Iterator[Order]:
    """The orders of what is reduced that leave the rest in ``order``: those of the axes that go lie at one place, any."""
    gone = reduced_axes(node)
    if gone is None:
        return
    keeps = rank(node.outputs[0]) == rank(node.inputs[0])
    stays = [axis for axis in range(rank(node.inputs[0]) or 0) if keeps or axis not in gone]
    rest = [axis for axis in (stays[each] for each in order) if axis not in gone]
    for place in range(len(rest) + 1):
        yield [*rest[:place], *gone, *rest[place:]]


def _merged_axes(before: Dims | None, behind: Dims | None) -> list[list[int]] | None:
    """Which axes a Reshape merges into each one; None where it does anything else."""
    if before is None or behind is None:
        return None
    merged: list[list[int]] = []
    axis = 0
    for size in behind:
        taken: list[int] = []
        if size is None:
            return None
        while axis < len(before) and not (taken and _size_of(before, taken) == size):
            taken.append(axis)
            axis += 1
        if not taken or _size_of(before, taken) != size:
            return None
        merged.append(taken)
    return merged if axis == len(before) else None


def _joined(order: Order, split: list[list[int]]) -> Order | None:
    """The order of axes before each was split into several; None where its parts do not follow each other."""
    whole, rest = [], list(order)
    while rest:
        axis = next(axis for axis, parts in enumerate(split) if rest[0] in parts)
        if rest[: len(split[axis])] != split[axis]:
            return None
        whole.append(axis)
        rest = rest[len(split[axis]) :]
    return whole


def _size_of(shape: Dims, axes: list[int]) -> int | str | None:
    """Elements along some axes together; None where that is not known."""
    if len(axes) == 1:
        return shape[axes[0]]
    sizes = [size for size in (shape[axis] for axis in axes) if isinstance(size, int)]
    return prod(sizes) if len(sizes) == len(axes) else None
