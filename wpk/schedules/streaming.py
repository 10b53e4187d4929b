"""Work of kernels that stream: no operand passes through shared memory for reuse.

DeepCuts' rows for pooling and element-wise operations (tables 6 and 8), adapted: the paper's
kernels fetch every input to shared memory first; these load to registers, so the loads of table 7
are none (N_load = 0, SMRatio = 1), except where a template says how many it has.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.performance import Floats, Work
from wpk.schedules.strided import SECTOR_BYTES
from wpk.schedules.template import Schedule
from wpk.targets import Target

_BANK_BYTES = 4


@dataclass(frozen=True)
class VectorSchedule(Schedule):
    """Parameters of kernels in which every thread computes one vector of the output.

    Attributes:
        vector: Neighbouring elements (channels, where pixels are computed) of a thread.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    threads: int
    early: int = 0


@dataclass(frozen=True)
class Stream:
    """What a streaming kernel does; arrays have one entry a schedule, totals are of the whole grid.

    Attributes:
        element_bytes: Bytes of an input element.
        flops: Operations in all; a moved element counts as one, as table 6 has it.
        loads: Bytes that all blocks load.
        stores: Bytes that all blocks store.
        blocks: Thread blocks.
        threads: Threads of a block.
        registers: Estimated registers of a thread.
        steps: Dependent loads of a thread, one after the other.
        stages: Loads in flight at once.
        shared_bytes: Shared memory of a block.
        thread_loads: Shared memory loads of a thread.
        early: Whether the launch is a programmatic dependent one.
        slots: Issue slots of a thread besides its operations.
        numbers: What is computed in.
    """

    element_bytes: int
    flops: Floats | float
    loads: Floats | float
    stores: Floats | float
    blocks: Floats
    threads: Floats
    registers: Floats | float
    steps: Floats | float = 1.0
    stages: Floats | float = 1.0
    shared_bytes: Floats | float = 0.0
    thread_loads: Floats | float = 0.0
    early: NDArray[np.bool_] | bool = False
    slots: Floats | float = 0.0
    numbers: DType = DType.FP32

    def work(self, target: Target) -> Work:
        """Return the same, a block's share each, as the models take it."""
        blocks = np.asarray(self.blocks, np.float64)

        def column(value: Floats | float) -> Floats:
            return np.broadcast_to(np.asarray(value, np.float64), blocks.shape).copy()

        threads = column(self.threads)
        block_flops = column(self.flops) / blocks
        return Work(
            unit=None,
            element_bytes=self.element_bytes,
            blocks=blocks,
            threads=threads,
            shared_bytes=column(self.shared_bytes),
            registers=column(self.registers),
            block_flops=block_flops,
            thread_flops=block_flops / threads,
            block_transactions=column(self.loads) / blocks / target.transaction_bytes,
            thread_loads=column(self.thread_loads),
            store_bytes=column(self.stores) / blocks,
            steps=column(self.steps),
            stages=column(self.stages),
            early=np.broadcast_to(np.asarray(self.early), blocks.shape),
            thread_slots=column(self.slots),
            numbers=self.numbers,
        )


def narrow_access(vector: Floats, element_bytes: int) -> Floats:
    """Return how much more the load port is busy when lanes ask for less than a bank's 4 bytes each.

    A warp's access takes the port for a pass of 128 bytes, however little of it is asked for.
    """
    factor: Floats = np.maximum(1.0, _BANK_BYTES / (vector * element_bytes))
    return factor


def short_run(elements: Floats, element_bytes: int) -> Floats:
    """Return how much more memory moves when neighbouring threads read runs shorter than a sector."""
    factor: Floats = np.maximum(1.0, SECTOR_BYTES / (elements * element_bytes))
    return factor


def ceil_divide(total: Floats | int, by: Floats) -> Floats:
    """Return ``ceil(total / by)`` for each schedule."""
    quotients: Floats = np.ceil(total / by)
    return quotients
