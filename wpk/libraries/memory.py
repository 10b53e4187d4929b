"""How the operands of a problem that libraries compute lie in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.libraries.offer import constant_shape, constant_tensor
from wpk.problems import Access, Problem, Tensor
from wpk.strided import strided

Array = NDArray[Any]


@dataclass(frozen=True)
class Place:
    """A tensor with the extents behind its strides; 1 where it is broadcast.

    Attributes:
        tensor: How it lies in memory.
        shape: Its extents.
    """

    tensor: Tensor
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """From the first element to the last, padding included."""
        last = sum((n - 1) * s for n, s in zip(self.shape, self.tensor.strides, strict=True))
        return (last + 1 + self.tensor.padding) * self.tensor.dtype.bytes

    def view(self, memory: NDArray[np.uint8]) -> Array:
        """Return the elements in bytes that begin with the first one."""
        flat = memory.view(self.tensor.dtype.numpy)
        strides = tuple(stride * flat.itemsize for stride in self.tensor.strides)
        return strided(flat, self.shape, strides)


def places(problem: Problem, layout: str | None) -> tuple[Place, ...]:
    """Return the operator's inputs in order, then its output.

    Args:
        problem: What is computed.
        layout: Of the constant operand, which is left out where this is None.
    """
    inputs, output = problem.accesses()
    found = []
    for access in inputs:
        if access is not None:
            found.append(_place(access))
        elif layout is not None:
            found.append(Place(constant_tensor(problem, layout), constant_shape(problem)))
    return (*found, Place(output.tensor, output.sizes))


def _place(access: Access) -> Place:
    pairs = zip(access.sizes, access.tensor.strides, strict=True)
    return Place(access.tensor, tuple(size if stride else 1 for size, stride in pairs))
