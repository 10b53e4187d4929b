"""Open a device by the name that a person gives."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from wpk.emulator.mode import GUARDED
from wpk.errors import EngineError
from wpk.execution import Device
from wpk.plan.plan import Plan

if TYPE_CHECKING:
    from wpk.libraries.cpu import CpuProcess
    from wpk.libraries.gpu import GpuDevice

DEVICES = ("auto", "gpu", "cpu")

LAUNCH_SECONDS = 120.0
"""Time limit of one kernel on the CPU at the tuned sizes; the slowest of a ResNet-50 takes 2 s."""


def open_device(name: str) -> Device:
    """The device called ``cpu``, ``gpu``, or ``auto``: a GPU where there is one.

    The CPU is the emulator in a process of its own, with guarded memory and a time limit: what a plan
    does there reaches nothing of the process that asks for it.

    Raises:
        EngineError: There is no such device here.
    """
    gpu = _gpu(name)
    if gpu is not None:
        return gpu
    return _cpu()


def open_for_checks(name: str) -> AbstractContextManager[Device]:
    """The device for kernels that may be wrong: on the CPU a child process with a time limit.

    A kernel that hangs, crashes or tramples on memory costs only the child.

    Raises:
        EngineError: There is no such device here.
    """
    gpu = _gpu(name)
    if gpu is not None:
        return gpu
    return _cpu()


def patience(plan: Plan, dims: Mapping[str, int]) -> float:
    """Return how many times longer than at the tuned sizes a kernel may take."""
    return max((dims[name] / tuned for name, tuned in plan.free.items()), default=1.0)


def _cpu() -> CpuProcess:
    from wpk.libraries.cpu import CpuProcess

    return CpuProcess(GUARDED, time_limit_seconds=LAUNCH_SECONDS)


def _gpu(name: str) -> GpuDevice | None:
    """Return the GPU; None where the name asks for the CPU, or for whatever there is and there is no GPU."""
    if name not in DEVICES:
        raise EngineError(f"unknown device {name!r}", fix=f"choose one of {', '.join(DEVICES)}")
    if name == "cpu":
        return None
    from wpk.libraries.gpu import GpuDevice

    try:
        return GpuDevice()
    except EngineError:
        if name == "gpu":
            raise
        return None
