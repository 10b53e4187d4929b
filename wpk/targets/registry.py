"""Find a target by name, and say in words what it cannot do."""

from __future__ import annotations

import difflib

from wpk.dtypes import ASKED, Precision
from wpk.errors import TargetError
from wpk.target_features import TargetFeatures
from wpk.targets.table import TARGETS
from wpk.targets.target import Target

_FIRST_COMPILABLE = (7, 5)
_FIRST_SUFFIXED = (9, 0)

DEFAULTS: dict[str, str] = {
    "sm_75": "rtx2080",
    "sm_80": "a100",
    "sm_86": "rtx3090",
    "sm_89": "rtx4090",
    "sm_90": "h200",
    "sm_120": "rtx5090",
}
"""The target that stands for an architecture which several targets share: the one with most bandwidth of
global memory."""

_CLUSTERS_SINCE = 90
_WARPGROUPS = "sm_90a"

RENAMED = {"sm_101": "sm_110"}
"""Architectures that CUDA 13 calls otherwise than CUDA 12 did: Jetson Thor's."""


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
    arch = RENAMED.get(plain_arch(wanted), plain_arch(wanted))
    matches = [t for t in TARGETS if t.name == wanted or _is_spelt(t, wanted, arch)]
    if not matches:
        raise TargetError(
            f"unknown target {name!r}",
            fix=f"{_similar(wanted)}choose one of {_known()}, or describe the GPU in a target file: "
            "wpk targets h200 --json > gpu.json writes one to begin with",
        )
    default = DEFAULTS.get(arch)
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


def require_precision(target: Target, precision: Precision) -> None:
    """Refuse a precision that matrix-like problems cannot have on a target.

    Raises:
        TargetError: The target lacks it; the fix names those that it has.
    """
    reason = why_precision_unsupported(target, precision)
    if reason is not None:
        offered = [p for p in ASKED if why_precision_unsupported(target, p) is None]
        raise TargetError(
            reason,
            fix=f"choose --precision {' or '.join(offered)} for {target.name}, or another --target",
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


def plain_arch(arch: str) -> str:
    """An architecture without the suffix of its own instructions: ``sm_90`` for ``sm_90a``."""
    return arch.rstrip("af") if arch.startswith("sm_") else arch


def has_clusters(arch: str) -> bool:
    """Return whether blocks share memory on an architecture (sm_90 and later)."""
    return int("".join(filter(str.isdigit, arch))) >= _CLUSTERS_SINCE


def features_of(arch: str) -> TargetFeatures:
    """Return what blocks can do on an architecture; warpgroups multiply by wgmma, which sm_90a alone has."""
    return TargetFeatures(clusters=has_clusters(arch), warpgroups=arch == _WARPGROUPS)


def _is_spelt(target: Target, wanted: str, arch: str) -> bool:
    """Whether ``wanted``, which is ``arch`` without its suffix, is a target's architecture.

    Only from sm_90 on does the compiler know suffixes.
    """
    suffixed = plain_arch(wanted) != wanted
    return plain_arch(target.arch) == arch and (
        not suffixed or target.capability >= _FIRST_SUFFIXED
    )


def _similar(wanted: str) -> str:
    close = difflib.get_close_matches(wanted, [t.name for t in TARGETS], n=2, cutoff=0.7)
    return f"did you mean {' or '.join(close)}? else " if close else ""


def _known() -> str:
    return ", ".join(f"{t.name} ({t.arch})" for t in TARGETS)
