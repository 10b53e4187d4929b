"""Goals, and the table of which are reached."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import summary
from rows.base import Context, Outcome, Row
from rows.catalogue import all_rows
from rows.goals import Goal, as_figures, geometric_mean

from wpk.plan.measurement import Ratio

FASTER = Goal("speedup", 2.0)
NEARER = Goal("multiple of the floor", 2.1, at_most=True)


@pytest.mark.parametrize(
    ("goal", "value", "reached"),
    [
        (FASTER, 1.99, False),
        (FASTER, 2.0, True),
        (NEARER, 2.1, True),
        (NEARER, 2.11, False),
        (FASTER, float("nan"), False),
    ],
)
def test_a_goal_is_reached_by_the_figure_itself(goal: Goal, value: float, *, reached: bool) -> None:
    assert goal.judged(value, value - 1.0, value + 1.0).reached is reached


def test_a_geometric_mean_has_the_band_of_all_ends() -> None:
    mean = geometric_mean([Ratio(1.0, 0.5, 2.0), Ratio(4.0, 2.0, 8.0)])
    assert (mean.median, mean.low, mean.high) == pytest.approx((2.0, 1.0, 4.0))
    with pytest.raises(ValueError, match="no ratios"):
        geometric_mean([])


def test_goals_survive_the_file_of_results() -> None:
    figures = json.loads(json.dumps(as_figures([NEARER.judged(1.9, 1.8, 2.0)])))
    assert figures["goals"][0]["goal"] == "multiple of the floor <= 2.1"
    assert figures["goals"][0]["reached"] is True


def measure(_context: Context) -> Outcome:
    raise AssertionError("the summary measures nothing")


def test_the_summary_tells_reached_missed_and_unmeasured_goals_apart() -> None:
    rows = {name: Row(name, "", measure, goals=(FASTER,)) for name in "abcd"}
    rows["e"] = Row("e", "", measure)
    records: dict[str, dict[str, Any]] = {
        "a": {"passed": True, "figures": as_figures([FASTER.judged(2.5, 2.4, 2.6)])},
        "b": {"passed": False, "figures": as_figures([FASTER.judged(1.5)])},
        "c": {"error": "first line\nno GPU"},
    }
    lines = summary.goals_table(rows, records)
    assert [line[0] for line in lines] == list("abcd")
    assert [line[-1] for line in lines] == [
        summary.REACHED,
        summary.MISSED,
        summary.UNKNOWN,
        summary.UNKNOWN,
    ]
    assert lines[0][2:4] == ["2.5", "2.4 to 2.6"]
    assert lines[2][2] == "no GPU"


def test_a_row_that_fails_reaches_no_goal_unless_another_goal_is_why() -> None:
    rows = {name: Row(name, "", measure, goals=(FASTER, NEARER)) for name in "ab"}
    good, bad = as_figures([FASTER.judged(2.5), NEARER.judged(1.9)]), FASTER.judged(1.5)
    records: dict[str, dict[str, Any]] = {
        "a": {"passed": False, "figures": good},
        "b": {"passed": False, "figures": as_figures([bad, NEARER.judged(1.9)])},
    }
    states = [line[-1] for line in summary.goals_table(rows, records)]
    assert states == [summary.FAILED, summary.FAILED, summary.MISSED, summary.REACHED]


def test_a_goal_that_was_changed_since_is_not_measured() -> None:
    rows = {"a": Row("a", "", measure, goals=(Goal("speedup", 3.0),))}
    records = {"a": {"figures": as_figures([FASTER.judged(2.5)])}}
    assert summary.goals_table(rows, records)[0][-1] == summary.UNKNOWN


def test_the_summary_of_a_file_says_how_many_goals_are_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": 1, "rows": {}}))
    assert summary.main([str(path)]) == 1
    count = sum(len(row.goals) for row in all_rows().values())
    assert count > 0
    assert f"0 of {count} goals reached, {count} not measured" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="there is no"):
        summary.main([str(tmp_path / "missing.json")])
