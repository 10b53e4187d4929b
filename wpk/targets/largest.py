"""The largest GPU that an architecture could have: a schedule that is illegal on it is illegal on all."""

from __future__ import annotations

from dataclasses import replace

from wpk.dtypes import Precision
from wpk.targets.table import TARGETS
from wpk.targets.target import Target

_MANY = 4096
"""Its multiprocessors: as many as a target file may claim."""

_SHARED_BYTES = 227 * 1024
_REGISTERS = 2**16
_THREADS = 1024
# CUDA C++ programming guide, "Technical specifications per compute capability": 5.0 to 12.x.


def largest_target(arch: str) -> Target:
    """A stand-in for a GPU of which only the architecture is known, e.g. that of a plan.

    Args:
        arch: ``sm_XY``, with or without a suffix.
    """
    digits = arch.removeprefix("sm_").rstrip("af")
    capability = int(digits[:-1] or 0), int(digits[-1])
    older = [each for each in TARGETS if each.capability <= capability]
    base = max(older or TARGETS, key=lambda each: each.capability)
    return replace(
        base,
        name=arch,
        arch=arch,
        capability=capability,
        sm_count=_MANY,
        peak_ordinary=1.0,  # so that no product is left to the ordinary cores for being faster there
        peak_tensor=tuple(
            (precision, 1e15) for precision in Precision if precision.unit is precision
        ),
        max_shared_block=_SHARED_BYTES,
        max_shared_sm=_SHARED_BYTES,
        max_threads_block=_THREADS,
        registers_sm=_REGISTERS,
    )
