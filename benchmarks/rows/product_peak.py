"""The share of the tensor cores' peak that a network's products reach at a large batch.

The row of the zoo that has tuned the network holds it (`rows.plan_products`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures
from rows.result_file import Record, figures_of
from rows.zoo import ZooCase
from wpk.dtypes import Precision

NETWORKS = ("vit", "bert", "swin")
BATCH = 32

GOAL = Goal("share of the tensor cores' peak", 0.55)


def rows() -> list[Row]:
    """One a network."""
    claim = "operations of the products over their time and the datasheet's peak, fp16"
    cases = [ZooCase(name, Precision.FP16, BATCH) for name in NETWORKS]
    return [
        Row(f"peak.{case}", claim, partial(_judge_row, case), is_last=True, goals=(GOAL,))
        for case in cases
    ]


def _judge_row(case: ZooCase, context: Context) -> Outcome:
    return judge(case, context.records)


def judge(case: ZooCase, records: Mapping[str, Record]) -> Outcome:
    """Hold what a case's products reach to the goal.

    Raises:
        RowError: The case has not been measured, or the target has no tensor cores for it.
    """
    products = figures_of(records, f"zoo.{case}").get("products")
    if products is None:
        raise RowError(f"no record of zoo.{case} says what its products take: measure it first")
    judged = GOAL.judged(products["share"])
    rate = products["operations"] / products["seconds"]
    summary = f"{judged}: {products['operators']} products, {rate / 1e12:.0f} TFLOP/s"
    return Outcome(judged.reached, summary, products | as_figures([judged]))
