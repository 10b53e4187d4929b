"""Budgets and levels of effort."""

from itertools import pairwise

import pytest

from wpk.search.loop.budget import (
    EFFORTS,
    ENGINES_SHARE,
    MEASURING_SHARE,
    Budget,
    BudgetError,
    Watch,
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


class Clock:
    """Seconds that a test lets pass."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_run_ends_in_its_time_with_what_comes_before_and_behind_measuring() -> None:
    clock = Clock()
    watch = Watch(Budget(seconds=100.0), begun=0.0, clock=clock)
    clock.now = 8.0
    watch.start(behind=7.0)
    assert watch.for_engines() == pytest.approx(85.0)
    assert watch.for_trials().seconds == pytest.approx(85.0 - ENGINES_SHARE * 100)
    clock.now = 90.0
    assert watch.for_trials().seconds == 0.0
    assert watch.for_engines() == pytest.approx(3.0)
    clock.now = 99.0
    assert watch.for_engines() == 0.0


@pytest.mark.parametrize(("before", "behind"), [(70.0, 1.0), (1.0, 70.0), (200.0, 200.0)])
def test_measuring_gets_its_share_whatever_the_rest_takes(before: float, behind: float) -> None:
    clock = Clock()
    watch = Watch(Budget(seconds=100.0), begun=0.0, clock=clock)
    clock.now = before
    watch.start(behind)
    assert watch.for_engines() == pytest.approx(MEASURING_SHARE * 100)


@pytest.mark.parametrize(
    ("before", "behind", "seconds"),
    [(20.0, 10.0, 100.0), (60.0, 20.0, 130.0), (80.0, 0.0, 130.0), (150.0, 20.0, 220.0)],
)
def test_a_run_is_waited_for_as_long_as_was_asked_but_for_what_cannot_be_less(
    before: float, behind: float, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    watch = Watch(Budget(seconds=100.0), begun=0.0, clock=clock)
    clock.now = before
    watch.start(behind)
    while (watch.for_trials().seconds or 0) > 0:
        clock.now += 0.1
    clock.now += watch.for_engines() or 0
    assert clock.now + behind == pytest.approx(seconds, abs=0.2)
    told = f"the run takes about {seconds:.0f} s"
    assert (told in caplog.text) is (seconds > 100.0)


@pytest.mark.parametrize(("now", "left"), [(60.0, 35.0), (95.0, 20.0)])
def test_what_was_measured_while_references_were_computed_is_of_its_share(
    now: float, left: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    watch = Watch(Budget(seconds=100.0), begun=0.0, clock=clock)
    clock.now = now
    watch.start(behind=5.0, measured=30.0)
    assert watch.for_engines() == pytest.approx(left)
    told = (
        "65 s passed before measuring, checks will take some 5 s, and measuring gets 50 s at least"
    )
    assert (told in caplog.text) is (now + left + 5.0 > 100.0)


def test_without_a_limit_there_is_time_for_all() -> None:
    watch = Watch(Budget(trials=7), begun=0.0, clock=lambda: 1e9)
    watch.start(behind=1.0)
    assert watch.for_trials() == Budget(trials=7)
    assert watch.for_engines() is None


def test_what_is_spent_is_taken_off_a_budget_and_no_more_than_there_is() -> None:
    assert Budget(10.0, 5).less(4.0, 2) == Budget(6.0, 3)
    assert Budget(10.0, 5).less(11.0, 6) == Budget(0.0, 0)
    assert Budget().less(1.0, 1) == Budget()
