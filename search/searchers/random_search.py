"""Random search: every schedule is as likely as any other. Other searchers must beat it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from wpk.schedules import Schedule
from wpk.search.searchers.ledger import Ledger
from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher

S = TypeVar("S", bound=Schedule)


class RandomSearch(SpaceSearcher[S]):
    """Uniform draws without repetition."""

    method = "random"

    def __init__(self, space: SearchSpace[S], seed: int, ledger: Ledger | None = None) -> None:
        """Begin; the seed decides the order."""
        super().__init__(space, ledger)
        self._order = np.random.default_rng(seed).permutation(space.size).tolist()

    def propose(self) -> int:
        """Return the next schedule of a shuffled deck that is not taken."""
        while self.ledger.taken[self._order[-1]]:
            self._order.pop()
        return int(self._order[-1])
