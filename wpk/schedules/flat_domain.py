"""The domain of an element-wise problem with as few axes as strides permit, ordered as y lies in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from wpk.extent import Extent
from wpk.problems import Elementwise, Tensor
from wpk.schedules.strided import with_strides

CONSTANT_AXES = 4
"""Axes of a kernel's domain besides the run-time one."""


@dataclass(frozen=True)
class FlatDomain:
    """Tensors over (leading, *shape); the last axis is the one along which y is contiguous.

    Attributes:
        leading: The run-time extent; 1 where the problem's is fixed and could join the other axes.
        shape: Extents of the other axes.
        inputs: The inputs.
        y: The output.
    """

    leading: Extent
    shape: tuple[int, ...]
    inputs: tuple[Tensor, ...]
    y: Tensor

    @property
    def row(self) -> int:
        """The domain's axis along which y is contiguous."""
        return len(self.shape)

    @property
    def per_leading(self) -> int:
        """Elements of y at one leading index, its padding included."""
        return prod(self.shape[:-1]) * (self.shape[-1] + self.y.padding)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """All extents, the leading one at the value that models use."""
        return (self.leading.value, *self.shape)

    def moved(self, axis: int, position: int) -> "FlatDomain":
        """Return the same domain with one of the axes behind the leading one at another position."""
        order = [a for a in range(1, self.row + 1) if a != axis]
        order.insert(position - 1, axis)
        return _reordered(self, order)


def flatten(problem: Elementwise) -> FlatDomain | None:
    """Return the problem's flat domain; None where it has more than ``CONSTANT_AXES`` besides the leading one."""
    tensors = (*problem.inputs, problem.y)
    free = problem.leading.free is not None
    candidates = [_split_leading(problem, tensors)] if free else []
    if not free:
        whole = [(problem.leading.value, tuple(t.strides[0] for t in tensors))]
        candidates = [(Extent(1), (0,) * len(tensors), whole)]
        candidates.append((problem.leading, tuple(t.strides[0] for t in tensors), []))
    for leading, leading_strides, first in candidates:
        axes = first + [
            (size, tuple(t.strides[axis] for t in tensors))
            for axis, size in enumerate(problem.shape)
            if axis > 0
        ]
        axes = _merged(axes, problem.y.padding) or [(1, (1,) * len(tensors))]
        if len(axes) <= CONSTANT_AXES:
            return _domain(leading, leading_strides, axes, tensors)
    return None


Axis = tuple[int, tuple[int, ...]]
"""An extent, and the stride of every tensor."""


def _split_leading(
    problem: Elementwise, tensors: Sequence[Tensor]
) -> tuple[Extent, tuple[int, ...], list[Axis]]:
    """A free extent of factor * n as n, and an axis of ``factor``."""
    leading = problem.leading
    strides = tuple(t.strides[0] for t in tensors)
    outer = Extent(leading.value // leading.factor, leading.free)
    return outer, tuple(s * leading.factor for s in strides), [(leading.factor, strides)]


def _merged(axes: Sequence[Axis], padding: int) -> list[Axis]:
    """Axes in the order of y's memory, without those of extent 1, neighbours joined where they can be."""
    kept = [(n, s) for n, s in axes if n != 1 or (padding and s[-1] == 1)]
    kept.sort(key=lambda axis: (-abs(axis[1][-1]), axis[0]))
    merged: list[Axis] = []
    for size, strides in kept:
        if merged:
            outer, outer_strides = merged[-1]
            if all(o == size * s for o, s in zip(outer_strides, strides, strict=True)):
                merged[-1] = (outer * size, strides)
                continue
        merged.append((size, strides))
    return merged


def _domain(
    leading: Extent, leading_strides: Sequence[int], axes: Sequence[Axis], tensors: Sequence[Tensor]
) -> FlatDomain:
    rebuilt = []
    for i, tensor in enumerate(tensors):
        strides = (leading_strides[i], *(s[i] for _, s in axes))
        rebuilt.append(with_strides(tensor, strides))
    return FlatDomain(leading, tuple(n for n, _ in axes), tuple(rebuilt[:-1]), rebuilt[-1])


def _reordered(domain: FlatDomain, order: Sequence[int]) -> FlatDomain:
    def pick(tensor: Tensor) -> Tensor:
        return replace(tensor, strides=(tensor.strides[0], *(tensor.strides[a] for a in order)))

    return FlatDomain(
        domain.leading,
        tuple(domain.shape[axis - 1] for axis in order),
        tuple(pick(tensor) for tensor in domain.inputs),
        pick(domain.y),
    )
