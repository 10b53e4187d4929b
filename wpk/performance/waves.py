"""How long a grid of blocks takes: what score and estimate share.

The form is that of Li et al. 2022 ("Towards an accurate latency model for CNN layers on GPUs",
equations 1 and 2): a grid of tiles in waves. Their constants are fitted for each kernel; here most
follow from the target, and four are fitted for all kernels together (`wpk.performance.rates`).

    waves = sum over waves of  fill + multicast + steps * (step + sync) + fill + tail + fetches + end
    step  = | arithmetic, shared memory's port, what goes on beside, L2's port, waiting |

All but the last of a step are the cycles that one step of all resident blocks occupies a resource of
the SM, L2's port but for warpgroups, whose tensor copies run ahead; waiting is the latency of global memory as far as
the stages do not hide it. Fetches are operands of the epilogue that are waited for. The tail is that
of a split reduction (`wpk.schedules.split`): partial sums are written and counted, and the last block
of a tile reads them all. The end is what quantised sums go through before they are stored. Waves take no less than the blocks of an early launch
take to begin. ``|...|`` is a
norm between the maximum and the sum: resources overlap, but not perfectly, so of two schedules with
the same worst limit the one whose other limits are smaller is the faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from wpk.performance.occupancy import resident_blocks
from wpk.performance.rates import FILL_CYCLES, L2_PORT_BYTES, StepRates
from wpk.performance.work import Floats, Rows, Work, at_rows
from wpk.targets import Target

_MEETING_CYCLES, _PART_BYTES = 2950, 45
"""Where parts meet in global memory: cycles until the last block of a tile knows that it is the last
(ten trips to L2), and bytes that it then reads in a cycle. Fitted, as those of clusters, to some 4000 kernels of
36 problems that were measured on an H200."""

_CLUSTER_CYCLES, _CLUSTER_BYTES = 1330, 27
"""Where they meet in the shared memory of a cluster: cycles of its barriers, and bytes that a block takes
from its neighbours in a cycle."""

_MULTICAST_CYCLES = 2000
"""Where blocks multicast: the launch of clusters, their barrier in front of the first copy, and that the slowest
of several producers decides. It was chosen by ranks in 200 such kernels of nine problems, measured on an H100."""

_SM_GROUPS = 8
"""Groups of SMs (GPCs of Hopper), of which each cluster occupies one. Their SMs are no multiple of a cluster's blocks, of
4 blocks one is lost in each group on average, of 8 three: 32 clusters of 4 took two waves on an H100's 132 SMs."""

EARLY_BLOCK_SECONDS = 1.21e-9
"""What each block of an early launch takes to begin, however little it does and whichever SMs are free. Three resamplings of one
output a thread, whose blocks do next to nothing: 6272 blocks took 8.21 us and 100352 took 121.4 on an H200, of 128 and of 64
threads (docs/roofline.md), 43008 of 128 threads took 52 on an H100: 1.21 each, but for what a launch takes. Launches that are
not early begin faster: 10344 blocks of a convolution took 8.4 us (tests/replay)."""

ACHIEVED_L2, COPIED_L2 = 0.56, 0.9
"""Share of L2's peak that loads reach: 5.65 of 10.1e12, since reading 40 MB again and again took 2.8 us more than reading 24 on
an H200 (with their launches, which estimates count apart, 4.9 and 4.5e12); and that tensor copies reach: 7 to 9.4 in the main
loops of products of 200 rows, measured within kernels on an H100, and about the peak in those of thousands of rows; fitted as `OVERLAP_BESIDE`."""

OVERLAP, OVERLAP_BESIDE = 1.75, 2.5
"""Order of the norm: two equal limits cost 1.49 of one, a limit half as large 1.16; fitted as the
constants of `wpk.performance.rates`. Where warpgroups multiply, whose copies and products run beside all warps, two equal
limits of a step, or waves and L2, cost 1.32 of one, a limit half as large 1.07; fitted to 44 problems with 20 to 160 kernels
each, of one row to 100352, measured on an H100 and an H200 (docs/decisions/0084-products-of-many-rows.md)."""


@dataclass(frozen=True)
class Grids:
    """How grids of schedules go over a GPU, without the launch: what score and estimate are made of.

    Attributes:
        work: What the schedules make the GPU do; arrays have one entry a schedule, here and below.
        target: The GPU.
        resident: Blocks that an SM holds at once.
        waves: Seconds that the waves take; infinite where not one block fits an SM.
        l2: Seconds that L2 needs for what the blocks move.
    """

    work: Work
    target: Target
    resident: Floats
    waves: Floats
    l2: Floats

    @classmethod
    def of(cls, work: Work, target: Target, passes: Floats | float = 1.0) -> Grids:
        """Return those of some work.

        Args:
            work: What the schedules make the GPU do.
            target: The GPU.
            passes: Passes of a shared memory load (`SharedCost.passes`).
        """
        resident = resident_blocks(work, target)
        held = np.maximum(resident, 1)
        multiprocessors = _reached(work, target)
        full_waves = np.floor(work.blocks / (multiprocessors * held))
        rest = work.blocks - full_waves * multiprocessors * held
        left = np.maximum(1.0, np.ceil(rest / multiprocessors))
        blocks = _Blocks.of(work, target, passes)
        cycles = full_waves * _where(full_waves > 0, blocks, held)
        cycles = cycles + _where(rest > 0, blocks, left)
        begins = np.where(work.early, work.blocks * EARLY_BLOCK_SECONDS, 0.0)
        waves = np.where(resident > 0, np.maximum(cycles / target.clock, begins), np.inf)
        return cls(work, target, resident, waves, l2_seconds(work, target))

    @property
    def seconds(self) -> Floats:
        """Seconds of the waves and of L2, which serves them meanwhile."""
        order = OVERLAP_BESIDE if self.work.by_warpgroups else OVERLAP
        return overlapped(self.waves, self.l2, order=order)

    def rows(self, rows: Rows) -> Grids:
        """Return those of some of the schedules, in that order."""
        return replace(at_rows(self, rows), work=at_rows(self.work, rows))


def _reached(work: Work, target: Target) -> Floats:
    """Count the SMs that blocks occupy: what is left of a group of SMs holds no cluster."""
    blocks = np.asarray(work.cluster_blocks, np.float64)
    lost = _SM_GROUPS * np.maximum(blocks / 2 - 1, 0.0)
    clusters: Floats = np.maximum(np.floor((target.sm_count - lost) / blocks), 1.0)
    return np.where(blocks > 1, clusters * blocks, float(target.sm_count))


def l2_seconds(work: Work, target: Target) -> Floats:
    """Return the seconds that L2 needs for what the blocks move."""
    moved = work.blocks * (work.block_transactions * target.transaction_bytes + work.store_bytes)
    achieved = COPIED_L2 if work.by_warpgroups else ACHIEVED_L2
    seconds: Floats = moved / (target.l2_bandwidth * achieved)
    return seconds


def overlapped(*limits: Floats, order: float = OVERLAP) -> Floats:
    """Return how long what takes place at once takes together: a norm of that order."""
    worst = np.maximum(reduce(np.maximum, limits), 1e-30)
    bounded = np.where(worst < np.inf, worst, 1.0)  # infinite stays infinite, and no number
    total: Floats = worst * sum((limit / bounded) ** order for limit in limits) ** (1 / order)
    return total


@dataclass(frozen=True)
class _Blocks:
    """What a wave of blocks takes depends on; arrays have one entry a schedule.

    Attributes:
        rates: Of a step.
        passes: Passes of a shared memory load.
        steps: Of a block.
        ends: Cycles of a block before its first step, and for its launch in a cluster.
        tail: Cycles from a block's last step to the sum of all parts of its tile.
        fetches: Cycles until operands of the epilogue are there.
        by_warpgroups: See `Work`.
    """

    rates: StepRates
    passes: Floats | float
    steps: Floats
    ends: Floats
    tail: Floats
    fetches: Floats
    by_warpgroups: bool

    @classmethod
    def of(cls, work: Work, target: Target, passes: Floats | float) -> _Blocks:
        """Return them of some work."""
        rates = StepRates.of(work, target)
        return cls(
            rates=rates,
            passes=passes,
            steps=np.maximum(work.steps, 1),
            ends=rates.ends + np.where(work.multicast, _MULTICAST_CYCLES, 0.0),
            tail=_tail(work),
            fetches=FILL_CYCLES * np.asarray(work.end_fetches),
            by_warpgroups=work.by_warpgroups,
        )

    def rows(self, rows: Rows) -> _Blocks:
        """Return those of some of the schedules."""
        return replace(at_rows(self, rows), rates=at_rows(self.rates, rows))

    def wave(self, held: Floats) -> Floats:
        """Cycles of one wave with ``held`` blocks an SM."""
        rates = self.rates
        arithmetic, shared = rates.arithmetic(held), held * rates.loads * self.passes
        limits = [arithmetic, shared, held * rates.beside, rates.waiting()]
        if not self.by_warpgroups:  # tensor copies run ahead: no step waits for the port by itself
            limits.append(held * rates.bytes / L2_PORT_BYTES)
        order = OVERLAP_BESIDE if self.by_warpgroups else OVERLAP
        steps = self.steps * (overlapped(*limits, order=order) + rates.sync)
        cycles: Floats = self.ends + steps + self.tail + self.fetches + rates.ending(held)
        return cycles


def _where(there: NDArray[np.bool_], blocks: _Blocks, held: Floats) -> Floats:
    """Cycles of a wave with ``held`` blocks an SM where there is one, else 0."""
    rows = np.flatnonzero(there)
    if rows.size == held.size:
        return blocks.wave(held)
    cycles = np.zeros(held.shape)
    if rows.size:
        cycles[rows] = blocks.rows(rows).wave(held[rows])
    return cycles


def _tail(work: Work) -> Floats:
    """Cycles from a block's last step to the sum of all parts of its tile; 0 where there are none."""
    read = np.asarray(work.combined_bytes)
    through_memory = _MEETING_CYCLES + read / _PART_BYTES
    meeting = np.where(work.in_cluster, _CLUSTER_CYCLES + read / _CLUSTER_BYTES, through_memory)
    return np.where(read > 0, meeting, 0.0)
