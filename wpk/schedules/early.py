"""Programmatic dependent launch, here called early launch: schedules have it as the parameter ``early``.

early_launch.cuh says what kernels do for it.
"""

from wpk.launch import EARLY_LAUNCH
from wpk.schedules.limit import Limit
from wpk.targets import Target

EARLY = "early"
"""The parameter's name. Both of its values are legal where the target has programmatic dependent launch."""

_CAPABILITY = (9, 0)
"""The first compute capability that has programmatic dependent launch."""


def early_axis(target: Target) -> tuple[int, ...]:
    """Return the values of ``early`` to try: one, so that spaces stay as large as they were.

    Kernels that were measured on an H200 both ways (conv_wgmma's and gemm_wgmma's) took 0.6 to 0.9 us
    less when launched early, whatever their tiles; the other value is legal all the same.
    """
    return (1,) if target.capability >= _CAPABILITY else (0,)


EARLY_LIMIT = Limit("early in (0, 1)", "early is 0 or 1")
"""The limit of every schedule's ``early``."""


def early_limits(target: Target) -> tuple[Limit, ...]:
    """Return the limits of the target: ``early`` is 1 only where it has programmatic dependent launch."""
    if target.capability >= _CAPABILITY:
        return ()
    return (Limit("early == 0", f"{target.name} cannot launch kernels early"),)


def launch_attributes(early: int) -> tuple[str, ...]:
    """Return the attributes of the launch of a schedule with this ``early``."""
    return (EARLY_LAUNCH,) if early else ()
