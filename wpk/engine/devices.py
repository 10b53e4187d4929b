"""Open a device by the name that a person gives."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from wpk.errors import EngineError
from wpk.execution import Device

if TYPE_CHECKING:
    from wpk.libraries.gpu import GpuDevice

DEVICES = ("auto", "gpu", "cpu")

LAUNCH_SECONDS = 120.0
"""Time limit of one kernel on the CPU while it is checked; the slowest of a ResNet-50 takes 2 s."""


def open_device(name: str) -> Device:
    """The device called ``cpu`` (the emulator), ``gpu``, or ``auto``: a GPU where there is one.

    Raises:
        EngineError: There is no such device here.
    """
    gpu = _gpu(name)
    if gpu is not None:
        return gpu
    from wpk.libraries.cpu import CpuDevice

    return CpuDevice()


def open_for_checks(name: str) -> AbstractContextManager[Device]:
    """The device for kernels that may be wrong: on the CPU a child process with a time limit.

    A kernel that hangs, crashes or tramples on memory costs only the child.

    Raises:
        EngineError: There is no such device here.
    """
    gpu = _gpu(name)
    if gpu is not None:
        return gpu
    from wpk.libraries.cpu import CpuProcess

    return CpuProcess(time_limit_seconds=LAUNCH_SECONDS)


def _gpu(name: str) -> GpuDevice | None:
    """The GPU, or None where the name asks for the CPU or leaves the choice and there is no GPU."""
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
