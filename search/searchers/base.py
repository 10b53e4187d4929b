"""What a searcher is: something that proposes schedules, and nothing else."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from wpk.schedules import Schedule
from wpk.trial import Trial

S = TypeVar("S", bound=Schedule)


class Searcher(abc.ABC, Generic[S]):
    """Proposes schedules; never compiles, measures, sleeps, prints, or counts a budget."""

    @abc.abstractmethod
    def ask(self, count: int) -> list[S]:
        """Return ``count`` legal schedules that were never asked for; fewer only where no more are left.

        Outcomes of earlier schedules may still be outstanding. An empty answer means that the space is
        exhausted.
        """

    @abc.abstractmethod
    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn from outcomes, in any order, failures included.

        They may be of schedules that were not asked for, such as those of an earlier run or of another
        searcher: the searcher learns from them and will not ask for them.

        Raises:
            ScheduleError: A trial's schedule is not in the space that is searched.
        """

    @property
    def proposer(self) -> str:
        """Name of the method that proposed the latest schedule; empty where it has none."""
        return ""

    @property
    def converged(self) -> bool:
        """Whether the method would stop here by its own rule; asking further is allowed."""
        return False
