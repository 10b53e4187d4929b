"""The default: genetic and reinforcement learning take turns and learn from each other's trials.

Woodpecker-DL searches with both and takes the better result (section 3). Here they share the budget
and a ledger as well, so neither tries what the other has tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from wpk.schedules import Schedule
from wpk.search.searchers.genetic import GeneticOptions, GeneticSearch
from wpk.search.searchers.ledger import Ledger
from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher

S = TypeVar("S", bound=Schedule)


class AutoSearch(SpaceSearcher[S]):
    """Two searchers, one ledger; proposals alternate."""

    def __init__(
        self,
        space: SearchSpace[S],
        seed: int,
        genetic: GeneticOptions | None = None,
        ppo: PpoOptions | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Begin with the genetic one."""
        super().__init__(space, ledger)
        self._searchers = (
            GeneticSearch(space, seed, genetic, self.ledger),
            PpoSearch(space, seed, ppo, self.ledger),
        )
        self._proposals = 0
        self._proposer = ""

    @property
    def converged(self) -> bool:
        """Whether the genetic search has converged; PPO has no such rule."""
        return self._searchers[0].converged

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
