"""What a GPU is, read off its driver, and what of it differs from the table of targets."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wpk.targets import Target

_CLOCK_TOLERANCE = 0.01
"""Data sheets round boost clocks to tens of MHz."""

_EMBEDDED = ((8, 7), (11, 0))
"""Compute capabilities of Jetson's GPUs that CUDA 13 compiles for."""

_VERSION_FILE = Path("/proc/driver/nvidia/version")
_VERSION = re.compile(r"\b\d{3,}\.\d+(?:\.\d+)?\b")


@dataclass(frozen=True)
class GpuFacts:
    """A GPU of this machine.

    Attributes:
        name: As the driver says it, with its architecture, e.g. ``NVIDIA H200 (sm_90)``.
        capability: Major and minor compute capability.
        driver: Its driver's own version, e.g. ``580.159.03``.
        cuda_api: Version of CUDA that its driver supports, e.g. ``13.0``.
        sm_count: Streaming multiprocessors; fewer than the chip's where it is shared (MIG).
        clock: Highest clock in hertz.
        l2_bytes: Size of the L2 cache.
        shared_block_bytes: Shared memory that one block may ask for.
    """

    name: str
    capability: tuple[int, int]
    driver: str
    cuda_api: str
    sm_count: int
    clock: float
    l2_bytes: int
    shared_block_bytes: int


def read_facts(driver: Any, device: Any) -> GpuFacts:
    """Ask for them.

    Args:
        driver: ``pycuda.driver``.
        device: Its ``Device``.
    """
    names = driver.device_attribute
    major, minor = device.compute_capability()
    version = driver.get_driver_version()
    cuda_api = f"{version // 1000}.{version % 1000 // 10}"
    return GpuFacts(
        f"{device.name()} (sm_{major}{minor})",
        (major, minor),
        read_driver_version(cuda_api),
        cuda_api,
        device.get_attribute(names.MULTIPROCESSOR_COUNT),
        device.get_attribute(names.CLOCK_RATE) * 1e3,
        device.get_attribute(names.L2_CACHE_SIZE),
        device.get_attribute(names.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    )


def differences(facts: GpuFacts, target: Target) -> tuple[str, ...]:
    """Where a GPU is not what the table says, in words."""
    pairs = (
        ("multiprocessors", facts.sm_count, target.sm_count),
        ("bytes of L2", facts.l2_bytes, target.l2_bytes),
        ("bytes of shared memory a block", facts.shared_block_bytes, target.max_shared_block),
    )
    found = [f"{seen} {what}, not {known}" for what, seen, known in pairs if seen != known]
    if abs(facts.clock / target.clock - 1) > _CLOCK_TOLERANCE:
        found.append(f"{facts.clock / 1e6:.0f} MHz, not {target.clock / 1e6:.0f}")
    return tuple(found)


def executes(arch: str, capability: tuple[int, int]) -> bool:
    """Whether a GPU executes machine code.

    That of ``sm_XY`` runs on X.Y and later minor versions of X; with the suffix ``a`` on X.Y alone,
    with ``f`` as without one. Jetson's GPUs and others do not execute each other's (CUDA programming
    guide, "Binary compatibility").

    Args:
        arch: What the code was built for, e.g. ``sm_90a``.
        capability: Major and minor compute capability of the GPU.
    """
    digits = arch.removeprefix("sm_")
    number = digits.rstrip("af")
    built = int(number[:-1]), int(number[-1])
    if digits.endswith("a") or built in _EMBEDDED or capability in _EMBEDDED:
        return built == capability
    return built[0] == capability[0] and built[1] <= capability[1]


def read_driver_version(cuda_api: str, version_file: Path = _VERSION_FILE) -> str:
    """The driver's own version, e.g. ``580.159.03``.

    The kernel module says it in ``/proc``; where that is hidden (WSL, some sandboxes), ``nvidia-smi``
    does. Where neither answers, the version of CUDA that it supports stands for it.

    Args:
        cuda_api: That version, e.g. ``13.0``.
        version_file: Where the kernel module says it.
    """
    try:
        found = _VERSION.search(version_file.read_text())
    except OSError:
        found = _VERSION.search(_ask_nvidia_smi())
    return found.group() if found else f"CUDA {cuda_api}"


def _ask_nvidia_smi() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout
