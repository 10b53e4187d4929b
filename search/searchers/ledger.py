"""A ledger knows which schedules were asked for and what came of them; searchers that share one never ask twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wpk.errors import ScheduleError
from wpk.search.searchers.space import Rows, SearchSpace
from wpk.trial import Trial


class Ledger:
    """A ledger holds the state of every schedule of a space.

    Attributes:
        taken: Rows asked for, or tried before.
        costs: Seconds of each row; infinity where it failed, NaN where no outcome is known.
    """

    def __init__(self, space: SearchSpace) -> None:
        """Begin with nothing asked for."""
        self._space = space
        self.taken: NDArray[np.bool_] = np.zeros(space.size, bool)
        self.costs: NDArray[np.float64] = np.full(space.size, np.nan)

    def free(self) -> Rows:
        """Return the rows that are not taken, rising."""
        return np.flatnonzero(~self.taken)

    def draw(self, count: int, generator: np.random.Generator) -> list[int]:
        """Draw rows that are not taken, uniformly and without repetition; fewer where fewer are left."""
        free = self.free()
        drawn: list[int] = generator.choice(free, min(count, len(free)), replace=False).tolist()
        return drawn

    def best(self, count: int) -> list[int]:
        """Return the fastest known rows, best first; only those that ran correctly."""
        known = np.flatnonzero(np.isfinite(self.costs))
        order: list[int] = known[np.argsort(self.costs[known], kind="stable")][:count].tolist()
        return order

    def record(self, trials: Sequence[Trial]) -> list[int]:
        """Enter outcomes; return the row of each.

        Raises:
            ScheduleError: A trial's schedule is not in the space; nothing is entered then.
        """
        rows = [self._row(trial) for trial in trials]
        self.taken[rows] = True
        self.costs[rows] = [trial.cost for trial in trials]
        return rows

    def _row(self, trial: Trial) -> int:
        row = self._space.row(trial.candidate.configuration)
        if row is None:
            text = " ".join(f"{name}={value}" for name, value in trial.candidate.configuration)
            raise ScheduleError(
                f"a trial of '{text}' was told to a searcher whose space does not hold it",
                fix="tell a searcher only trials of its own problem, template and rows",
            )
        return row
