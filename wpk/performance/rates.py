"""What an SM does in a cycle, and how long one step of a block takes: shared by score and estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.performance.occupancy import WARP
from wpk.performance.work import Floats, Work
from wpk.targets.target import Target

SCHEDULERS = 4
"""Warp schedulers of an SM, each with a quarter of its units (Volta and later, whitepapers)."""

FILL_CYCLES = 500
"""Latency of a load: L2 hits take 263 cycles on an H100, misses 480 to 700 (arXiv 2402.13499)."""

SYNC_CYCLES = 30
"""A step's barrier and loop, assumed: a barrier alone takes about 20 (arXiv 1804.06826)."""

L2_PORT_BYTES = 64
"""Bytes an SM takes from L2 in a cycle (Volta and later; arXiv 1804.06826)."""

WARP_MMA_SHARE = 0.62
"""Share of Hopper's tensor peak that warp-wide products reach, wgmma aside (arXiv 2402.13499)."""


@dataclass(frozen=True)
class StepRates:
    """One step of a block against what the SM does in a cycle; arrays have one entry a schedule.

    Attributes:
        operations: Of the SM's unit in a cycle.
        flops: Of one step of a block.
        bytes: One step of a block takes from L2.
        loads: Shared memory loads of one step of a block, counted in warps.
        warps: Of a block.
        stages: Steps whose loads are in flight at once.
    """

    operations: float
    flops: Floats
    bytes: Floats
    loads: Floats
    warps: Floats
    stages: Floats

    @classmethod
    def of(cls, work: Work, target: Target) -> StepRates:
        """The rates of schedules on a target."""
        peak = unit_peak(work, target)
        if work.unit is not None and target.capability >= (9, 0):
            peak *= WARP_MMA_SHARE
        warps = np.ceil(work.threads / WARP)
        steps = np.maximum(work.steps, 1)
        return cls(
            operations=peak / (target.sm_count * target.clock),
            flops=work.block_flops / steps,
            bytes=work.block_transactions * target.transaction_bytes / steps,
            loads=work.thread_loads * warps / steps,
            warps=warps,
            stages=np.maximum(work.stages, 1),
        )

    def fed(self, held: Floats) -> Floats:
        """Share of the SM's schedulers that the warps of ``held`` blocks occupy."""
        share: Floats = np.minimum(1.0, held * self.warps / SCHEDULERS)
        return share

    def arithmetic(self, held: Floats) -> Floats:
        """Cycles that one step of each of ``held`` blocks occupies the unit."""
        cycles: Floats = held * self.flops / (self.operations * self.fed(held))
        return cycles

    def waiting(self) -> Floats:
        """Cycles between two steps of a block on account of latency, shared among the stages.

        One stage waits for every load; n stages wait once in n steps.
        """
        own = self.arithmetic(np.ones_like(self.warps)) + SYNC_CYCLES
        cycles: Floats = (FILL_CYCLES + own) / self.stages
        return cycles


def unit_peak(work: Work, target: Target) -> float:
    """Operations per second of the unit that the schedules use.

    A precision without tensor cores on this GPU counts as the ordinary cores; templates refuse it.
    """
    tensor = None if work.unit is None else target.tensor_peak(work.unit)
    return target.peak_ordinary if tensor is None else tensor
