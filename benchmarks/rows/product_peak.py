"""The share of the tensor cores' peak that a network's products reach at a large batch.

The row of the zoo that has tuned the network says what its products take (`rows.plan_products`), by a profile of the engine
that follows tuning: one inference behind another, which large products slow down by the clocks that power leaves. What
products take side by side with PyTorch, as the row's speedup does, is their part of the profile of that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures
from rows.networks import OURS
from rows.result_file import Record, figures_of
from rows.zoo import ZooCase
from wpk.dtypes import Precision

NETWORKS = ("vit", "bert", "swin")
BATCH = 32
CASES = tuple(ZooCase(name, Precision.FP16, BATCH) for name in NETWORKS)

ADDS_UP = 0.05
"""By so much what operators take together may miss the engine's time: what was not timed counts with its estimate."""

GOAL = Goal("share of the tensor cores' peak", 0.55)


def rows() -> list[Row]:
    """One a network."""
    claim = "operations of the products over their time and the datasheet's peak, fp16"
    return [
        Row(f"peak.{case}", claim, partial(_judge_row, case), is_last=True, goals=(GOAL,))
        for case in CASES
    ]


def _judge_row(case: ZooCase, context: Context) -> Outcome:
    return judge(case, context.records)


def judge(case: ZooCase, records: Mapping[str, Record]) -> Outcome:
    """Hold what a case's products reach side by side with PyTorch to the goal; figures tell the profile's share, too.

    Raises:
        RowError: The case has not been measured, the target has no tensor cores for it, or its operators do not add up to the engine.
    """
    figures = figures_of(records, f"zoo.{case}")
    products = figures.get("products")
    if products is None:
        raise RowError(f"no record of zoo.{case} says what its products take: measure it first")
    profile, engine = (figures["plan"][f"{each}_seconds"] for each in ("operators", "engine"))
    if abs(profile / engine - 1) > ADDS_UP:
        raise RowError(
            f"operators of zoo.{case} take {profile * 1e6:.1f} µs of an engine's {engine * 1e6:.1f}, at most {ADDS_UP:.0%} may be "
            "amiss: not all were timed; measure it again"
        )
    pace = figures["times"][OURS]["median_seconds"] / profile
    beside = products | {
        "seconds": products["seconds"] * pace,
        "share": products["share"] / pace,
        "profiled_share": products["share"],
    }
    judged = GOAL.judged(beside["share"])
    rate = beside["operations"] / beside["seconds"]
    summary = (
        f"{judged}: {beside['operators']} products, {rate / 1e12:.0f} TFLOP/s side by side with PyTorch; "
        f"{products['share']:.2f} by the profile"
    )
    return Outcome(judged.reached, summary, beside | as_figures([judged]))
