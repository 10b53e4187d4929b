"""How the operands of a problem that libraries compute lie in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.libraries.definition import Defined
from wpk.libraries.offer import constant_shape, constant_tensor
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Matmul,
    Normalisation,
    Reduction,
    Tensor,
)

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


def places(problem: Defined, layout: str | None) -> tuple[Place, ...]:
    """The operator's inputs in order, then its output.

    Args:
        problem: What is computed.
        layout: Of the constant operand, which is left out where this is None.
    """
    factors, domain = _factors(problem)
    if layout is not None:
        constant = Place(constant_tensor(problem, layout), constant_shape(problem))
        factors = (*factors, constant)
    others = (_place(tensor, shape) for tensor, shape in _operands(problem, domain))
    return (*factors, *others, Place(problem.y, domain))


def _factors(problem: Defined) -> tuple[tuple[Place, ...], tuple[int, ...]]:
    """What comes before an epilogue's operands and is no constant; the domain of the output."""
    match problem:
        case Convolution():
            n = problem.n.value
            x = _place(problem.x, (n, problem.c, problem.h, problem.w))
            return (x,), (n, problem.k, problem.p, problem.q)
        case Matmul():
            b0, b1, m = problem.batch[0].value, problem.batch[1], problem.m.value
            a = _place(problem.a, (b0, b1, m, problem.k))
            b = _place(problem.b, (b0, b1, problem.k, problem.n))
            return (a,) if problem.b_constant else (a, b), (b0, b1, m, problem.n)
        case Attention():
            outer = (problem.batch[0].value, problem.batch[1])
            q = _place(problem.q, (*outer, problem.queries, problem.depth))
            k = _place(problem.k, (*outer, problem.keys, problem.depth))
            v = _place(problem.v, (*outer, problem.keys, problem.width))
            return (q, k, v), (*outer, problem.queries, problem.width)
        case Normalisation():
            rows = (*problem.outer, problem.cols)
            return tuple(_place(each, rows) for each in problem.inputs), rows
        case Reduction():
            whole = (*problem.outer, *problem.inner)
            return tuple(_place(each, whole) for each in problem.inputs), problem.outer
        case Elementwise():
            return tuple(_place(each, problem.shape) for each in problem.inputs), problem.shape


def _operands(
    problem: Defined, domain: tuple[int, ...]
) -> tuple[tuple[Tensor, tuple[int, ...]], ...]:
    """The operands that expressions read after the factors, and the domain they lie over."""
    match problem:
        case Attention():
            outer = (problem.batch[0].value, problem.batch[1])
            shape = (*outer, problem.queries, problem.keys)
            return tuple((each, shape) for each in problem.scores.operands)
        case Elementwise():
            return ()
        case _:
            return tuple((each, domain) for each in problem.epilogue.operands)


def _place(tensor: Tensor, shape: Sequence[int]) -> Place:
    return Place(tensor, tuple(n if s else 1 for n, s in zip(shape, tensor.strides, strict=True)))
