"""Exhaustive search tries every schedule in the order of the parameters; it is for small spaces."""

from __future__ import annotations

from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher


class ExhaustiveSearch(SpaceSearcher):
    """This searcher proposes all rows in rising order."""

    method = "exhaustive"

    def __init__(self, space: SearchSpace) -> None:
        """Begin at the first row."""
        super().__init__(space)
        self._next = 0

    def propose(self) -> int:
        """Return the next row that is not taken."""
        while self.ledger.taken[self._next]:
            self._next += 1
        return self._next
