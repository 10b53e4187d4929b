"""Open a device by the name that a person gives."""

from wpk.engine.device import Device
from wpk.errors import EngineError

DEVICES = ("auto", "gpu", "cpu")


def open_device(name: str) -> Device:
    """The device called ``cpu`` (the emulator), ``gpu``, or ``auto``: what there is.

    Raises:
        EngineError: There is no such device here.
    """
    if name not in DEVICES:
        raise EngineError(f"unknown device {name!r}", fix=f"choose one of {', '.join(DEVICES)}")
    if name == "gpu":
        raise EngineError(
            "this version of wpk executes plans on the CPU only; it has no CUDA launcher yet",
            fix="use --device cpu, which executes the same kernels through the emulator",
        )
    from wpk.emulator.emulator import Emulator

    return Emulator()
