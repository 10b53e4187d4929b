"""The estimate: predicted seconds of each schedule, by which those that the score left are ranked.

The form is that of Li et al. 2022 ("Towards an accurate latency model for CNN layers on GPUs",
equations 1 and 2): a grid of tiles in waves, plus the memory's share, plus a constant. Their
constants are fitted for each kernel; here they follow from the target.

    estimate = launch + max(bound, | waves, L2, global memory |)
    waves    = sum over waves of  fill + steps * (step + sync) + fill
    step     = | arithmetic, shared memory's port, L2's port, waiting |

The first three of a step are the cycles that one step of all resident blocks occupies a resource of
the SM; waiting is the latency of global memory as far as the stages do not hide it. ``|...|`` is a
norm between the maximum and the sum: resources overlap, but not perfectly, so of two schedules with
the same worst limit the one whose other limits are smaller is the faster.
"""

from __future__ import annotations

import numpy as np

from wpk.performance.bound import Bound
from wpk.performance.occupancy import resident_blocks
from wpk.performance.rates import FILL_CYCLES, L2_PORT_BYTES, SYNC_CYCLES, StepRates
from wpk.performance.work import Floats, Work
from wpk.targets.target import Target

ACHIEVED_L2 = 0.48
"""Share of L2's peak that reading reaches: 4.9 of 10.1e12, measured on an H200 over 40 MB."""

ACHIEVED_GLOBAL = 0.93
"""Share of global memory's peak that reading reaches: 4.46 of 4.8e12, measured on an H200."""

OVERLAP = 4
"""Order of the norm: two equal limits cost 1.19 of one, a limit half as large 1.015."""


def estimate(work: Work, bound: Bound, target: Target, passes: Floats | float = 1.0) -> Floats:
    """Predicted seconds of each schedule; infinite where not one block fits an SM.

    Args:
        work: What the schedules make the GPU do.
        bound: The problem's bound on this target; no estimate lies under it.
        target: The GPU.
        passes: Passes of a shared memory load (`SharedCost.passes`).
    """
    rates = StepRates.of(work, target)
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
    seconds = _overlapped(waves / target.clock, l2, np.full(l2.shape, beyond))
    total: Floats = target.launch_seconds + np.maximum(seconds, bound.seconds)
    return np.where(resident > 0, total, np.inf)


def _wave(work: Work, held: Floats, rates: StepRates, passes: Floats | float) -> Floats:
    """Cycles of one wave with ``held`` blocks an SM."""
    step = _overlapped(
        rates.arithmetic(held),
        held * rates.loads * passes,
        held * rates.bytes / L2_PORT_BYTES,
        rates.waiting(),
    )
    cycles: Floats = 2 * FILL_CYCLES + np.maximum(work.steps, 1) * (step + SYNC_CYCLES)
    return cycles


def _overlapped(*limits: Floats) -> Floats:
    worst = np.maximum(np.maximum.reduce(limits), 1e-30)
    total: Floats = worst * sum((limit / worst) ** OVERLAP for limit in limits) ** (1 / OVERLAP)
    return total
