"""The share of the tensor cores' peak that a network's products reach at a large batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import fsum
from pathlib import Path

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures
from rows.plan_operators import seconds_of
from rows.tuned import measure_tuned
from rows.zoo import ZooCase
from wpk.dtypes import Precision
from wpk.plan.plan import Step
from wpk.plan.plan_file import read_plan
from wpk.problems import Convolution, Matmul
from wpk.targets.registry import find_target

NETWORKS = ("vit", "bert", "swin")
BATCH = 32
BUDGET, EFFORT = "20s", 0
"""Of tuning: references and proofs of a large batch take the most of a row's minute."""

GOAL = Goal("share of the tensor cores' peak", 0.55)


@dataclass(frozen=True)
class Products:
    """The matrix products and ungrouped convolutions of a plan.

    Attributes:
        operators: How many there are.
        operations: Multiplications and additions.
        seconds: What they take, with all that is fused into them.
    """

    operators: int
    operations: int
    seconds: float

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.seconds


def rows() -> list[Row]:
    """One a network."""
    claim = "operations of the products over their time and the datasheet's peak, fp16"
    cases = [ZooCase(name, Precision.FP16, BATCH) for name in NETWORKS]
    return [Row(f"peak.{case}", claim, partial(_measure, case), goals=(GOAL,)) for case in cases]


def _measure(case: ZooCase, context: Context) -> Outcome:
    return measure_tuned(case, _measure_plan, replace(context, budget=BUDGET, effort=EFFORT))


def _measure_plan(path: Path, _context: Context) -> Outcome:
    plan = read_plan(path).plan
    peak = find_target(plan.target).tensor_peak(Precision.FP16)
    if peak is None:
        raise RowError(f"{plan.target} has no peak in fp16")
    return judge(products_of(plan.steps), peak)


def products_of(steps: Sequence[Step]) -> Products:
    """Those of a plan's steps; attention's products are not told apart from its softmax, and not counted."""
    found = [
        step
        for step in steps
        if isinstance(problem := step.operator.problem, Matmul)
        or (isinstance(problem, Convolution) and problem.groups == 1)
    ]
    operations = sum(step.operator.problem.traffic().products for step in found)
    return Products(len(found), operations, fsum(map(seconds_of, found)))


def judge(products: Products, peak: float) -> Outcome:
    """Hold what products reach to the goal.

    Args:
        products: Of a plan.
        peak: Of the tensor cores, in operations a second.
    """
    judged = GOAL.judged(products.rate / peak)
    summary = f"{judged}: {products.operators} products, {products.rate / 1e12:.0f} TFLOP/s"
    figures = asdict(products) | {"peak": peak} | as_figures([judged])
    return Outcome(judged.reached, summary, figures)
