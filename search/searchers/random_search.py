"""In random search every schedule is as likely as any other; other searchers must beat it."""

from __future__ import annotations

import numpy as np

from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher


class RandomSearch(SpaceSearcher):
    """This searcher draws uniformly and without repetition."""

    method = "random"

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """Begin; the seed decides the order."""
        super().__init__(space)
        self._order = np.random.default_rng(seed).permutation(space.size).tolist()

    def propose(self) -> int:
        """Return the next schedule of a shuffled deck that is not taken."""
        while self.ledger.taken[self._order[-1]]:
            self._order.pop()
        return int(self._order[-1])
