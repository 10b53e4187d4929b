"""How many of all networks' operators generated kernels compute, where a library could have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rows.base import Context, Outcome, Row, RowError
from rows.goals import Goal, as_figures
from rows.plan_share import Share, share_in
from rows.result_file import Record

GOALS = (
    Goal("share of generated kernels by number", 0.75),
    Goal("share of generated kernels by time", 0.60),
)
"""DeepCuts reports 75 % by number."""


@dataclass(frozen=True)
class Tuned:
    """The share of a case's plan, and where it comes from.

    Attributes:
        share: Of the plan.
        row: Whose record holds it.
        date: Of the record.
        commit: Of the sources that the record was measured with.
    """

    share: Share
    row: str
    date: str
    commit: str

    def figures(self) -> dict[str, Any]:
        """As a result file holds it."""
        return asdict(self) | _parts(self.share)


def rows() -> list[Row]:
    """One, over the records of all rows that tuned a network."""
    claim = "generated kernels are chosen where cuDNN had a correct candidate"
    return [Row("share", claim, _measure, is_last=True, goals=GOALS)]


def _measure(context: Context) -> Outcome:
    return judge(newest(context.records))


def newest(records: Mapping[str, Record]) -> dict[str, Tuned]:
    """By case, what the newest record that holds the share of its plan says."""
    found: dict[str, Tuned] = {}
    for row, record in records.items():
        held = share_in(record)
        if held is None:
            continue
        case, share = held
        tuned = Tuned(share, row, record["date"], record["commit"])
        if case not in found or (tuned.date, row) > (found[case].date, found[case].row):
            found[case] = tuned
    return dict(sorted(found.items()))


def judge(plans: Mapping[str, Tuned]) -> Outcome:
    """Hold the shares of all plans together to the goals.

    Raises:
        RowError: There is no plan, or no operator that cuDNN could compute.
    """
    if not plans:
        raise RowError("no record holds the share of a plan: measure networks first")
    total = sum((each.share for each in plans.values()), Share())
    by_number, by_time = total.by_number, total.by_time
    if by_number is None or by_time is None:
        raise RowError(f"no operator that cuDNN could compute is in {', '.join(plans)}")
    judged = [goal.judged(part) for goal, part in zip(GOALS, (by_number, by_time), strict=True)]
    summary = (
        f"{by_number:.0%} of {total.operators} operators, {by_time:.0%} of their time, "
        f"in {len(plans)} plans"
    )
    figures = {"plans": {case: each.figures() for case, each in plans.items()}}
    return Outcome(
        all(each.reached for each in judged),
        summary,
        figures | asdict(total) | _parts(total) | as_figures(judged),
    )


def _parts(share: Share) -> dict[str, float | None]:
    return {"by_number": share.by_number, "by_time": share.by_time}
