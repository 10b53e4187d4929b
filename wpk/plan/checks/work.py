"""How much work a plan asks for: no more than a large GPU does in a second, each step."""

from collections.abc import Mapping
from math import prod

from wpk.dims import evaluate
from wpk.expression import leaves
from wpk.plan.fields import within
from wpk.plan.footprint import accesses
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Matmul,
    Pooling,
    Problem,
    Reduction,
)

MAX_OPERATIONS = 2**50
"""Of one step: what the fastest GPU of `wpk.targets` multiplies and adds in about a second. A product in
a language model of 7 billion weights, for 64 texts of 2048 words, asks for 2^45."""


def check_work(problem: Problem, dims: Mapping[str, int], path: str) -> None:
    """Refuse a problem that nobody has.

    Raises:
        PlanError: Naming the field.
    """
    within(f"{path}, operations", _operations(problem, dims), 1, MAX_OPERATIONS)


def _operations(problem: Problem, dims: Mapping[str, int]) -> int:
    """Terms that all elements of the output are made of."""
    _, (_, extents) = accesses(problem)
    sizes = [evaluate(extent, dims) for extent in extents]
    elements = prod(sizes)
    match problem:
        case Convolution() | Matmul():
            return elements * problem.reduction
        case Attention():
            return prod(sizes[:3]) * problem.keys * (problem.depth + problem.width)
        case Pooling():
            return elements * prod(problem.window)
        case Reduction():
            return elements * prod(problem.inner)
        case Elementwise():
            return elements * sum(1 for _ in leaves(problem.expression))
        case _:
            return elements
