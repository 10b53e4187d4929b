"""The estimate: predicted seconds of each schedule, by which those that the score left are ranked.

    estimate = launch + max(bound, | | waves, L2 |, global memory |) - early

Waves, L2 and the norms are those of `wpk.performance.waves`. What passes straight to registers crosses L2 and global
memory at once: there the slower of the two counts.
"""

from __future__ import annotations

import numpy as np

from wpk.performance.bound import Bound
from wpk.performance.units import ordinary_peak
from wpk.performance.waves import Grids, overlapped
from wpk.performance.work import Floats, Work
from wpk.problems import Problem
from wpk.targets import Target

EARLY_SECONDS = 0.65e-6
"""What a kernel saves that begins before the one in front of it has ended: 0.6 to 0.9 us, measured on an
H200 in chains of equal kernels."""

ACHIEVED_GLOBAL = 0.93
"""Share of global memory's peak that reading reaches: 4.46 of 4.8e12, measured on an H200."""

ACHIEVED_STRAIGHT = 0.97
"""The same straight to registers, beside what the norm adds for the waves. Fitted to four products in fp16 by gemm_skinny on
an H100, in chains there and back: 1 x 25088 x 4096 68.5 us, 1 x 4096 x 4096 11.9, 1 x 4096 x 11008 31.1,
4 x 4096 x 4096 13.3. Estimates of the models' best schedules are 0.99 to 1.01 times these."""


SWEPT = 2.0
"""Bytes beyond L2 that each byte over its size takes along: what is swept over in turns is gone when it is wanted, and of twice
its size nothing is left. An assumption, which ResNet-50's 64->256 at 56 x 56 (batch 32, 116 MB) and GPT-2's last product
(103 MB) bear out on an H100."""


def estimate(work: Work, bound: Bound, target: Target, passes: Floats | float = 1.0) -> Floats:
    """Return the predicted seconds of each schedule; infinite where not one block fits an SM.

    Args:
        work: What the schedules make the GPU do.
        bound: The problem's bound on this target; no estimate lies under it.
        target: The GPU.
        passes: Passes of a shared memory load (`SharedCost.passes`).
    """
    return estimate_of(Grids.of(work, target, passes), bound)


def estimate_of(grids: Grids, bound: Bound) -> Floats:
    """Return the predicted seconds of schedules whose grids were timed, as `estimate` does."""
    work, target, l2 = grids.work, grids.target, grids.l2
    over = bound.bytes - target.l2_bytes
    beyond = max(0.0, min(bound.bytes, SWEPT * over), bound.streamed_bytes)
    achieved = ACHIEVED_STRAIGHT if work.straight else ACHIEVED_GLOBAL
    memory = np.full(l2.shape, beyond / (target.global_bandwidth * achieved))
    if work.straight:
        seconds = overlapped(grids.waves, np.maximum(l2, memory))
    else:
        seconds = overlapped(grids.seconds, memory)
    total: Floats = target.launch_seconds + np.maximum(seconds, bound.seconds)
    return total - np.where(work.early, EARLY_SECONDS, 0.0)


def least_possible(
    problem: Problem, bound: Bound, target: Target, *, on_tensor_cores: bool
) -> float:
    """Return the seconds that no estimate of any schedule lies under, before one of them is looked at.

    No unit computes faster than at its peak, and an estimate is at least the launch and what the unit takes for the
    products: on the ordinary cores alone that may be many times the problem's bound.

    Args:
        problem: What is computed.
        bound: Its bound on the target.
        target: The GPU.
        on_tensor_cores: Whether the schedules multiply on tensor cores (`ScheduleTemplate.on_tensor_cores`).
    """
    seconds = bound.seconds
    if not on_tensor_cores:
        seconds = max(seconds, problem.traffic().products / ordinary_peak(problem.numbers, target))
    return target.launch_seconds + seconds - EARLY_SECONDS
