"""The score of waves: PUL carried over to tensor cores, the L2 cache, occupancy and latency, none of it in the paper.

    score = UsefulRatio * FitRatio * ReachRatio

It prunes by default. It stays what PUL is, a share of the peak, and each ratio has its counterpart:

- ReachRatio replaces GMRatio, SMRatio and WBRatio: the time of the blocks' operations at the peak of
  the unit they use, over the time of the grid (`wpk.performance.waves`). The paper multiplies its
  ratios, and each is 1 where its limit does not bind. Measured on an H200 at batch 1, where a grid
  is a wave or two and a block some dozens of steps, limits that do not bind still cost: every step
  waits, synchronises and issues its loads besides its operations. Ratios cut off at 1 see none of
  that, and by them the fastest schedule lay beyond the first tenth of half the spaces.
- UsefulRatio: operations that the problem needs / operations that the blocks do, padding included.
  Without it a tile that is mostly padding would score for its intensity.
- An operation is at least one for each element that is loaded: copies compute nothing, but the
  paper's table 6 counts an element-wise operation for each.
- FitRatio is COEF_r with registers and the SM's capacity: 0 where not one block fits, else 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.performance.rates import unit_peak
from wpk.performance.waves import Grids
from wpk.performance.work import Floats, Work
from wpk.targets import Target


@dataclass(frozen=True)
class ExtendedPul:
    """The factors and the score, one entry a schedule, each between 0 and 1."""

    reach_ratio: Floats
    useful_ratio: Floats
    fit_ratio: Floats

    @property
    def score(self) -> Floats:
        """The share of the peak, see the module's equation."""
        return self.useful_ratio * self.fit_ratio * self.reach_ratio


def extended_pul(
    work: Work, operations: float, target: Target, passes: Floats | float = 1.0
) -> ExtendedPul:
    """Return the score by which schedules are pruned.

    Args:
        work: What the schedules make the GPU do.
        operations: What the problem needs (`wpk.performance.bound.Bound.operations`).
        target: The GPU.
        passes: Passes of a shared memory load (`SharedCost.passes`); with 1, as before they are
            counted, the score is an upper limit of the counted one.
    """
    return extended_pul_of(Grids.of(work, target, passes), operations)


def extended_pul_of(grids: Grids, operations: float) -> ExtendedPul:
    """Return the score of schedules whose grids were timed, as `extended_pul` does."""
    work, target = grids.work, grids.target
    done = work.blocks * work.block_flops
    needed = operations or done.min()  # of a copy: what its leanest schedule counts
    useful = np.divide(needed, done, out=np.ones(done.shape), where=done > 0)
    loaded = work.block_transactions * target.transaction_bytes / work.element_bytes
    counted = work.blocks * np.maximum(work.block_flops, loaded)
    return ExtendedPul(
        reach_ratio=np.minimum(1.0, counted / unit_peak(work, target) / grids.seconds),
        useful_ratio=np.minimum(1.0, useful),
        fit_ratio=(grids.resident > 0).astype(np.float64),
    )
