"""Genetic search works as Woodpecker-DL 2.3 describes it, on the indices of parameter values.

    verified random population, with founders that were fast elsewhere -> fitness -> probabilities (eq. 1) -> k elites pass
    -> parents by roulette over the cumulative probabilities (eq. 2) -> crossover -> mutation -> ...

The operators are DEAP's; its roulette is equations 1 and 2: it sorts by falling fitness and finds
the individual whose cumulative share first exceeds a uniform number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from math import isfinite
from types import ModuleType

import numpy as np

from wpk.errors import WpkError
from wpk.search.searchers.ledger import Ledger
from wpk.search.searchers.space import ABSENT, SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher

_ATTEMPTS = 32
"""Children bred for one that is legal and new, before a neighbour of an elite is taken instead."""


@dataclass(frozen=True)
class GeneticOptions:
    """These options say how to breed; the defaults are tuned for some dozens of trials.

    Attributes:
        population: Individuals of the first generation, and of every later one with its elites.
        elites: Fastest individuals that pass to the next generation (k).
        pressure: Fitness is ``(fastest / seconds) ** pressure``; the paper leaves the function of
            run time open. With 1, an individual twice as slow breeds half as often.
        crossover: Probability that a child has two parents, not one.
        mixing: Probability of each gene to come from the second of two parents.
        mutation: Probability of each gene of a child to be drawn anew.
        closeness: The search has converged when the slowest individual of a generation is slower
            than the fastest by at most this share.
        founders: Schedules of the first generation that are taken from similar problems, where experience
            knows any.
        similar: How many problems they come from.
    """

    population: int = 8
    elites: int = 3
    pressure: float = 16.0
    crossover: float = 0.8
    mixing: float = 0.5
    mutation: float = 0.1
    closeness: float = 0.03
    founders: int = 6
    similar: int = 3


def _load_breeding() -> ModuleType:
    """DEAP's operators.

    Raises:
        WpkError: DEAP is not installed.
    """
    try:
        return import_module("wpk.search.searchers.breeding")
    except ImportError as error:
        raise WpkError(
            f"genetic search needs deap, which cannot be imported: {error}",
            fix="pip install deap, or choose another --search: static, ppo, evolution, random, exhaustive",
        ) from error


class GeneticSearch(SpaceSearcher):
    """This searcher breeds by elites, roulette, crossover and mutation from whatever trials it is told.

    A generation is bred when all of the one before has been asked for, and outcomes for a whole population
    are known; individuals whose outcomes are outstanding then live in the next one. Whoever asks for more
    before that gets further children of the known individuals, and the generation grows.
    """

    method = "genetic"

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        options: GeneticOptions | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Begin without individuals; the first generation is drawn at random as it is asked for."""
        super().__init__(space, ledger)
        self._breeding = _load_breeding()
        self.options = GeneticOptions() if options is None else options
        self._generator = np.random.default_rng(seed)
        self._state = random.Random(seed).getstate()
        self._members: set[int] = set()  # the generation, elites included
        self._parents: tuple[int, ...] = ()  # who may breed
        self._left = self.options.population  # still to be proposed of this generation
        self._founders = iter(self._known_elsewhere())

    def propose(self) -> int:
        """Return a random individual of the first generation, or a child in later ones."""
        enough = min(self.options.population, len(self._members))
        if self._left <= 0 and len(self._known()) >= enough:
            self._next_generation()
        self._left -= 1
        row = self._child() if self._parents else self._stranger()
        self._members.add(row)
        return row

    def _stranger(self) -> int:
        """A schedule like the fastest of similar problems, as long as there are such; else a random one."""
        founder = next(self._founders, None)
        if founder is None:
            return self.ledger.draw(1, self._generator)[0]
        return self.space.like(founder, self.ledger.free())

    def _known_elsewhere(self) -> list[dict[str, int]]:
        """The fastest schedules of the most similar problems: the first of each, then the second, each once."""
        if self.space.experience is None:
            return []
        nearest = self.space.experience.nearest(self.space.features)[: self.options.similar]
        ranks = zip_longest(*(lesson.best(self.options.founders) for lesson in nearest))
        every = [each for rank in ranks for each in rank if each is not None]
        distinct = {tuple(each.items()): each for each in every}
        return list(distinct.values())[: self.options.founders]

    def learn(self, rows: Sequence[int]) -> None:
        """Let schedules that others tried live in this generation, too."""
        self._members.update(rows)

    def _known(self) -> list[int]:
        """The individuals whose outcomes are known."""
        return [row for row in self._members if not np.isnan(self.ledger.costs[row])]

    def _are_close(self) -> bool:
        """Whether the known run times are so close that those of their children would be, too."""
        costs = self.ledger.costs[self._known()]
        ran = costs[np.isfinite(costs)]
        return len(ran) >= 2 and bool(ran.max() <= (1 + self.options.closeness) * ran.min())

    def _next_generation(self) -> None:
        outstanding = self._members.difference(self._known())
        ran = [row for row in self._members if isfinite(self.ledger.costs[row])]
        ran.sort(key=lambda row: (self.ledger.costs[row], row))
        # Who goes on after convergence lets strangers in: close individuals breed their like.
        self._parents = () if self._are_close() else tuple(ran[: self.options.population])
        elites = ran[: self.options.elites]
        self._members = outstanding.union(elites)
        self._left = max(1, self.options.population - len(elites))

    def _child(self) -> int:
        """A legal child not tried yet; a neighbour of an elite where breeding finds none."""
        with self._own_random():
            for _ in range(_ATTEMPTS):
                row = int(self.space.rows([self._breed()])[0])
                if row != ABSENT and not self.ledger.taken[row]:
                    return row
        for elite in self._parents[: self.options.elites]:
            near = self.space.neighbours(elite)
            free = near[~self.ledger.taken[near]]
            if len(free):
                return int(self._generator.choice(free))
        return self.ledger.draw(1, self._generator)[0]

    def _breed(self) -> Sequence[int]:
        options, genome = self.options, self._breeding.Genome
        costs = self.ledger.costs[list(self._parents)]
        tiny = np.finfo(float).tiny  # a clock too coarse for a kernel gives zeros
        fitness = ((costs.min() + tiny) / (costs + tiny)) ** options.pressure
        genomes = self.space.genomes[list(self._parents)].tolist()
        child: Sequence[int] = self._breeding.breed(
            [genome(g, f) for g, f in zip(genomes, fitness.tolist(), strict=True)],
            [size - 1 for size in self.space.shape],
            crossover=options.crossover,
            mixing=options.mixing,
            mutation=options.mutation,
        )
        return child

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        """Let this searcher's random state stand in for the global `random`, from which DEAP draws."""
        others = random.getstate()
        random.setstate(self._state)
        try:
            yield
        finally:
            self._state = random.getstate()
            random.setstate(others)
