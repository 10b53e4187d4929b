"""A searcher proposes schedules, and does nothing else."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from wpk.schedules import Schedule
from wpk.trial import Trial


class Searcher(abc.ABC):
    """A searcher proposes schedules; it never compiles, measures, sleeps, prints, or counts a budget."""

    @abc.abstractmethod
    def ask(self, count: int) -> list[Schedule]:
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
