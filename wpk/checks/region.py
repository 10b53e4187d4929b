"""Where a step's output lies in its buffer: its elements, its padding, and all that is neither."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.checks.float64_nodes import Array
from wpk.dims import evaluate
from wpk.execution import Bytes
from wpk.lowering.program import Value
from wpk.problems import Access
from wpk.reused_memory import empty
from wpk.strided import strided


@dataclass(frozen=True)
class OutputRegion:
    """The elements of a buffer's image that a step's output and its padding take.

    Attributes:
        image: The buffer's bytes; elements are views of them.
        value: The output.
        access: How the step's problem sees it.
        dims: Values of the free dimensions.
    """

    image: Bytes
    value: Value
    access: Access
    dims: Mapping[str, int]

    def elements(self) -> Array:
        """Return the output over its domain."""
        return self._view(self.access.tensor.strides, self._extents(), 0)

    def padding(self) -> Array | None:
        """Return the zeros after the contiguous axis, if there are any."""
        tensor, extents = self.access.tensor, list(self._extents())
        if tensor.padding == 0:
            return None
        contiguous = [axis for axis, stride in enumerate(tensor.strides) if stride == 1]
        if not contiguous:  # it has one element, and problems leave such axes out
            return self._view((*tensor.strides, 1), (*extents, tensor.padding), 1)
        start = extents[contiguous[-1]]
        extents[contiguous[-1]] = tensor.padding
        return self._view(tensor.strides, extents, start)

    def dirty_padding(self) -> int:
        """How many elements of padding are not zero."""
        padding = self.padding()
        return 0 if padding is None else int(np.count_nonzero(padding.view(_bits(padding))))

    def poison(self) -> None:
        """Make elements and padding not-a-number, or the largest integer of their bits."""
        for part in (self.elements(), self.padding()):
            if part is not None:
                part.view(_bits(part))[...] = np.iinfo(_bits(part)).max

    def mask(self) -> NDArray[np.bool_]:
        """Return the bytes of elements and padding."""
        image = empty(self.image.shape, np.uint8).view(np.uint8)
        image[...] = 0
        OutputRegion(image, self.value, self.access, self.dims).poison()
        return np.not_equal(image, 0, out=image.view(np.bool_))

    def _extents(self) -> tuple[int, ...]:
        return tuple(evaluate(extent, self.dims) for extent in self.access.extents)

    def _view(self, strides: Sequence[int], extents: Sequence[int], start: int) -> Array:
        dtype = self.access.tensor.dtype
        rest = self.image[self.value.offset + start * dtype.bytes :]
        flat = rest[: rest.size // dtype.bytes * dtype.bytes].view(dtype.numpy)
        elements: Array = strided(flat, extents, [s * dtype.bytes for s in strides])
        return elements


def _bits(array: Array) -> np.dtype[np.unsignedinteger]:
    return np.dtype(f"u{array.itemsize}")
