"""Cases are handed over one by one: whoever asks waits for no others, and no error is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import pytest

from wpk.beside import Beside
from wpk.phases import Phases
from wpk.progress import Progress
from wpk.trial_bench import cases as module
from wpk.trial_bench.cases import STAGE, Cases, ComputedCase


@dataclass(frozen=True)
class Named:
    """As much of a problem as cases ask for."""

    name: str

    def words(self) -> str:
        return f"problem {self.name}"


A, B, C = PROBLEMS = [Named(name) for name in "abc"]
SECONDS = 10
"""For which a test waits before it fails."""

Between = Callable[[Named], None]


def described(between: Between, problems: list[Named] = PROBLEMS, phases: Any = None) -> Any:
    """Cases of all problems, each its problem's name; ``between`` is called before each is computed."""

    def compute(tell: Progress) -> Iterator[ComputedCase]:
        for done, problem in enumerate(problems):
            tell(STAGE, done, len(problems))
            between(problem)
            case: Any = problem.name
            asked: Any = problem
            yield ComputedCase(asked, case, 2.0 + done)

    asked: Any = PROBLEMS
    return Cases(asked, compute, 1000, phases or Phases())


def failing_at(bad: Named) -> Between:
    def between(problem: Named) -> None:
        if problem == bad:
            raise ValueError(f"nobody executes {problem.name}")

    return between


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("wpk-test")]


def test_each_is_there_while_those_behind_it_are_computed() -> None:
    taken = {problem: threading.Event() for problem in PROBLEMS}

    def wait_for_the_one_before(problem: Named) -> None:
        if problem != A:
            assert taken[PROBLEMS[PROBLEMS.index(problem) - 1]].wait(SECONDS)

    cases = described(wait_for_the_one_before)
    with Beside("test") as beside:
        cases.begin(beside)
        for problem in PROBLEMS:
            assert cases[problem] == problem.name
            taken[problem].set()
        cases.finish()
        cases.check()
    assert list(cases) == PROBLEMS
    assert len(cases) == 3
    assert not threads()


def test_without_a_thread_they_are_computed_as_far_as_they_are_asked_for() -> None:
    computed: list[Named] = []
    cases = described(computed.append)
    assert len(cases) == 3
    assert computed == []
    assert cases[B] == "b"
    assert computed == [A, B]
    assert cases.coming_bytes == 1000
    assert (cases[A], cases[C]) == ("a", "c")
    cases.finish()
    assert computed == PROBLEMS
    assert cases.coming_bytes == 0
    assert cases.known_seconds() == {A: 2.0, B: 3.0, C: 4.0}


@pytest.mark.parametrize("is_beside", [True, False])
def test_an_error_behind_cases_that_were_there_is_raised_from_then_on(is_beside: bool) -> None:
    cases = described(failing_at(C))
    with Beside("test") as beside:
        if is_beside:
            cases.begin(beside)
            with pytest.raises(ValueError, match="nobody executes c"):
                cases.finish()
        else:
            assert cases[A] == "a"
            cases.check()
        for ask in (lambda: cases[C], lambda: cases[A], cases.check, cases.finish):
            with pytest.raises(ValueError, match="nobody executes c"):
                ask()
        assert cases.coming_bytes == 0
    assert not threads()


def test_an_error_reaches_who_waits_already() -> None:
    asked = threading.Event()

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        del done, total, left
        if stage == STAGE:
            asked.set()

    def fail(problem: Named) -> None:
        assert asked.wait(SECONDS)
        raise ValueError(f"nobody executes {problem.name}")

    cases = described(fail, phases=Phases(tell))
    with Beside("test") as beside:
        cases.begin(beside)
        with pytest.raises(ValueError, match="nobody executes a"):
            _ = cases[C]


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_case_that_is_never_computed_is_missed(is_beside: bool) -> None:
    cases = described(lambda _problem: None, problems=[A, B])
    with Beside("test") as beside:
        if is_beside:
            cases.begin(beside)
        with pytest.raises(LookupError, match="no case was computed of problem c"):
            _ = cases[C]
        with pytest.raises(LookupError):
            cases.check()


def test_who_stops_early_leaves_no_thread_and_nobody_waits_for_what_was_given_up() -> None:
    def endless(tell: Progress) -> Iterator[ComputedCase]:
        made: Any = A, "a", 1.0
        yield ComputedCase(*made)
        while True:
            tell(STAGE, 1, 3)

    asked: Any = PROBLEMS
    begun, waiting = Cases(asked, endless, 0, Phases()), described(failing_at(A))
    with Beside("test") as beside:
        begun.begin(beside)
        waiting.begin(beside)
        assert begun[asked[0]] == "a"
    assert not threads()
    for cases in (begun, waiting):
        with pytest.raises(CancelledError):
            _ = cases[asked[2]]
        with pytest.raises(CancelledError):
            cases.check()


def test_waiting_is_a_phase_of_its_own_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    told: list[tuple[str, int, int]] = []

    def compute(_problem: Named) -> None:
        nonlocal now
        now += 4.0

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        del left
        told.append((stage, done, total))

    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    phases = Phases(tell, lambda: now)
    cases = described(compute, phases=phases)
    phases("measuring", 0, 2)
    now += 1.0
    assert cases[B] == "b"
    now += 1.0
    assert cases[A] == "a"  # is there
    assert cases.waited == 8.0
    seconds = phases.seconds()
    assert (seconds["measuring"], seconds[STAGE]) == (2.0, 8.0)
    assert told == [("measuring", 0, 2), (STAGE, 0, 3), (STAGE, 1, 3)]
