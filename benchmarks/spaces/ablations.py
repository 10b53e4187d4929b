"""Searchers that leave something out, or are as simple as can be: what the others must beat. In the study only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wpk.search.searchers import Searcher, SearchSpace
from wpk.search.searchers.evolution import EvolutionSearch
from wpk.search.searchers.genetic import GeneticOptions, GeneticSearch
from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.ppo_policy import Pretraining
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.searchers.space_searcher import SpaceSearcher

START, FASTEST = 16, 2
"""Trials before the first neighbour, and whose neighbours are tried: as PPO does."""


class NeighbourSearch(SpaceSearcher):
    """This searcher tries a random neighbour of one of the two fastest."""

    method = "neighbour"

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """Begin; the seed decides all draws."""
        super().__init__(space)
        self._generator = np.random.default_rng(seed)

    def propose(self) -> int:
        """Return a neighbour that is free; a random schedule at first, and where there is none."""
        if self.ledger.taken.sum() >= START:
            for row in self._generator.permutation(self.ledger.best(FASTEST)).tolist():
                near = self.space.neighbours(row)
                free = near[~self.ledger.taken[near]]
                if len(free):
                    return int(self._generator.choice(free))
        return self.ledger.draw(1, self._generator)[0]


class OrderSearch(SpaceSearcher):
    """This searcher tries the schedules in the order of the space: by a model alone."""

    method = "order"

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """Begin; nothing is drawn."""
        super().__init__(space)
        del seed

    def propose(self) -> int:
        """Return the first that is free."""
        return int(self.ledger.free()[0])

    def learn(self, rows: Sequence[int]) -> None:
        """Nothing changes the order."""


class BothSearch(SpaceSearcher):
    """Genetic search and PPO take turns on one ledger, as Woodpecker-DL searches with both and takes the better."""

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


Make = Callable[[SearchSpace, int], Searcher]


@dataclass(frozen=True)
class Compared:
    """A searcher of the study.

    Attributes:
        make: Begins a search.
        carries: Whether it is given what was measured of other networks.
    """

    make: Make
    carries: bool = False


_NEVER = PpoOptions(learning_rate=0.0, pretraining=Pretraining(own_steps=0))
_ALONE = GeneticOptions(crossover=0.0)

COMPARED: dict[str, Compared] = {
    "random": Compared(RandomSearch),
    "model alone": Compared(OrderSearch),
    "random neighbour": Compared(NeighbourSearch),
    "evolution": Compared(EvolutionSearch),
    "genetic": Compared(GeneticSearch),
    "genetic, no crossover": Compared(lambda s, seed: GeneticSearch(s, seed, _ALONE)),
    "genetic, carried": Compared(GeneticSearch, carries=True),
    "ppo": Compared(PpoSearch),
    "ppo that never learns": Compared(lambda s, seed: PpoSearch(s, seed, _NEVER)),
    "ppo, carried": Compared(PpoSearch, carries=True),
    "ppo, carried, learns no more": Compared(
        lambda s, seed: PpoSearch(s, seed, _NEVER), carries=True
    ),
    "genetic and ppo": Compared(BothSearch),
    "genetic and ppo, carried": Compared(BothSearch, carries=True),
}
"""By name. Policies and populations that are carried were taught by other networks than the one that is searched."""
