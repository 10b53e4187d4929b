"""The estimate: predicted seconds of each schedule, by which those that the score left are ranked.

The form is that of Li et al. 2022 ("Towards an accurate latency model for CNN layers on GPUs",
equations 1 and 2): a grid of tiles in waves, plus the memory's share, plus a constant. Their
constants are fitted for each kernel; here they follow from the target.

    estimate = launch + max(bound, waves, L2, global memory)
    waves    = sum over waves of  fill + steps * step + fill
    step     = max(busy, (fill + own) / stages)

``busy`` is the longest that one step of all resident blocks occupies a resource of the SM
(arithmetic unit, shared memory's port, L2's port), ``own`` one block's share of the arithmetic, and
``fill`` the latency of global memory. With ``stages`` steps in flight the latency is shared among
them; with one it is paid at every step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.performance.bound import Bound
from wpk.performance.extension import SCHEDULERS, unit_peak
from wpk.performance.occupancy import WARP, resident_blocks
from wpk.performance.work import Floats, Work
from wpk.targets.target import Target

FILL_CYCLES = 500
"""Latency of a load: L2 hits take 263 cycles on an H100, misses 480 to 700 (arXiv 2402.13499)."""

L2_PORT_BYTES = 64
"""Bytes an SM takes from L2 in a cycle (Volta and later; arXiv 1804.06826)."""

ACHIEVED_L2 = 0.48
"""Share of L2's peak that reading reaches: 4.9 of 10.1e12, measured on an H200 over 40 MB."""

ACHIEVED_GLOBAL = 0.93
"""Share of global memory's peak that reading reaches: 4.46 of 4.8e12, measured on an H200."""

WARP_MMA_SHARE = 0.62
"""Share of Hopper's tensor peak that warp-wide products reach, wgmma aside (arXiv 2402.13499)."""


def estimate(work: Work, bound: Bound, target: Target, passes: Floats | float = 1.0) -> Floats:
    """Predicted seconds of each schedule; infinite where not one block fits an SM.

    Args:
        work: What the schedules make the GPU do.
        bound: The problem's bound on this target; no estimate lies under it.
        target: The GPU.
        passes: Passes of a shared memory load (`SharedCost.passes`).
    """
    rates = _Rates.of(work, target)
    resident = resident_blocks(work, target)
    held = np.maximum(resident, 1)
    full_waves = np.floor(work.blocks / (target.sm_count * held))
    rest = work.blocks - full_waves * target.sm_count * held
    left = np.maximum(1.0, np.ceil(rest / target.sm_count))
    waves = full_waves * _wave(work, held, rates, passes)
    waves = waves + np.where(rest > 0, _wave(work, left, rates, passes), 0.0)
    moved = work.blocks * (work.block_transactions * target.transaction_bytes + work.store_bytes)
    l2 = moved / (target.l2_bandwidth * ACHIEVED_L2)
    beyond = max(0, bound.bytes - target.l2_bytes) / (target.global_bandwidth * ACHIEVED_GLOBAL)
    seconds = np.maximum.reduce([waves / target.clock, l2, np.full(l2.shape, beyond)])
    total: Floats = target.launch_seconds + np.maximum(seconds, bound.seconds)
    return np.where(resident > 0, total, np.inf)


@dataclass(frozen=True)
class _Rates:
    """What an SM does in a cycle."""

    operations: float
    step_flops: Floats  # of a block
    step_bytes: Floats  # a block takes from L2
    step_passes: Floats  # of shared memory, a block, at one pass a load
    warps: Floats

    @classmethod
    def of(cls, work: Work, target: Target) -> _Rates:
        peak = unit_peak(work, target)
        if work.unit is not None and target.capability >= (9, 0):
            peak *= WARP_MMA_SHARE
        warps = np.ceil(work.threads / WARP)
        steps = np.maximum(work.steps, 1)
        return cls(
            operations=peak / (target.sm_count * target.clock),
            step_flops=work.block_flops / steps,
            step_bytes=work.block_transactions * target.transaction_bytes / steps,
            step_passes=work.thread_loads * warps / steps,
            warps=warps,
        )


def _wave(work: Work, held: Floats, rates: _Rates, passes: Floats | float) -> Floats:
    """Cycles of one wave with ``held`` blocks an SM."""
    # Fewer warps than schedulers leave part of the arithmetic unit idle.
    fed = np.minimum(1.0, held * rates.warps / SCHEDULERS)
    arithmetic = held * rates.step_flops / (rates.operations * fed)
    busy = np.maximum.reduce(
        [arithmetic, held * rates.step_passes * passes, held * rates.step_bytes / L2_PORT_BYTES]
    )
    own = rates.step_flops / (rates.operations * np.minimum(1.0, rates.warps / SCHEDULERS))
    step = np.maximum(busy, (FILL_CYCLES + own) / np.maximum(work.stages, 1))
    cycles: Floats = 2 * FILL_CYCLES + np.maximum(work.steps, 1) * step
    return cycles
