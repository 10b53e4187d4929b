"""Which architectures the compiler builds for, and words for those it does not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from wpk.errors import TargetError

_ARCH = re.compile(r"sm_(\d+)[af]?")
_FIRST_TURING = 75


def check_arch(arch: str, supported: Sequence[int]) -> None:
    """Refuse an architecture that this NVRTC has no code generator for.

    Args:
        arch: As the compiler spells it, e.g. ``sm_90a``.
        supported: What ``nvrtcGetSupportedArchs`` lists, e.g. ``(75, 80, 90)``.

    Raises:
        TargetError: misspelt, or not supported.
    """
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise TargetError(
            f"{arch!r} is no GPU architecture",
            fix="write it as the compiler does, e.g. sm_80 or sm_90a",
        )
    number = int(match[1])
    if number in supported:
        return
    listed = ", ".join(f"sm_{known}" for known in sorted(supported))
    if number < _FIRST_TURING <= min(supported, default=0):
        raise TargetError(
            f"CUDA 13 no longer builds for {arch} (Volta and older)",
            fix="choose a newer target; P100 and V100 are known to the performance models only",
        )
    raise TargetError(
        f"the installed NVRTC does not build for {arch}, only for {listed}",
        fix="choose one of these, or install a newer nvidia-cuda-nvrtc",
    )
