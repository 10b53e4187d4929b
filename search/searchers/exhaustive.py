"""Exhaustive search: every schedule in the order of the parameters. For small spaces."""

from __future__ import annotations

from typing import TypeVar

from wpk.schedules import Schedule
from wpk.search.searchers.ledger import Ledger
from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher

S = TypeVar("S", bound=Schedule)


class ExhaustiveSearch(SpaceSearcher[S]):
    """Proposes all rows in rising order."""

    method = "exhaustive"

    def __init__(self, space: SearchSpace[S], ledger: Ledger | None = None) -> None:
        """Begin at the first row."""
        super().__init__(space, ledger)
        self._next = 0

    def propose(self) -> int:
        """Return the next row that is not taken."""
        while self.ledger.taken[self._next]:
            self._next += 1
        return self._next
