"""What schedules make a GPU do: the one thing that templates tell the performance models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, Precision

Columns = dict[str, NDArray[np.int64]]
"""Schedules as columns: parameter name to one value a schedule; all of the same length."""

Floats = NDArray[np.float64]

Rows = NDArray[np.int64]
"""Places of some schedules among all: indices, in any order."""

_Entries = TypeVar("_Entries")


def at_rows(entries: _Entries, rows: Rows) -> _Entries:
    """Return a dataclass of arrays, one entry a schedule each, for some of the schedules; what is no such array stays."""
    # mypy does not see that what is passed is a dataclass.
    arrays: dict[str, Any] = {
        name: value.take(rows)
        for name, value in vars(entries).items()
        if isinstance(value, np.ndarray) and value.ndim
    }
    return replace(entries, **arrays)  # type: ignore[type-var]


@dataclass(frozen=True)
class Work:
    """Work of each of a set of schedules of one problem; arrays have one entry a schedule.

    Attributes:
        unit: The tensor-core precision used, or None for the ordinary cores.
        element_bytes: Bytes of an input element (SIZE_element).
        blocks: Thread blocks of the grid (N_TB).
        threads: Threads of a block.
        shared_bytes: Static and dynamic shared memory of a block.
        registers: Estimated registers of a thread.
        block_flops: Operations of a block, padding included (COMP_block).
        thread_flops: Operations of a thread (COMP_thread).
        block_transactions: Global memory transactions that load a block's input (NUM_trans).
        thread_loads: Shared memory load instructions of a thread (N_load).
        store_bytes: Bytes that a block writes to global memory, and reads as operands of what it writes.
        steps: Dependent load-compute iterations of a block (1 where everything is loaded at once).
        stages: Iterations whose loads are in flight at once (1: no prefetching).
        combined_bytes: Partial sums that one block reads and adds after its steps, where a
            reduction is split among blocks; 0 where it is not. One number is that of all, here and
            below.
        in_cluster: Whether the parts meet in the shared memory of a cluster, not in global memory.
        early: Whether the kernel begins before the one in front of it has ended.
        thread_slots: Issue slots of a thread besides its operations and loads: conversions.
        slots_beside: Whether these are issued while the unit multiplies, which then does not wait for them; what takes
            other units than the schedulers meanwhile is `beside_cycles`.
        end_slots: Issue slots of a thread behind its last step, of all of its tiles: what is computed of sums
            before they are stored.
        end_fetches: Loads that a thread waits for behind its last step, one after another: operands of what is stored.
        chain_cycles: Cycles that a block takes for a step however little it computes: one load after
            another from shared memory that products wait for.
        beside_cycles: Cycles of an SM that threads of a block compute while products of its other warpgroups, or of
            other blocks, go on: weights of attention.
        turns: Tiles that a block computes one after another, where blocks are persistent; else 1.
        numbers: What the ordinary cores compute in.
        by_warpgroups: Warpgroups multiply what tensor copies brought (wgmma, TMA): threads issue
            neither loads nor their addresses.
        straight: Threads load from memory into registers, and read nothing twice: it need not pass through
            shared memory.
        multicast: Whether blocks of a cluster copy for each other.
        cluster_blocks: Blocks of a cluster.
    """

    unit: Precision | None
    element_bytes: int
    blocks: Floats
    threads: Floats
    shared_bytes: Floats
    registers: Floats
    block_flops: Floats
    thread_flops: Floats
    block_transactions: Floats
    thread_loads: Floats
    store_bytes: Floats
    steps: Floats
    stages: Floats
    combined_bytes: Floats | float = 0.0
    in_cluster: NDArray[np.bool_] | bool = False
    early: NDArray[np.bool_] | bool = False
    thread_slots: Floats | float = 0.0
    slots_beside: bool = False
    end_slots: Floats | float = 0.0
    end_fetches: Floats | float = 0.0
    chain_cycles: Floats | float = 0.0
    beside_cycles: Floats | float = 0.0
    turns: Floats | float = 1.0
    numbers: DType = DType.FP32
    by_warpgroups: bool = False
    straight: bool = False
    multicast: NDArray[np.bool_] | bool = False
    cluster_blocks: Floats | float = 1.0


@dataclass(frozen=True)
class SharedAccess:
    """One shared-memory load of a warp: what each lane touches.

    Attributes:
        addresses: Byte offset in shared memory of each lane's access (32 entries, -1 for inactive).
        bytes: Bytes of each lane's access: 2, 4, 8 or 16.
        count: How often a warp makes this access in one step.
    """

    addresses: tuple[int, ...]
    bytes: int
    count: int
