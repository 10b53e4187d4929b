"""What a searcher is: something that proposes schedules, and nothing else."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

from wpk.schedules.template import Schedule
from wpk.trial import Trial

S = TypeVar("S", bound=Schedule)


class Searcher(abc.ABC, Generic[S]):
    """Proposes schedules; never compiles, measures, sleeps, prints, or counts a budget."""

    @abc.abstractmethod
    def ask(self, count: int) -> list[S]:
        """As many legal schedules never asked for before; fewer only where no more are left.

        Outcomes of earlier ones may still be outstanding. Empty means exhausted.
        """

    @abc.abstractmethod
    def tell(self, trials: Sequence[Trial]) -> None:
        """Outcomes, in any order, failures included.

        Also of schedules that were not asked for, such as those of an earlier run or of another
        searcher: they are learnt from and will not be asked for.

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
