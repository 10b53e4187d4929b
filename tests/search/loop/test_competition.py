"""Several templates for one problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from support.plans.candidates import kernel

from wpk.candidate import Candidate, Maker
from wpk.schedules.template import Schedule
from wpk.search.loop.competition import LAG, PROBE, Competition
from wpk.search.searchers.base import Searcher
from wpk.trial import Status, Trial


@dataclass(frozen=True)
class Number(Schedule):
    number: int


class Counting(Searcher):
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
        told = {trial.candidate.configuration[0][1] for trial in trials}
        self.left = [number for number in self.left if number not in told]


SLOW, FAST, A, B = (kernel(name).maker for name in ("slow", "fast", "a", "b"))


def of(template: Maker, number: int) -> Candidate:
    return Candidate(template, Number(number).parameters())


def ran(template: Maker, number: int, seconds: float) -> Trial:
    return Trial(of(template, number), Status.OK, (seconds,))


def competition_of(*searchers: Searcher) -> Competition:
    """Templates that promise the same."""
    templates = (A, B)[: len(searchers)]
    return Competition(dict(zip(templates, searchers, strict=True)), dict.fromkeys(templates, 1.0))


def asked(competition: Competition, count: int) -> list[str]:
    """The templates that are asked, in order."""
    return [candidate.maker.name for candidate in competition.ask(count)]


def test_the_promising_are_asked_more_often() -> None:
    searchers = {SLOW: Counting(99), FAST: Counting(99)}
    competition = Competition(searchers, {SLOW: 2.0, FAST: 1.0})
    assert asked(competition, 20).count("fast") == 16
    competition.tell(SLOW, [ran(SLOW, 90, 0.5)])  # the models were wrong
    competition.tell(FAST, [ran(FAST, 90, 1.0)])
    assert asked(competition, 20).count("slow") >= 18


def test_templates_take_turns() -> None:
    candidates = competition_of(Counting(9), Counting(9)).ask(4)
    assert candidates == [of(A, 0), of(B, 0), of(A, 1), of(B, 1)]


def test_a_template_that_has_had_trials_before_waits_for_its_turn() -> None:
    competition = competition_of(Counting(9), Counting(9))
    competition.tell(A, [ran(A, 5, 1.0), ran(A, 6, 1.0)])
    assert asked(competition, 4) == ["b", "b", "a", "b"]


def test_remembers_who_proposed_what() -> None:
    first, second = Counting(9), Counting(9)
    first.name, second.name = "genetic", "ppo"
    competition = competition_of(first, second)
    competition.ask(2)
    assert [competition.proposer(of(each, 0)) for each in (A, B)] == ["genetic", "ppo"]


def test_outcomes_of_what_was_asked_are_counted_once() -> None:
    competition = competition_of(Counting(9), Counting(9))
    for candidate in competition.ask(2):
        competition.tell(candidate.maker, [Trial(candidate, Status.OK, (1.0,))])
    assert asked(competition, 4) == ["a", "b", "a", "b"]


def test_an_exhausted_template_leaves_the_rest_to_the_others() -> None:
    competition = competition_of(Counting(1), Counting(3))
    assert asked(competition, 9) == ["a", "b", "b", "b"]
    assert competition.ask(1) == []


def test_a_template_far_behind_is_dropped_after_its_probe() -> None:
    competition = competition_of(Counting(99), Counting(99))
    competition.tell(A, [ran(A, 90, 1.0)])
    competition.tell(B, [ran(B, n, 1.01 * LAG) for n in range(PROBE - 1)])
    assert "b" in asked(competition, 5 * PROBE)
    competition.tell(B, [ran(B, 98, 1.01 * LAG)])
    assert set(asked(competition, 9)) == {"a"}


def test_templates_that_all_fail_stay() -> None:
    competition = competition_of(Counting(99), Counting(99))
    for template in (A, B):
        failed = [Trial(of(template, n), Status.COMPILE_FAILED) for n in range(PROBE)]
        competition.tell(template, failed)
    assert set(asked(competition, 4)) == {"a", "b"}
