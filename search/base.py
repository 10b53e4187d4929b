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
        """At most ``count`` legal schedules never asked for before; empty when exhausted."""

    @abc.abstractmethod
    def tell(self, trials: Sequence[Trial]) -> None:
        """Outcomes of schedules asked for, in any order, failures included."""
