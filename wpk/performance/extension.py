"""PUL carried over to tensor cores, the L2 cache and occupancy: none of this is in the paper.

    score = UsefulRatio * FitRatio * min(L2Ratio, WBRatio * min(HideRatio, FeedRatio * FetchRatio))

The paper multiplies all its factors, as if limits that act at the same time were spent one after
the other; of those the worst decides. What an SM reaches is multiplied with the share of SMs that
work; L2's bandwidth is one for all of them, so it limits their sum.

- L2Ratio replaces GMRatio: what several blocks load is served once by global memory and then by L2,
  so a block's loads are held against L2's bandwidth; the peak is that of the unit that is used.
- HideRatio replaces SMRatio: the paper lets only a thread's own work hide the latency of its shared
  memory loads; here the other warps of the scheduler hide it too, an operation takes what the unit
  needs for it instead of one cycle, and the bandwidth of shared memory (one pass a cycle and SM) is
  a limit besides its latency, to which further passes add instead of multiplying it.
- FetchRatio does for global memory's latency what SMRatio does for shared memory's: how much of it
  the steps in flight and the resident blocks hide.
- FeedRatio: the SM's schedulers that have a warp at all.
- WBRatio is the paper's, corrected.
- UsefulRatio: operations that the problem needs / operations that the blocks do, padding included.
  Without it a tile that is mostly padding would score for its intensity.
- An operation is at least one for each element that is loaded: copies compute nothing, but the
  paper's table 6 counts an element-wise operation for each.
- FitRatio is COEF_r with registers and the SM's capacity: 0 where not one block fits, else 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wpk.performance.occupancy import WARP, resident_blocks
from wpk.performance.pul import oitb, wb_ratio
from wpk.performance.rates import SCHEDULERS, StepRates, unit_peak
from wpk.performance.work import Floats, Work
from wpk.targets.target import Target


@dataclass(frozen=True)
class ExtendedPul:
    """The factors and the score, one entry a schedule, each between 0 and 1."""

    l2_ratio: Floats
    hide_ratio: Floats
    fetch_ratio: Floats
    feed_ratio: Floats
    wb_ratio: Floats
    useful_ratio: Floats
    fit_ratio: Floats

    @property
    def score(self) -> Floats:
        """The upper limit of the share of the peak, see the module's equation."""
        sm = np.minimum(self.hide_ratio, self.feed_ratio * self.fetch_ratio)
        share = np.minimum(self.l2_ratio, self.wb_ratio * sm)
        return self.useful_ratio * self.fit_ratio * share


def extended_pul(
    work: Work, operations: float, target: Target, passes: Floats | float = 1.0
) -> ExtendedPul:
    """The score by which schedules are pruned.

    Args:
        work: What the schedules make the GPU do.
        operations: What the problem needs (`wpk.performance.bound.Bound.operations`).
        target: The GPU.
        passes: Passes of a shared memory load (`SharedCost.passes`); with 1, as before they are
            counted, the score is an upper limit of the counted one.
    """
    done = work.blocks * work.block_flops
    needed = operations or done.min()  # of a copy: what its leanest schedule counts
    useful = np.divide(needed, done, out=np.ones(done.shape), where=done > 0)
    loaded = work.block_transactions * target.transaction_bytes / work.element_bytes
    counted = replace(
        work,
        block_flops=np.maximum(work.block_flops, loaded),
        thread_flops=np.maximum(work.thread_flops, loaded / np.maximum(work.threads, 1)),
    )
    resident = resident_blocks(work, target)
    # A grid smaller than what the SMs could hold leaves each its share.
    held = np.clip(np.ceil(work.blocks / target.sm_count), 1, np.maximum(resident, 1))
    rates = StepRates.of(counted, target)
    busy = rates.arithmetic(held)
    intensity = oitb(counted, target)
    return ExtendedPul(
        l2_ratio=np.minimum(1.0, intensity * target.l2_bandwidth / unit_peak(work, target)),
        hide_ratio=_hide_ratio(counted, held * rates.warps, target, passes),
        fetch_ratio=busy / np.maximum(np.maximum(busy, rates.waiting()), 1e-30),
        feed_ratio=rates.fed(held),
        wb_ratio=wb_ratio(work.blocks, target.sm_count),
        useful_ratio=np.minimum(1.0, useful),
        fit_ratio=(resident > 0).astype(np.float64),
    )


def _hide_ratio(work: Work, warps: Floats, target: Target, passes: Floats | float) -> Floats:
    operations_a_cycle = unit_peak(work, target) / (target.sm_count * target.clock)
    # Cycles for which one warp's operations occupy the SM, and those for which its loads occupy
    # the shared memory's one port.
    computing = work.thread_flops * WARP / operations_a_cycle
    loading = work.thread_loads * passes
    # A scheduler has a quarter of the unit, so a warp's operations take it four times as long.
    covered = computing * SCHEDULERS * np.maximum(1.0, warps / SCHEDULERS)
    latency = work.thread_loads * (target.shared_latency + passes - 1)
    worst = np.maximum(loading / np.maximum(computing, 1e-30), latency / np.maximum(covered, 1e-30))
    ratio: Floats = 1.0 / np.maximum(1.0, worst)
    return ratio
