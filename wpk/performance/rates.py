"""What an SM does in a cycle, and how long one step of a block takes: shared by score and estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.performance.occupancy import SCHEDULERS, WARP
from wpk.performance.units import ordinary_peak, tensor_peak
from wpk.performance.work import Floats, Work
from wpk.targets import Target

FILL_CYCLES = 300
"""Latency of a load that L2 answers: 263 cycles on an H100 (arXiv 2402.13499), and a queue; fitted."""

SYNC_CYCLES = 140
"""What a step adds that nothing hides: barrier, first shared memory loads, addresses; fitted."""

COPY_CYCLES, COPY_ENDS_CYCLES = 400, 2300
"""Of warpgroups that multiply what tensor copies bring: what a stage of the pipeline waits for its copy, and
what a block takes before its first product and after its last: barriers, tensor maps, the first copy,
the store; fitted to kernels measured on an H100 and an H200 (`wpk.performance.waves`). A step adds nothing else."""

TURN_CYCLES = 450
"""What a persistent block takes between two tiles: the store; the other ends are the first tile's alone. Half and twice
as much fit the kernels of `wpk.performance.waves` as well."""

LOAD_SLOTS = 1.5
"""Issue slots of a shared memory load, with its share of addresses; fitted."""

GATHER_SLOTS = 10.0
"""Issue slots to bring 128 bytes from L2 to shared memory: bounds, addresses, both accesses; fitted.

The four fitted numbers are those under which the estimates of 16 problems whose whole spaces were
measured on an H200 (tests/replay) differ least from the times; 11 were held out
(benchmarks/study_problems.py)."""

STRAIGHT_SLOTS = 3.5
"""The same into registers: 8 accesses of 16 bytes and 105 addresses and moves for 4096 bytes of a warp, in the machine
code of gemm_skinny (docs/decisions/0057-few-rows.md)."""

L2_PORT_BYTES = 64
"""Bytes an SM takes from L2 in a cycle (Volta and later; arXiv 1804.06826)."""

_WARP_BYTES = 128.0
"""Of a warp's load of a word a lane."""

WARP_MMA_SHARE = 0.62
"""Share of Hopper's tensor peak that warp-wide products reach, wgmma aside (arXiv 2402.13499)."""

WARPGROUP_SHARE = 0.9
"""The share that products of warpgroups reach while they run: cuBLAS's largest products reach 770 to 800 of 990 TFLOP/s
on an H200, beginnings and ends included, which count apart here."""


@dataclass(frozen=True)
class StepRates:
    """One step of a block against what the SM does in a cycle; arrays have one entry a schedule.

    Attributes:
        operations: Of the SM's unit in a cycle.
        slots: Issue slots of one step of a block besides its operations.
        slots_beside: Whether they are issued while the unit computes the operations.
        end_slots: Issue slots of a block behind its last step.
        flops: Of one step of a block.
        bytes: One step of a block takes from L2.
        loads: Shared memory loads of one step of a block, counted in warps.
        warps: Of a block.
        stages: Steps whose loads are in flight at once.
        sync: Cycles that a step adds.
        latency: Cycles until what a step loads is there.
        turning: Cycles that a step adds to a block's own way, of what lies between two of its tiles.
        chain: Cycles of a block's own way through a step besides.
        beside: Cycles of the SM for one step of a block, beside the unit's.
        ends: Cycles of a block before its first step and after its last.
    """

    operations: float
    slots: Floats
    slots_beside: bool
    end_slots: Floats
    flops: Floats
    bytes: Floats
    loads: Floats
    warps: Floats
    stages: Floats
    sync: float
    latency: float
    turning: Floats
    chain: Floats | float
    beside: Floats
    ends: float

    @classmethod
    def of(cls, work: Work, target: Target) -> StepRates:
        """Return the rates of schedules on a target."""
        peak = unit_peak(work, target)
        if work.unit is not None and target.capability >= (9, 0):
            peak *= WARPGROUP_SHARE if work.by_warpgroups else WARP_MMA_SHARE
        warps = np.ceil(work.threads / WARP)
        steps = np.maximum(work.steps, 1)
        moved = work.block_transactions * target.transaction_bytes / steps
        loads = work.thread_loads * warps / steps
        slots = work.thread_slots * warps / steps
        if not work.by_warpgroups:
            gather = STRAIGHT_SLOTS if work.straight else GATHER_SLOTS
            slots = slots + LOAD_SLOTS * loads + gather * moved / _WARP_BYTES
        return cls(
            operations=peak / (target.sm_count * target.clock),
            slots=slots + np.zeros_like(loads),
            slots_beside=work.slots_beside,
            end_slots=work.end_slots * warps,
            flops=work.block_flops / steps,
            bytes=moved,
            loads=loads,
            warps=warps,
            stages=np.maximum(work.stages, 1),
            sync=0.0 if work.by_warpgroups else SYNC_CYCLES,
            latency=COPY_CYCLES if work.by_warpgroups else FILL_CYCLES,
            turning=TURN_CYCLES * (np.asarray(work.turns) - 1) / steps,
            chain=work.chain_cycles,
            beside=work.beside_cycles / steps,
            ends=COPY_ENDS_CYCLES if work.by_warpgroups else 2 * FILL_CYCLES,
        )

    def fed(self, held: Floats) -> Floats:
        """Return the share of the SM's schedulers that the warps of ``held`` blocks occupy."""
        share: Floats = np.minimum(1.0, held * self.warps / SCHEDULERS)
        return share

    def arithmetic(self, held: Floats) -> Floats:
        """Return the cycles that one step of each of ``held`` blocks occupies the schedulers and the unit."""
        operations, slots = self.flops / self.operations, self.slots / SCHEDULERS
        alone = np.maximum(operations, slots) if self.slots_beside else operations + slots
        cycles: Floats = held * alone / self.fed(held)
        return cycles

    def ending(self, held: Floats) -> Floats:
        """Return the cycles that what lies behind the last steps of ``held`` blocks occupies the schedulers."""
        cycles: Floats = held * self.end_slots / SCHEDULERS / self.fed(held)
        return cycles

    def waiting(self) -> Floats:
        """Return the cycles between two steps of a block on account of latency, shared among the stages.

        One stage waits for every load; n stages wait once in n steps. Between two tiles nobody waits for
        loads, but for the store.
        """
        own = self.arithmetic(np.ones_like(self.warps)) + self.sync
        cycles: Floats = (self.latency + own) / self.stages + self.turning + self.chain
        return cycles


def unit_peak(work: Work, target: Target) -> float:
    """Return the operations per second of the unit that the schedules use.

    A precision without tensor cores on this GPU counts as the ordinary cores; templates refuse it.
    """
    tensor = None if work.unit is None else tensor_peak(work.unit, target)
    return ordinary_peak(work.numbers, target) if tensor is None else tensor
