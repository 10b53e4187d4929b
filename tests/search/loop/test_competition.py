"""Several templates for one problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.schedules.template import Schedule
from wpk.search.loop.competition import LAG, PROBE, Competition
from wpk.search.searchers.base import Searcher
from wpk.trial import Status, Trial


@dataclass(frozen=True)
class Number(Schedule):
    number: int


class Counting(Searcher[Number]):
    """Asks for 0, 1, 2, ... up to a size, but for what it was told."""

    def __init__(self, size: int) -> None:
        self.left = list(range(size))
        self.name = ""

    @property
    def proposer(self) -> str:
        return self.name

    def ask(self, count: int) -> list[Number]:
        asked, self.left = self.left[:count], self.left[count:]
        return [Number(number) for number in asked]

    def tell(self, trials: Sequence[Trial]) -> None:
        told = {trial.schedule[0][1] for trial in trials}
        self.left = [number for number in self.left if number not in told]


def ran(number: int, seconds: float) -> Trial:
    return Trial((("number", number),), Status.OK, (seconds,))


def competition_of(**searchers: Searcher[Number]) -> Competition:
    """Templates that promise the same."""
    return Competition(searchers, dict.fromkeys(searchers, 1.0))


def test_the_promising_are_asked_more_often() -> None:
    searchers = {"slow": Counting(99), "fast": Counting(99)}
    competition = Competition(searchers, {"slow": 2.0, "fast": 1.0})
    asked = [name for name, _ in competition.ask(20)]
    assert asked.count("fast") == 16
    competition.tell("slow", [ran(90, 0.5)])  # the models were wrong
    competition.tell("fast", [ran(90, 1.0)])
    assert [name for name, _ in competition.ask(20)].count("slow") >= 18


def test_templates_take_turns() -> None:
    asked = competition_of(a=Counting(9), b=Counting(9)).ask(4)
    assert asked == [("a", Number(0)), ("b", Number(0)), ("a", Number(1)), ("b", Number(1))]


def test_a_template_that_has_had_trials_before_waits_for_its_turn() -> None:
    competition = competition_of(a=Counting(9), b=Counting(9))
    competition.tell("a", [ran(5, 1.0), ran(6, 1.0)])
    assert [name for name, _ in competition.ask(4)] == ["b", "b", "a", "b"]


def test_remembers_who_proposed_what() -> None:
    first, second = Counting(9), Counting(9)
    first.name, second.name = "genetic", "ppo"
    competition = competition_of(a=first, b=second)
    competition.ask(2)
    schedule = Number(0).parameters()
    assert [competition.proposer(each, schedule) for each in "ab"] == ["genetic", "ppo"]


def test_outcomes_of_what_was_asked_are_counted_once() -> None:
    competition = competition_of(a=Counting(9), b=Counting(9))
    for name, schedule in competition.ask(2):
        competition.tell(name, [ran(schedule.number, 1.0)])
    assert [name for name, _ in competition.ask(4)] == ["a", "b", "a", "b"]


def test_an_exhausted_template_leaves_the_rest_to_the_others() -> None:
    competition = competition_of(a=Counting(1), b=Counting(3))
    assert [name for name, _ in competition.ask(9)] == ["a", "b", "b", "b"]
    assert competition.ask(1) == []


def test_a_template_far_behind_is_dropped_after_its_probe() -> None:
    competition = competition_of(a=Counting(99), b=Counting(99))
    competition.tell("a", [ran(90, 1.0)])
    competition.tell("b", [ran(n, 1.01 * LAG) for n in range(PROBE - 1)])
    assert "b" in {name for name, _ in competition.ask(5 * PROBE)}
    competition.tell("b", [ran(98, 1.01 * LAG)])
    assert {name for name, _ in competition.ask(9)} == {"a"}


def test_templates_that_all_fail_stay() -> None:
    competition = competition_of(a=Counting(99), b=Counting(99))
    for name in ("a", "b"):
        failed = [Trial((("number", n),), Status.COMPILE_FAILED) for n in range(PROBE)]
        competition.tell(name, failed)
    assert {name for name, _ in competition.ask(4)} == {"a", "b"}
