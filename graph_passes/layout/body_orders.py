"""The order in memory that an operator's body asks for of what it reads.

    Conv(x)                                  x in NCHW lies best in NHWC: channels last
    Conv(Transpose(x, (0, 3, 1, 2)))         x in NHWC lies best as it is
    LayerNorm(Transpose(x, (0, 2, 3, 1)))    x in NCHW lies best in NHWC, where a row is in one piece
    MatMul(Transpose(Reshape(x)), w)         x in NCHW, its pixels the rows of a product, lies best in NHWC
    Relu(x), to be written channels last     x lies best like the result

An order is a list: at each place in memory, slowest first, an axis of the tensor.
"""

from collections.abc import Iterator
from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import ANCHORS, ROWS, SPATIAL, is_elementwise
from wpk.graph_passes.core.query import Dims, dims, is_op, producer, rank
from wpk.graph_passes.layout.axes import RANKS, to_last
from wpk.graph_passes.movement.reshape_chains import permutation

Order = list[int]


def asks_for_last(function: gs.Function, index: int, *, output_is_last: bool) -> bool:
    """Tell whether the body of ``function`` would have its input ``index`` channels last.

    Args:
        function: The operator.
        index: Of the input.
        output_is_last: Whether what it gives is to be channels last.
    """
    tensor = function.inputs[index]
    dimensions = rank(tensor)
    if dimensions not in RANKS:
        return False
    last = to_last(dimensions)
    wanted = list(_of_anchor(function))
    output = function.outputs[0]
    if output_is_last and rank(output) in RANKS:
        wanted.append((output, to_last(rank(output) or 0)))
    return any(order == last for start in wanted for order in _orders_of(tensor, *start))


def body_anchor(function: gs.Function) -> gs.Node | None:
    """Return the anchor of an operator's body; None for an element-wise graph."""
    return next((node for node in function.nodes if is_op(node, *ANCHORS)), None)


def _of_anchor(function: gs.Function) -> Iterator[tuple[gs.Tensor, Order]]:
    """What the anchor slides over, or takes the rows of, with the order that suits it."""
    anchor = body_anchor(function)
    if anchor is None:
        return
    data = anchor.inputs[0]
    dimensions = rank(data)
    if dimensions not in RANKS:
        return
    if is_op(anchor, *SPATIAL):
        yield data, to_last(dimensions)
    elif is_op(anchor, *ROWS, "MatMul"):
        yield data, list(range(dimensions))


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
    elif is_elementwise(maker) or is_op(maker, *ANCHORS):
        for each in maker.inputs:
            if rank(each) == len(order):
                yield from _orders_of(tensor, each, order)


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
