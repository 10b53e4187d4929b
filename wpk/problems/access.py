"""Which elements of a tensor a problem touches."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from wpk.dims import DimExpr, evaluate
from wpk.extent import Extent
from wpk.problems.operand import Tensor

Axes = tuple[Extent | int, ...]
"""The extents of a domain."""


@dataclass(frozen=True)
class Access:
    """A tensor of a problem with the extents of its domain.

    Attributes:
        tensor: How it lies in memory.
        axes: The extents behind its strides.
    """

    tensor: Tensor
    axes: Axes

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents that models, search and measurements use."""
        return tuple(axis if isinstance(axis, int) else axis.value for axis in self.axes)

    @property
    def extents(self) -> tuple[DimExpr, ...]:
        """The extents at run time."""
        return tuple(axis if isinstance(axis, int) else axis.expression for axis in self.axes)

    @property
    def distinct_bytes(self) -> int:
        """Bytes of the distinct elements: axes of stride 0 count once."""
        moving = [pair for pair in zip(self.sizes, self.tensor.strides, strict=True) if pair[1]]
        span = 1 + sum((size - 1) * abs(stride) for size, stride in moving)
        return min(prod(size for size, _ in moving), span) * self.tensor.dtype.bytes

    def span_bytes(self, dims: Mapping[str, int]) -> int:
        """Bytes from the first element to the end of the last one that can be touched."""
        sizes = [evaluate(extent, dims) for extent in self.extents]
        pairs = zip(sizes, self.tensor.strides, strict=True)
        last = sum((size - 1) * stride for size, stride in pairs)
        return (last + 1) * self.tensor.dtype.bytes
