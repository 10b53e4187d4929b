"""How the operands of a problem that libraries compute lie in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.libraries.definition import Computable
from wpk.libraries.offer import constant_shape, constant_tensor
from wpk.problems import Convolution, Matmul, Normalisation, Tensor

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
        """The elements in bytes that begin with the first one."""
        flat = memory.view(self.tensor.dtype.numpy)
        strides = tuple(stride * flat.itemsize for stride in self.tensor.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, strides)


def places(problem: Computable, layout: str | None) -> tuple[Place, ...]:
    """The operator's inputs in order, then its output.

    Args:
        problem: What is computed.
        layout: Of the constant operand; None where there is none.
    """
    match problem:
        case Convolution():
            n = problem.n.value
            factors = [_place(problem.x, (n, problem.c, problem.h, problem.w))]
            domain: tuple[int, ...] = (n, problem.k, problem.p, problem.q)
        case Matmul():
            b0, b1, m = problem.batch[0].value, problem.batch[1], problem.m.value
            factors = [_place(problem.a, (b0, b1, m, problem.k))]
            if not problem.b_constant:
                factors.append(_place(problem.b, (b0, b1, problem.k, problem.n)))
            domain = (b0, b1, m, problem.n)
        case Normalisation():
            domain = (*problem.outer, problem.cols)
            factors = [_place(problem.inputs[0], domain)]
    if layout is not None:
        factors.append(Place(constant_tensor(problem, layout), constant_shape(problem)))
    others = (_place(each, domain) for each in problem.epilogue.operands)
    return (*factors, *others, Place(problem.y, domain))


def _place(tensor: Tensor, shape: Sequence[int]) -> Place:
    return Place(tensor, tuple(n if s else 1 for n, s in zip(shape, tensor.strides, strict=True)))
