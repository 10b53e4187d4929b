"""Evolution strategies, algorithm 4 of Tuna, over schedules as points of the unit cube.

    theta <- theta + alpha / (n * sigma) * sum over i of F_i * epsilon_i

Each sample ``theta + sigma * epsilon`` is rounded to the nearest schedule not tried yet; epsilon is
what that schedule says it was. F is the centred rank of the sample's speed, so that neither the unit
of time nor one very slow schedule decides the step, and failures are merely the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.search.searchers.space import SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher


@dataclass(frozen=True)
class EvolutionOptions:
    """These are the constants of algorithm 4.

    Attributes:
        samples: Schedules of an iteration (n).
        deviation: Standard deviation of the noise (sigma), in lengths of a parameter's axis.
        learning_rate: Step (alpha), in the same unit.
        start: Random schedules tried first; theta starts at the fastest of them.
    """

    samples: int = 8
    deviation: float = 0.2
    learning_rate: float = 0.2
    start: int = 16


class EvolutionSearch(SpaceSearcher):
    """A point climbs along the gradient that samples around it suggest."""

    method = "evolution"

    def __init__(
        self, space: SearchSpace, seed: int, options: EvolutionOptions | None = None
    ) -> None:
        """Begin without a point: it will be the fastest of the first random schedules."""
        super().__init__(space)
        self.options = EvolutionOptions() if options is None else options
        self._generator = np.random.default_rng(seed)
        self._theta: NDArray[np.float32] | None = None
        self._sampled: list[int] = []  # of this iteration

    def propose(self) -> int:
        """Return a random schedule at first, then the free one that is nearest to a sample around the point."""
        if self._theta is None:
            return self.ledger.draw(1, self._generator)[0]
        noise = self._generator.standard_normal(len(self._theta)).astype(np.float32)
        sample = self._theta + np.float32(self.options.deviation) * noise
        row = self.space.nearest(sample, self.ledger.free())
        self._sampled.append(row)
        return row

    def learn(self, rows: Sequence[int]) -> None:
        """Move the point when the outcomes of an iteration are complete."""
        del rows  # the ledger knows them
        known = ~np.isnan(self.ledger.costs)
        if self._theta is None:
            if known.sum() >= self.options.start and (best := self.ledger.best(1)):
                self._theta = self.space.point(best[0]).copy()
            return
        done = [row for row in self._sampled if known[row]]
        if len(done) < self.options.samples:
            return
        self._sampled = [row for row in self._sampled if not known[row]]
        self._theta = self._step(self._theta, done)

    def _step(self, theta: NDArray[np.float32], rows: list[int]) -> NDArray[np.float32]:
        options = self.options
        points = np.stack([self.space.point(row) for row in rows])
        noise = (points - theta) / options.deviation
        fitness = centred_ranks(-self.ledger.costs[rows])
        gradient = fitness @ noise / (len(rows) * options.deviation)
        moved: NDArray[np.float32] = np.clip(theta + options.learning_rate * gradient, 0, 1)
        return moved.astype(np.float32)


def centred_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks scaled to between -1/2 (least) and 1/2 (greatest); equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2
    scaled: NDArray[np.float64] = ranks[inverse.reshape(-1)] / max(1, len(values) - 1) - 0.5
    return scaled
