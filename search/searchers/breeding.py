"""DEAP's operators on individuals of a genetic search; imported only where one breeds.

DEAP draws from the global `random`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from deap import base, tools


class _Fitness(base.Fitness):  # type: ignore[misc]  # DEAP ships no types
    """One number, larger is better."""

    weights = (1.0,)


class Genome(list[int]):
    """An individual as DEAP's operators expect it: a list with a fitness."""

    def __init__(self, genes: Sequence[int], fitness: float) -> None:
        """Take the genes, and how good they are."""
        super().__init__(genes)
        self.fitness = _Fitness((fitness,))


def breed(
    individuals: Sequence[Genome],
    highest: Sequence[int],
    *,
    crossover: float,
    mixing: float,
    mutation: float,
) -> Genome:
    """A child of two individuals that roulette selects.

    Args:
        individuals: Who may be a parent.
        highest: The largest value of each gene; the smallest is 0.
        crossover: Probability of two parents.
        mixing: Probability of each gene to come from the second.
        mutation: Probability of each gene to be drawn anew.
    """
    first, second = tools.selRoulette(individuals, 2)
    child = Genome(first, 0.0)
    if random.random() < crossover:
        tools.cxUniform(child, Genome(second, 0.0), mixing)
    tools.mutUniformInt(child, 0, list(highest), mutation)
    return child
