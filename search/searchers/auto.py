"""By default genetic search and reinforcement learning take turns and learn from each other's trials.

Woodpecker-DL searches with both and takes the better result (section 3). Here they share the budget
and a ledger as well, so neither tries what the other has tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from wpk.search.searchers.genetic import GeneticSearch
from wpk.search.searchers.ppo import PpoSearch
from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher


class AutoSearch(SpaceSearcher):
    """Two searchers share one ledger; their proposals alternate."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """Begin with the genetic one."""
        super().__init__(space)
        self._searchers = (
            GeneticSearch(space, seed, ledger=self.ledger),
            PpoSearch(space, seed, ledger=self.ledger),
        )
        self._proposals = 0
        self._proposer = ""

    @property
    def own_name(self) -> str:
        """The name of the searcher whose turn it was."""
        return self._proposer

    def propose(self) -> int:
        """Return what the searcher whose turn it is proposes."""
        searcher = self._searchers[self._proposals % len(self._searchers)]
        self._proposals += 1
        self._proposer = searcher.proposer
        return searcher.propose()

    def learn(self, rows: Sequence[int]) -> None:
        """Let both searchers learn from all trials."""
        for searcher in self._searchers:
            searcher.learn(rows)
