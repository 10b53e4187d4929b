"""The same kind of layout for other extents: order, gaps, padding, broadcasting and alignment are kept."""

from collections.abc import Sequence
from dataclasses import replace

from wpk.problems.operand import Tensor


def resized(
    tensor: Tensor, before: Sequence[int], after: Sequence[int], *, spread: bool = False
) -> Tensor | None:
    """The tensor over other extents; None where they would change what the layout promises.

    Axes keep their order in memory and the gaps behind them, of which the padding is one.

    Args:
        tensor: Over the extents ``before``.
        before: Its extents.
        after: The new ones.
        spread: Whether the tensor has its own elements along an axis that had one; else it is
            broadcast along it.
    """
    strides = [0] * len(after)
    reached = end = 0  # where the axes so far end, before and after
    for axis in _outwards(tensor.strides, before):
        stride = tensor.strides[axis]
        if before[axis] == 1 and not spread:
            continue
        gap = stride - reached
        if gap < 0 and before[axis] > 1:
            return None
        strides[axis] = end + max(gap, 0)
        reached, end = max(reached, stride * before[axis]), strides[axis] * after[axis]
    whole = max(1, tensor.alignment // tensor.dtype.bytes)
    for axis in reversed(range(len(after))):
        if spread and tensor.strides[axis] == 0 and before[axis] == 1 < after[axis]:
            strides[axis] = -(-(end + tensor.padding) // whole) * whole
            end = strides[axis] * after[axis]
    if any(stride > 1 and stride % whole for stride in strides):
        return None
    return replace(tensor, strides=tuple(strides))


def _outwards(strides: Sequence[int], extents: Sequence[int]) -> list[int]:
    """The axes that have a stride, from the fastest on.

    The stride of an axis of one element says little: the axis lies inside of others with the same
    stride, but never inside of the one whose elements are neighbours.
    """

    def place(axis: int) -> tuple[int, bool, int]:
        return strides[axis], (extents[axis] == 1) == (strides[axis] == 1), -axis

    return sorted((axis for axis, stride in enumerate(strides) if stride), key=place)
