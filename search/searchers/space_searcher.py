"""All searchers of a space share how rows become schedules, and which of them were asked for already."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import final

import numpy as np

from wpk.schedules import Schedule
from wpk.search.searchers.base import Searcher
from wpk.search.searchers.ledger import Ledger
from wpk.search.searchers.space import SearchSpace
from wpk.trial import Trial

MODEL = "estimate"
"""The proposer of schedules that the space calls promising."""


class SpaceSearcher(Searcher):
    """This searcher searches one space; subclasses choose rows and learn from costs.

    The rows that the space calls promising come first: their outcomes are worth more to any method
    than those of as many random ones.

    Attributes:
        space: What is searched.
        ledger: What was asked for and found; several searchers may share one.
    """

    method = ""
    """Its name in `wpk.search.searchers.registry`."""

    def __init__(self, space: SearchSpace, ledger: Ledger | None = None) -> None:
        """Begin a search; searchers that are given the same ledger keep out of each other's way."""
        self.space = space
        self.ledger = Ledger(space) if ledger is None else ledger
        self._is_model = False

    @final
    def ask(self, count: int) -> list[Schedule]:
        """See `Searcher.ask`."""
        rows: list[int] = []
        while len(rows) < count and not self.ledger.taken.all():
            promising = np.flatnonzero(~self.ledger.taken[: self.space.promising])
            self._is_model = bool(len(promising))
            row = int(promising[0]) if self._is_model else self.propose()
            self.ledger.taken[row] = True
            rows.append(row)
        return [self.space.schedule(row) for row in rows]

    @property
    @final
    def proposer(self) -> str:
        """See `Searcher.proposer`."""
        return MODEL if self._is_model else self.own_name

    @property
    def own_name(self) -> str:
        """Name of the method that `propose` last followed."""
        return self.method

    @final
    def tell(self, trials: Sequence[Trial]) -> None:
        """See `Searcher.tell`."""
        rows = self.ledger.record(trials)
        self.learn(rows)

    @abc.abstractmethod
    def propose(self) -> int:
        """Return a row that is not taken, of which there is at least one; the caller marks it as taken."""

    def learn(self, rows: Sequence[int]) -> None:
        """Learn that costs of these rows have come into the ledger; this searcher did not propose all of them."""
