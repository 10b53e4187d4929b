"""What the tuning loop is given for a problem: who competes for it, and how much is to be won."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wpk.candidate import Candidate, Maker
from wpk.problems import Problem
from wpk.search.searchers import Searcher


@dataclass(frozen=True)
class Contender:
    """A schedule template that competes for a problem.

    Attributes:
        template: The template.
        promise: Estimated seconds of its best schedule.
        searcher: Begins the search of its space with a seed; called only where what is known does
            not suffice.
    """

    template: Maker
    promise: float
    searcher: Callable[[int], Searcher]


@dataclass(frozen=True)
class Rival:
    """A library that was asked to compute a problem too.

    Attributes:
        library: The library.
        candidates: Its implementations, best guess first.
        refusals: Why there are none, or not of every form, in words.
    """

    library: Maker
    candidates: tuple[Candidate, ...]
    refusals: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A problem to tune. Times in seconds.

    Attributes:
        problem: What to compute.
        count: How many operators of the network have this problem.
        estimate: Predicted time of one of them.
        bound: The time that no kernel can beat.
        floor: What a launch costs that depends on the one before.
        contenders: The templates that can carry it, the most promising first.
        rivals: The libraries; none where none is to be tried.
    """

    problem: Problem
    count: int
    estimate: float
    bound: float
    floor: float
    contenders: tuple[Contender, ...]
    rivals: tuple[Rival, ...] = ()

    @property
    def gain(self) -> float:
        """Seconds of the network that tuning can win at most.

        That is, but for a factor that all problems share, the problem's share of the network's
        time, ``count * estimate``, times its headroom, ``1 - (bound + floor) / estimate``.
        """
        return self.count * max(0.0, self.estimate - self.bound - self.floor)
