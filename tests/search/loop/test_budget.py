"""Budgets and levels of effort."""

from itertools import pairwise

import pytest

from wpk.search.loop.budget import (
    EFFORTS,
    Budget,
    BudgetError,
    effort_of,
    parse_budget,
)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget(seconds=90.0)),
        ("30m", Budget(seconds=1800.0)),
        ("1.5 h", Budget(seconds=5400.0)),
        ("400 trials", Budget(trials=400)),
        ("1 trial", Budget(trials=1)),
    ],
)
def test_budgets_are_read_as_people_write_them(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize("text", ["", "30", "m", "-1s", "0s", "0 trials", "1d", "1e3s", "nan s"])
def test_refuses_what_is_no_budget(text: str) -> None:
    with pytest.raises(BudgetError, match="is no budget"):
        parse_budget(text)


def test_more_effort_is_more_of_everything() -> None:
    for less, more in pairwise(EFFORTS):
        assert less.trials < more.trials
        assert less.patience < more.patience
        assert less.finalists < more.finalists
        assert less.rounds < more.rounds
        assert (less.seconds or 0) < (more.seconds or float("inf"))


@pytest.mark.parametrize("level", [-1, 4])
def test_refuses_levels_that_do_not_exist(level: int) -> None:
    with pytest.raises(BudgetError, match=f"effort {level} is none of 0 to 3"):
        effort_of(level)
