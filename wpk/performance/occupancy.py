"""How many blocks of a kernel an SM holds at once."""

from __future__ import annotations

import numpy as np

from wpk.performance.work import Floats, Work
from wpk.targets import Target

WARP = 32
REGISTERS_A_THREAD = 255
"""Registers that an instruction can address; more spill."""

SCHEDULERS = 4
"""Warp schedulers of an SM, each with a quarter of its units and of its registers (Volta and later, whitepapers)."""

_REGISTER_UNIT = 8  # registers a thread are allocated in eights (256 a warp; CUDA occupancy data)
_RESERVED_SHARED = (
    1024  # bytes of shared memory that the system takes of each block, sm_80 and later
)


def resident_blocks(work: Work, target: Target) -> Floats:
    """Count the blocks that an SM holds at once: the least of what each of its resources allows.

    Threads are allocated in warps, registers a thread in eights. A scheduler's registers hold whole warps (as the toolkit's
    cuda_occupancy.h counts them): 5 warps of 168 registers are there twice, with three on each scheduler, of 176 once. 0 where
    not even one block fits, or where a thread would need more registers than an instruction can address.
    """
    warps = np.ceil(work.threads / WARP)
    registers = np.ceil(np.maximum(work.registers, 1) / _REGISTER_UNIT) * _REGISTER_UNIT
    reserved = _RESERVED_SHARED if target.has_async_copy else 0
    shared = work.shared_bytes + reserved
    by_shared = np.floor(target.max_shared_sm / np.maximum(shared, 1))
    held = SCHEDULERS * np.floor(target.registers_sm / (SCHEDULERS * registers * WARP))
    by_registers = np.floor(held / warps)
    by_threads = np.floor(target.max_threads_sm / (warps * WARP))
    by_threads = np.minimum(by_threads, float(target.max_blocks_sm))
    resident = np.minimum(np.minimum(by_threads, by_registers), by_shared)
    fits = (work.registers <= REGISTERS_A_THREAD) & (work.threads <= target.max_threads_block)
    fits &= work.shared_bytes <= target.max_shared_block
    return np.where(fits, resident, 0.0)
