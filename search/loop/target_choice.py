"""Which GPU a plan is compiled for."""

from pathlib import Path

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.search.loop.measuring import target_here
from wpk.targets import (
    Target,
    find_target,
    load_target,
    require_compilable,
    why_precision_unsupported,
)


def choose_target(name: str, precision: Precision) -> Target:
    """The GPU to compile for.

    Args:
        name: Of a known target, its ``sm_XY``, a target file, or ``auto``: the GPU of this machine.
        precision: What it must be able to do.

    Raises:
        TargetError: It is unknown, cannot be compiled for, or lacks the precision.
    """
    if name == "auto":
        target = target_here()
    elif name.endswith((".json", ".toml")):
        target = load_target(Path(name))
    else:
        target = find_target(name)
    require_compilable(target)
    reason = why_precision_unsupported(target, precision)
    if reason is not None:
        raise TargetError(reason, fix="choose another --precision or another --target")
    return target
