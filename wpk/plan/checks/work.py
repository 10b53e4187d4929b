"""How much work a plan asks for: no more than a large GPU does in a second, each step."""

from collections.abc import Mapping
from math import prod

from wpk.dims import evaluate
from wpk.plan.fields import within
from wpk.problems import Fallback, Problem

MAX_OPERATIONS = 2**50
"""Of one step: what the fastest GPU of `wpk.targets` multiplies and adds in about a second. A product in
a language model of 7 billion weights, for 64 texts of 2048 words, asks for 2^45."""


def check_work(problem: Problem, dims: Mapping[str, int], path: str) -> None:
    """Refuse a problem that nobody has.

    Raises:
        PlanError: Naming the field.
    """
    if isinstance(problem, Fallback):
        return  # what it costs only a run knows; that has a time limit
    _, output = problem.accesses()
    elements = prod(evaluate(extent, dims) for extent in output.extents)
    within(f"{path}, operations", problem.terms(elements), 1, MAX_OPERATIONS)
