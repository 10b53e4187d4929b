"""What problems touch and compute at least: bytes counted once, operations without padding.

Lower limits, so that the bound they give is one that nothing can beat: input elements that no
window reaches do not count, nor do products with padding, nor data that an index might leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from wpk.expression import Expression, flops
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Epilogue,
    Gather,
    Matmul,
    Normalisation,
    NormKind,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
    ResizeMode,
    Tensor,
)


@dataclass(frozen=True)
class Traffic:
    """What a problem must touch and compute.

    Attributes:
        bytes: Of distinct elements read or written.
        products: Operations of the matrix-like part (two a multiply-accumulate), which a tensor
            core may do.
        others: All other operations; the ordinary cores do them.
    """

    bytes: int
    products: int
    others: int


def traffic(problem: Problem) -> Traffic:
    """The least that a problem touches and computes."""
    match problem:
        case Convolution():
            return _convolution(problem)
        case Matmul():
            return _matmul(problem)
        case Attention():
            return _attention(problem)
        case Pooling():
            return _pooling(problem)
        case Reduction():
            inner = (problem.leading.value, *problem.outer[1:], *problem.inner)
            outer = (problem.leading.value, *problem.outer[1:])
            return _rows(problem.inputs, inner, problem.prologue, 1, (problem.y, outer), problem)
        case Normalisation():
            domain = (problem.leading.value, *problem.outer[1:], problem.cols)
            cost = _NORMALISE[problem.kind]
            return _rows(
                problem.inputs, domain, problem.prologue, cost, (problem.y, domain), problem
            )
        case Elementwise():
            domain = (problem.leading.value, *problem.shape[1:])
            moved = sum(tensor_bytes(t, domain) for t in (*problem.inputs, problem.y))
            return Traffic(moved, 0, prod(domain) * flops(problem.expression))
        case Gather() | Pad() | Resize():
            return _movement(problem)


def tensor_bytes(tensor: Tensor, domain: Sequence[int]) -> int:
    """Bytes of a tensor's distinct elements over a domain: axes of stride 0 count once."""
    sizes = [size for size, stride in zip(domain, tensor.strides, strict=True) if stride]
    steps = [stride for stride in tensor.strides if stride]
    span = 1 + sum((n - 1) * abs(step) for n, step in zip(sizes, steps, strict=True))
    return min(prod(sizes), span) * tensor.dtype.bytes


_NORMALISE = {
    NormKind.SOFTMAX: 12,  # maximum, subtract, exp (8), sum, multiply
    NormKind.LOG_SOFTMAX: 12,  # maximum, subtract, exp (8), sum, subtract
    NormKind.LAYER: 5,  # sum, subtract, square and sum (2), multiply
    NormKind.RMS: 3,  # square and sum (2), multiply
}
"""Operations an element, special functions counted as in `wpk.expression.OPERATIONS`."""


def _convolution(problem: Convolution) -> Traffic:
    taps = [_taps(problem, axis) for axis in (0, 1)]  # [output, input, tap] -> used
    pairs = prod(int(used.sum()) for used in taps)
    rows, cols = (int(used.any(axis=(0, 2)).sum()) for used in taps)
    kernel = prod(int(used.any(axis=(0, 1)).sum()) for used in taps)
    n, groups = problem.n.value, problem.groups
    output = (n, problem.k, problem.p, problem.q)
    weight = problem.k * (problem.c // groups) * kernel * problem.precision.storage.bytes
    moved = tensor_bytes(problem.x, (n, problem.c, rows, cols)) + weight
    moved += tensor_bytes(problem.y, output) + _operands(problem.epilogue, output)
    products = 2 * n * problem.k * (problem.c // groups) * pairs
    return Traffic(moved, products, prod(output) * flops(problem.epilogue.expression))


def _taps(problem: Convolution, axis: int) -> np.ndarray:
    """Which output, input and filter positions of one axis meet: booleans, in this order."""
    outputs, inputs = ((problem.p, problem.h), (problem.q, problem.w))[axis]
    if problem.transposed:
        outputs, inputs = inputs, outputs  # the input's positions walk over the output
    walk = np.arange(outputs) * problem.stride[axis] - problem.pad[axis]
    reached = walk[:, None] + np.arange(problem.filter[axis]) * problem.dilation[axis]
    used: np.ndarray = reached[:, None, :] == np.arange(inputs)[None, :, None]
    return used.transpose(1, 0, 2) if problem.transposed else used


def _matmul(problem: Matmul) -> Traffic:
    batch = (problem.batch[0].value, problem.batch[1])
    m, n, k = problem.m.value, problem.n, problem.k
    output = (*batch, m, n)
    if problem.b_constant:
        b_bytes = k * n * problem.b.dtype.bytes
    else:
        b_bytes = tensor_bytes(problem.b, (*batch, k, n))
    moved = tensor_bytes(problem.a, (*batch, m, k)) + b_bytes
    moved += tensor_bytes(problem.y, output) + _operands(problem.epilogue, output)
    others = prod(output) * flops(problem.epilogue.expression)
    return Traffic(moved, 2 * problem.macs, others)


def _attention(problem: Attention) -> Traffic:
    batch = (problem.batch[0].value, problem.batch[1])
    scores = (*batch, problem.queries, problem.keys)
    moved = tensor_bytes(problem.q, (*batch, problem.queries, problem.depth))
    moved += tensor_bytes(problem.k, (*batch, problem.keys, problem.depth))
    moved += tensor_bytes(problem.v, (*batch, problem.keys, problem.width))
    moved += tensor_bytes(problem.y, (*batch, problem.queries, problem.width))
    moved += _operands(problem.scores, scores)
    # A softmax without its division, which the result's elements can have as well.
    others = prod(scores) * (_NORMALISE[NormKind.SOFTMAX] - 1 + flops(problem.scores.expression))
    return Traffic(moved, 2 * problem.macs, others)


def _pooling(problem: Pooling) -> Traffic:
    extents = ((problem.p, problem.h), (problem.q, problem.w))
    reached = []
    for axis, (outputs, inputs) in enumerate(extents):
        walk = np.arange(outputs) * problem.stride[axis] - problem.pad[axis]
        taps = walk[:, None] + np.arange(problem.window[axis]) * problem.dilation[axis]
        reached.append(taps[(taps >= 0) & (taps < inputs)])
    n, c = problem.n.value, problem.c
    rows, cols = (len(np.unique(taps)) for taps in reached)
    output = (n, c, problem.p, problem.q)
    moved = tensor_bytes(problem.x, (n, c, rows, cols)) + tensor_bytes(problem.y, output)
    moved += _operands(problem.epilogue, output)
    others = n * c * prod(len(taps) for taps in reached)
    return Traffic(moved, 0, others + prod(output) * flops(problem.epilogue.expression))


def _rows(
    inputs: Sequence[Tensor],
    domain: tuple[int, ...],
    prologue: Expression,
    cost: int,
    result: tuple[Tensor, tuple[int, ...]],
    problem: Reduction | Normalisation,
) -> Traffic:
    y, output = result
    moved = sum(tensor_bytes(tensor, domain) for tensor in inputs)
    moved += tensor_bytes(y, output) + _operands(problem.epilogue, output)
    others = prod(domain) * (cost + flops(prologue))
    return Traffic(moved, 0, others + prod(output) * flops(problem.epilogue.expression))


def _movement(problem: Gather | Pad | Resize) -> Traffic:
    match problem:
        case Gather():
            outer, count = problem.outer.value, problem.count.value
            moved = tensor_bytes(problem.y, (outer, count, problem.inner))
            moved += tensor_bytes(problem.index, (outer, count))
            # Every index may name the same row.
            return Traffic(moved + tensor_bytes(problem.data, (outer, 1, problem.inner)), 0, 0)
        case Pad():
            inside = [
                max(1, min(x, begin + x, y, y - begin))
                for x, y, begin in zip(problem.x_shape, problem.y_shape, problem.begin, strict=True)
            ]
            lead = problem.leading.value
            moved = tensor_bytes(problem.x, (lead, *inside[1:]))
            return Traffic(moved + tensor_bytes(problem.y, (lead, *problem.y_shape[1:])), 0, 0)
        case Resize():
            n, c = problem.n.value, problem.c
            # Samples lie at least as close as the coarser grid; rounding may leave out an end.
            rows = max(1, min(problem.h, problem.p) - 1)
            cols = max(1, min(problem.w, problem.q) - 1)
            output = (n, c, problem.p, problem.q)
            moved = tensor_bytes(problem.x, (n, c, rows, cols)) + tensor_bytes(problem.y, output)
            # Linear: three interpolations of two operations each.
            others = 6 * prod(output) if problem.mode is ResizeMode.LINEAR else 0
            return Traffic(moved, 0, others)


def _operands(epilogue: Epilogue, output: tuple[int, ...]) -> int:
    return sum(tensor_bytes(tensor, output) for tensor in epilogue.operands)
