"""What part of the tensor cores' peak the products of a plan reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

from rows.plan_operators import seconds_of
from wpk.plan.plan import Plan, Step
from wpk.problems import Convolution, FeedForward, Matmul, Problem
from wpk.targets.registry import find_target


@dataclass(frozen=True)
class Products:
    """The matrix products, feed-forward blocks and ungrouped convolutions of a plan.

    Attributes:
        operators: How many there are.
        operations: Multiplications and additions.
        seconds: What they take, with all that is fused into them.
        bound_seconds: What nothing can beat: some are bound by memory, and cannot reach the peak.
    """

    operators: int
    operations: int
    seconds: float
    bound_seconds: float

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.seconds


def product_figures(plan: Plan) -> dict[str, Any]:
    """The products of a plan, and the peak that they can reach at the most; nothing where there is none of either."""
    products = products_of(plan.steps)
    peak = find_target(plan.target).tensor_peak(plan.precision)
    if not products.operators or peak is None:
        return {}
    return {"products": asdict(products) | {"peak": peak, "share": products.rate / peak}}


def is_product(problem: Problem) -> bool:
    """Whether a problem counts: matrix products, feed-forward blocks and convolutions without groups."""
    if isinstance(problem, Convolution):
        return problem.groups == 1
    return isinstance(problem, Matmul | FeedForward)


def products_of(steps: Sequence[Step]) -> Products:
    """Those of a plan's steps; attention's products are not told apart from its softmax, and not counted."""
    found = [step for step in steps if is_product(step.operator.problem)]
    operations = sum(step.operator.problem.traffic().products for step in found)
    bound = fsum(step.evidence.bound_seconds for step in found)
    return Products(len(found), operations, fsum(map(seconds_of, found)), bound)
