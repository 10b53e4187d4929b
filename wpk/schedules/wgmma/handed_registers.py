"""Registers of consumer warpgroups, some of which a producer may hand over (handed_registers.cuh)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Floats
from wpk.schedules.limit import Limit
from wpk.schedules.wgmma.group import GROUP_THREADS

_LAUNCHED = {1: 255, 2: 168, 3: 128}
"""Registers that a thread of a block of so many consumers can have: ptxas sets them aside by whole warpgroups, and
the producer is in one more."""

_HANDED = {1: 255, 2: 240, 3: 160}
"""That a consumer's thread can have where the producer is a whole warpgroup, and hands over what it does not need."""

MOST_GROUPS = max(_HANDED)
"""Consumer warpgroups of a block."""


Counts = NDArray[np.int64] | Floats


def threads(groups: Counts, handed: Counts, beside: Counts | int) -> Floats:
    """Count the threads of a block.

    Args:
        groups: Its consumer warpgroups.
        handed: Registers that a consumer's thread is handed; where there are any, the producer is a whole warpgroup.
        beside: Threads beside the consumers where there are none.
    """
    more = np.where(handed > 0, GROUP_THREADS, beside)
    count: Floats = (groups * GROUP_THREADS + more).astype(np.float64)
    return count


def handed(needed: Counts, groups: Counts) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs.

    Args:
        needed: Registers of a consumer's thread.
        groups: Consumer warpgroups of a block.
    """
    launched, handed = _by_groups(groups, _LAUNCHED), most(groups)
    hands = (needed > launched) & (handed > launched)
    counted: NDArray[np.int64] = np.where(hands, handed, 0)
    return counted


def launched(needed: Counts, groups: Counts) -> Floats:
    """Count the registers with which a thread begins."""
    registers: Floats = np.minimum(needed, _by_groups(groups, _LAUNCHED)).astype(np.float64)
    return registers


def most(groups: Counts) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread can have."""
    return _by_groups(groups, _HANDED)


def limits(needed: str) -> tuple[Limit, ...]:
    """Return what consumers may need, as limits say it."""
    return tuple(
        Limit(
            f"warpgroups != {groups} or {needed} <= {most}",
            f"a thread of {groups} warpgroups has at most {most} registers: more would spill",
        )
        for groups, most in _HANDED.items()
    )


def _by_groups(groups: Counts, registers: Mapping[int, int]) -> NDArray[np.int64]:
    """Of each schedule by its warpgroups; those that a block cannot have count as the last."""
    table = np.asarray([registers[max(1, count)] for count in range(MOST_GROUPS + 1)])
    found: NDArray[np.int64] = table[np.clip(np.asarray(groups, np.int64), 0, MOST_GROUPS)]
    return found
