"""Which elements of its operands a problem touches: the extents behind every tensor's strides."""

from collections.abc import Mapping, Sequence

from wpk.dims import DimExpr, evaluate
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Gather,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
    Tensor,
)

Access = tuple[Tensor, tuple[DimExpr, ...]]
"""A tensor of a problem with the extents of its domain."""


def accesses(problem: Problem) -> tuple[tuple[Access | None, ...], Access]:
    """Inputs in the operator's order, and the output.

    An input is None where a packing, not strides, says how the kernel reads it.
    """
    match problem:
        case Convolution():
            n = problem.n.expression
            x = (problem.x, (n, problem.c, problem.h, problem.w))
            domain: tuple[DimExpr, ...] = (n, problem.k, problem.p, problem.q)
            inputs: list[Access | None] = [x, None]
        case Matmul():
            b0, b1 = problem.batch[0].expression, problem.batch[1]
            m = problem.m.expression
            b = None if problem.b_constant else (problem.b, (b0, b1, problem.k, problem.n))
            domain = (b0, b1, m, problem.n)
            inputs = [(problem.a, (b0, b1, m, problem.k)), b]
        case Attention():
            return _attention(problem)
        case Pooling():
            n = problem.n.expression
            domain = (n, problem.c, problem.p, problem.q)
            inputs = [(problem.x, (n, problem.c, problem.h, problem.w))]
        case Reduction():
            domain = (problem.leading.expression, *problem.outer[1:])
            inputs = [(each, (*domain, *problem.inner)) for each in problem.inputs]
        case Normalisation():
            domain = (problem.leading.expression, *problem.outer[1:], problem.cols)
            inputs = [(each, domain) for each in problem.inputs]
        case Elementwise():
            domain = (problem.leading.expression, *problem.shape[1:])
            return tuple((each, domain) for each in problem.inputs), (problem.y, domain)
        case _:
            return _moved(problem)
    operands = [(each, domain) for each in problem.epilogue.operands]
    if isinstance(problem, ClampedConvolution):
        operands += [(each, x[1]) for each in problem.limits]
    return (*inputs, *operands), (problem.y, domain)


def _attention(problem: Attention) -> tuple[tuple[Access | None, ...], Access]:
    batch = (problem.batch[0].expression, problem.batch[1])
    scores = (*batch, problem.queries, problem.keys)
    inputs = (
        (problem.q, (*batch, problem.queries, problem.depth)),
        (problem.k, (*batch, problem.keys, problem.depth)),
        (problem.v, (*batch, problem.keys, problem.width)),
        *((each, scores) for each in problem.scores.operands),
    )
    return inputs, (problem.y, (*batch, problem.queries, problem.width))


def _moved(problem: Gather | Pad | Resize) -> tuple[tuple[Access | None, ...], Access]:
    match problem:
        case Gather():
            outer, count = problem.outer.expression, problem.count.expression
            data = (problem.data, (outer, problem.axis_size, problem.inner))
            index = (problem.index, (outer, count))
            return (data, index), (problem.y, (outer, count, problem.inner))
        case Pad():
            n = problem.leading.expression
            x = (problem.x, (n, *problem.x_shape[1:]))
            return (x,), (problem.y, (n, *problem.y_shape[1:]))
        case Resize():
            n = problem.n.expression
            x = (problem.x, (n, problem.c, problem.h, problem.w))
            return (x,), (problem.y, (n, problem.c, problem.p, problem.q))


def span_bytes(access: Access, dims: Mapping[str, int]) -> int:
    """Bytes from the first element to the end of the last one that the access can touch."""
    tensor, extents = access
    sizes: Sequence[int] = [evaluate(extent, dims) for extent in extents]
    last = sum((size - 1) * stride for size, stride in zip(sizes, tensor.strides, strict=True))
    return (last + 1) * tensor.dtype.bytes
