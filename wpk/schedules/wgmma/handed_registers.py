"""Registers of consumer warpgroups, some of which a producer may hand over (HandedRegisters of boxed_rows.cuh)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats
from wpk.schedules.limit import Limit
from wpk.schedules.wgmma.costs import GROUP_THREADS, WARP

_LAUNCHED = {1: 255, 2: 168, 3: 128}
"""Registers that a thread of a block of so many consumers can have: ptxas sets them aside by whole warpgroups, and
the producer is in one more."""

_HANDED = {1: 255, 2: 240, 3: 160}
"""That a consumer's thread can have where the producer is a whole warpgroup, and hands over what it does not need."""

MOST_GROUPS = max(_HANDED)
"""Consumer warpgroups of a block."""


def threads(needed: NDArray[np.int64], columns: Columns) -> Floats:
    """Count the threads of a block: its consumers, and a producer's warp, or its warpgroup where that hands registers over.

    Args:
        needed: Registers of a consumer's thread.
        columns: Schedules, with ``warpgroups``.
    """
    producer = np.where(_hands(needed, columns), GROUP_THREADS, WARP)
    count: Floats = (columns["warpgroups"] * GROUP_THREADS + producer).astype(np.float64)
    return count


def handed(needed: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs."""
    counted: NDArray[np.int64] = np.where(_hands(needed, columns), _by_groups(columns, _HANDED), 0)
    return counted


def launched(needed: NDArray[np.int64], columns: Columns) -> Floats:
    """Count the registers with which a block begins."""
    registers: Floats = np.minimum(needed, _by_groups(columns, _LAUNCHED)).astype(np.float64)
    return registers


def limits(needed: str) -> tuple[Limit, ...]:
    """Return what consumers may need, as limits say it."""
    return tuple(
        Limit(
            f"warpgroups != {groups} or {needed} <= {most}",
            f"a thread of {groups} warpgroups has at most {most} registers: more would spill",
        )
        for groups, most in _HANDED.items()
    )


def _hands(needed: NDArray[np.int64], columns: Columns) -> NDArray[np.bool_]:
    most, more = (_by_groups(columns, registers) for registers in (_LAUNCHED, _HANDED))
    hands: NDArray[np.bool_] = (needed > most) & (more > most)
    return hands


def _by_groups(columns: Columns, registers: Mapping[int, int]) -> NDArray[np.int64]:
    """Of each schedule by its warpgroups; those that a block cannot have count as the last."""
    table = np.asarray([registers[max(1, groups)] for groups in range(MOST_GROUPS + 1)])
    found: NDArray[np.int64] = table[np.clip(columns["warpgroups"], 0, MOST_GROUPS)]
    return found
