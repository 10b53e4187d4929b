"""Shared-memory bank conflicts of a warp, counted as the hardware serves them.

Shared memory has 32 banks, 4 bytes wide (CUDA C++ Programming Guide, shared memory of compute
capability 5.x and later). A warp's access is served in phases: all 32 lanes at once up to 4 bytes a
lane, half-warps at 8, quarter-warps at 16. In a phase every bank serves one word a pass; lanes that
read the same word share it. So a phase takes as many passes as its busiest bank has distinct words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpk.performance.work import SharedAccess

BANKS = 32
WORD_BYTES = 4
WARP = 32


@dataclass(frozen=True)
class SharedCost:
    """What a warp's shared memory loads cost on average.

    Attributes:
        coefficient: COEF_bc (DeepCuts section 4.2): passes relative to those without conflicts. 1
            where nothing conflicts or nothing is loaded; 32 where all lanes hit one bank's words.
        passes: Passes of a load instruction; a wide one takes several even without conflicts.
    """

    coefficient: float
    passes: float


def phases(access_bytes: int) -> int:
    """Count the phases of a warp's access: 1 up to 4 bytes a lane, 2 at 8, 4 at 16."""
    return max(1, access_bytes // WORD_BYTES)


def passes(addresses: NDArray[np.int64], access_bytes: int) -> NDArray[np.int64]:
    """Count the passes that warps' accesses take.

    Args:
        addresses: Byte offsets, shape (accesses, 32); -1 for an inactive lane.
        access_bytes: Bytes of each lane's access: 1, 2, 4, 8 or 16.

    Returns:
        Passes of each access, shape (accesses,); 0 where no lane is active.
    """
    count = phases(access_bytes)
    lanes = addresses.reshape(-1, count, WARP // count)
    words = np.where(lanes >= 0, lanes // WORD_BYTES, -1)[..., None] + np.arange(count)
    words = np.where(lanes[..., None] >= 0, words, -1).reshape(len(addresses), count, -1)
    words = np.sort(words, axis=-1)
    fresh = np.ones(words.shape, bool)  # the first occurrence of a word among the sorted ones
    fresh[..., 1:] = words[..., 1:] != words[..., :-1]
    fresh &= words >= 0
    phase = np.arange(words.shape[0] * count).reshape(-1, count, 1) * BANKS
    loads = np.bincount((phase + words % BANKS)[fresh], minlength=words.shape[0] * count * BANKS)
    busiest: NDArray[np.int64] = loads.reshape(-1, count, BANKS).max(axis=-1).sum(axis=-1)
    return busiest


@lru_cache(maxsize=1 << 15)  # schedules that differ elsewhere load alike
def shared_cost(accesses: tuple[SharedAccess, ...]) -> SharedCost:
    """Return what a warp's shared memory loads cost on average, each weighed by its count."""
    taken = least = loads = 0
    for size in sorted({access.bytes for access in accesses}):
        same = [access for access in accesses if access.bytes == size]
        addresses = np.asarray([access.addresses for access in same], np.int64)
        counts = np.asarray([access.count for access in same], np.int64)
        active = (addresses.reshape(len(same), phases(size), -1) >= 0).any(axis=-1).sum(axis=-1)
        taken += int((counts * passes(addresses, size)).sum())
        least += int((counts * active).sum())
        loads += int(counts[active > 0].sum())
    if not loads:
        return SharedCost(coefficient=1.0, passes=1.0)
    return SharedCost(coefficient=taken / least, passes=taken / loads)
