"""Find a target by name, and say in words what it cannot do."""

from __future__ import annotations

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.targets.table import TARGETS
from wpk.targets.target import Target

_FIRST_COMPILABLE = (7, 5)

DEFAULTS: dict[str, str] = {"sm_90": "h200"}
"""The target that stands for an architecture which several targets share."""


def find_target(name: str) -> Target:
    """The target called ``name``: a short name (``h200``) or an architecture (``sm_90``, ``sm_90a``).

    An architecture that several GPUs share stands for the one in `DEFAULTS`.

    Raises:
        TargetError: Nothing is called so, or it is ``auto``, which takes a GPU's own facts.
    """
    wanted = name.strip().lower()
    if wanted == "auto":
        raise TargetError(
            "target 'auto' takes its facts from a GPU of this machine, and none was read",
            fix=f"name the GPU to compile for, e.g. --target h200 (known: {_known()})",
        )
    matches = [t for t in TARGETS if wanted in (t.name, t.arch, _plain(t.arch))]
    if not matches:
        raise TargetError(
            f"unknown target {name!r}", fix=f"choose one of {_known()}, or give a target file"
        )
    default = DEFAULTS.get(_plain(wanted))
    return next((t for t in matches if t.name == default), matches[0])


def require_compilable(target: Target) -> None:
    """Refuse a target that no present compiler builds for.

    Raises:
        TargetError: The GPU is older than Turing.
    """
    if target.capability < _FIRST_COMPILABLE:
        compilable = ", ".join(t.name for t in TARGETS if t.capability >= _FIRST_COMPILABLE)
        raise TargetError(
            f"{target.description} ({target.arch}) is known to the performance models only: "
            "CUDA 13 builds for sm_75 and later",
            fix=f"choose one of {compilable}",
        )


def why_precision_unsupported(target: Target, precision: Precision) -> str | None:
    """Why matrix-like problems cannot run at a precision on a target, in words; None if they can.

    Tensor-core kernels need the unit and asynchronous copies (cp.async); fp32 needs neither.
    """
    if precision is Precision.FP32:
        return None
    if target.tensor_peak(precision) is None:
        return (
            f"{target.description} ({target.arch}) has no tensor-core product (mma) for {precision}"
        )
    if not target.has_async_copy:
        return (
            f"{precision} kernels copy to shared memory asynchronously (cp.async, sm_80 and later); "
            f"{target.description} is {target.arch}"
        )
    return None


def _plain(arch: str) -> str:
    return arch.rstrip("af") if arch.startswith("sm_") else arch


def _known() -> str:
    return ", ".join(f"{t.name} ({t.arch})" for t in TARGETS)
