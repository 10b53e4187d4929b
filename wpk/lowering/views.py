"""Strided views of tensors in memory, and what view operators do to them.

A view operator (Transpose, Reshape, Squeeze, Slice, Expand, ...) never moves data here: it changes
shape and strides. Where no strides can say it, `NotAViewError` names the tensor, and the caller gives that
tensor a plain layout or a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.lowering.free_axis import extent_of, free_among
from wpk.lowering.refusal import RefusedError
from wpk.problems import Tensor


class NotAViewError(Exception):
    """A tensor's memory layout cannot be seen in the shape asked for."""

    def __init__(self, source: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Remember which tensor stood in the way."""
        super().__init__(f"tensor {source!r} of shape {shape} cannot be viewed as {wanted}")
        self.source = source


@dataclass(frozen=True)
class View:
    """Elements of a tensor in memory, seen with some shape.

    Attributes:
        source: Name of the value or constant.
        dtype: Element type.
        leading: Extent of axis 0; free when a free dimension decides it.
        shape: Extents, a free one as `wpk.lowering.free_axis` has it; at least one axis.
        strides: Elements between neighbours; 0 along broadcast axes.
        offset: Elements from the start of the source.
        padding: Zero elements after the last one along the contiguous axis.
        alignment: Bytes, at most 16, that addresses of rows are multiples of.
        constant: Whether the source is a constant.
    """

    source: str
    dtype: DType
    leading: Extent
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    padding: int = 0
    alignment: int = 16
    constant: bool = False

    def tensor(self) -> Tensor:
        """Return this view as problems see it, with the alignment that its strides and offset leave."""
        alignment = self.alignment
        for step in (self.offset, *(s for s in self.strides if s > 1)):
            while alignment > self.dtype.bytes and step * self.dtype.bytes % alignment:
                alignment //= 2
        alignment = max(alignment, self.dtype.bytes)
        return Tensor(self.dtype, self.strides, self.padding, alignment, self.constant)

    def transposed(self, perm: Sequence[int]) -> "View":
        """Return the view with its axes in another order; the free axis must stay the leading one."""
        if perm[0] != 0 and self.leading.free is not None:
            raise RefusedError(
                f"a transpose moves the free dimension {self.leading.names[0]!r} away from the front "
                f"(perm {tuple(perm)})"
            )
        shape = tuple(self.shape[i] for i in perm)
        leading = self.leading if perm[0] == 0 else Extent(shape[0])
        return replace(
            self, leading=leading, shape=shape, strides=tuple(self.strides[i] for i in perm)
        )

    def reshaped(self, shape: Sequence[int]) -> "View":
        """Return the same elements in the same order with another shape.

        Raises:
            NotAViewError: No strides say it.
        """
        new = tuple(shape)
        if new == self.shape:
            return self
        strides = reshaped_strides(self.shape, self.strides, new)
        if strides is None or (self.padding and not _keeps_rows(self, new)):
            raise NotAViewError(self.source, self.shape, new)
        return replace(self, leading=extent_of(new[0]), shape=new, strides=strides)

    def broadcast(self, shape: Sequence[int], leading: Extent) -> "View":
        """Return the view in a larger shape by NumPy's rules: size-1 and missing axes get stride 0."""
        missing = len(shape) - len(self.shape)
        padded = (1,) * missing + self.shape
        if any(have not in (1, want) for have, want in zip(padded, shape, strict=True)):
            raise NotAViewError(self.source, self.shape, tuple(shape))
        strides = (0,) * missing + self.strides
        fits = zip(padded, strides, shape, strict=True)
        new = tuple(
            0 if have == 1 and (want != 1 or i < missing) else stride
            for i, (have, stride, want) in enumerate(fits)
        )
        if not missing and self.shape[0] == 1 and self.leading.free is None:
            new = (0, *new[1:])
        return replace(self, leading=leading, shape=tuple(shape), strides=new)

    def sliced(self, axis: int, start: int, count: int, step: int = 1) -> "View":
        """Return ``count`` elements along an axis from ``start`` on."""
        if (free := free_among(self.shape, [axis])) is not None:
            raise RefusedError(f"a part of the free dimension {free!r} is taken")
        shape = (*self.shape[:axis], count, *self.shape[axis + 1 :])
        strides = (*self.strides[:axis], self.strides[axis] * step, *self.strides[axis + 1 :])
        contiguous_cut = self.strides[axis] == 1 and start + count != self.shape[axis]
        return replace(
            self,
            leading=Extent(count) if axis == 0 else self.leading,
            shape=shape,
            strides=strides,
            offset=self.offset + start * self.strides[axis],
            padding=0 if contiguous_cut or step != 1 else self.padding,
        )


def _keeps_rows(view: View, new: tuple[int, ...]) -> bool:
    """Whether a reshape leaves the padded, contiguous last axis as it is."""
    return view.strides[-1] == 1 and new[-1] == view.shape[-1]


def contiguous_strides(shape: Sequence[int], row: int | None = None) -> tuple[int, ...]:
    """Row-major strides; ``row`` is the distance between rows of the last axis, if padded."""
    if not shape:
        return ()
    sizes = [*shape[1:-1], row or shape[-1]] if len(shape) > 1 else []
    return (*(prod(sizes[i:]) for i in range(len(sizes))), 1)


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that show the same elements in the same order with shape ``new``; None if none do."""
    if prod(shape) != prod(new):
        return None
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    block: list[tuple[int, int]] = []
    wanted: list[int] = []
    for size in new:
        if size == 1:
            wanted.append(1)
            continue
        wanted.append(size)
        while prod(n for n, _ in block) < prod(wanted):
            if not old:
                return None
            block.append(old.pop(0))
        if prod(n for n, _ in block) == prod(wanted):
            if any(a_s != b_n * b_s for (_, a_s), (b_n, b_s) in pairwise(block)):
                return None
            result += _split(wanted, block[-1][1])
            block, wanted = [], []
    if block:
        return None
    inner = result[-1] if result else 1
    return tuple(result) + (inner,) * len(wanted)


def _split(sizes: Sequence[int], innermost: int) -> list[int]:
    return [innermost * prod(sizes[i + 1 :]) for i in range(len(sizes))]
