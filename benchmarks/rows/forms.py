"""Forms of models: the best partition found beside the one that passes make by rule, over the networks of the zoo.

Each row of the zoo holds what its plan says of that (`rows.plan_forms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures, geometric_mean
from rows.result_file import Record, figures_of
from rows.zoo import ZooCase, cases
from wpk.dtypes import Precision
from wpk.plan.measurement import Ratio

LEAST_NETWORKS = 8
"""At batch 1, and as many at a larger one."""

LEAST = Goal("speedup of the form that was chosen over the usual one", 0.99)
MEAN = Goal("geometric mean of these speedups", 1.05)


def rows() -> list[Row]:
    """One, over the records of the zoo in fp16."""
    claim = (
        "the partitions found beside the passes' own, and neither unfused nor all-library is faster"
    )
    return [Row("forms.mean", claim, _judge_rows, is_last=True, goals=(MEAN, LEAST))]


def _judge_rows(context: Context) -> Outcome:
    return judge(context.records)


def judge(records: Mapping[str, Record]) -> Outcome:
    """Hold all networks together to the goals.

    Raises:
        RowError: Too few have been measured.
    """
    found = {case: figures for case in cases() if (figures := _of(records, case))}
    for many in (False, True):
        measured = sum((case.batch > 1) is many for case in found)
        if measured < LEAST_NETWORKS:
            where = "at more than one image" if many else "at batch 1"
            raise RowError(
                f"forms competed in {measured} networks {where}, at least {LEAST_NETWORKS} are asked for"
            )
    ratios = {f"zoo.{case}": Ratio(**figures["speedup"]) for case, figures in found.items()}
    least = min(ratios.values(), key=lambda ratio: ratio.median)
    judged = [MEAN.judged_ratio(geometric_mean([*ratios.values()])), LEAST.judged_ratio(least)]
    slower = {
        f"zoo.{c}": names for c, figures in found.items() if (names := figures["slower_than"])
    }
    partitions = sum(figures["partitions"] for figures in found.values())
    figures: dict[str, Any] = {
        "speedups": {name: ratio.median for name, ratio in ratios.items()},
        "partitions": partitions,
        "slower": slower,
    }
    summary = f"{'; '.join(map(str, judged))}; {partitions} partitions in {len(found)} plans" + (
        f"; SLOWER than unfused or all-library: {', '.join(slower)}" if slower else ""
    )
    passed = all(each.reached for each in judged) and not slower
    return Outcome(passed, summary, figures | as_figures(judged))


def _of(records: Mapping[str, Record], case: ZooCase) -> dict[str, Any] | None:
    if case.precision is not Precision.FP16:
        return None
    found: dict[str, Any] | None = figures_of(records, f"zoo.{case}").get("forms")
    return found
