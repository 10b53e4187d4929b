"""Open a device by the name that a person gives."""

from wpk.errors import EngineError
from wpk.execution import Device

DEVICES = ("auto", "gpu", "cpu")


def open_device(name: str) -> Device:
    """The device called ``cpu`` (the emulator), ``gpu``, or ``auto``: a GPU where there is one.

    Raises:
        EngineError: There is no such device here.
    """
    if name not in DEVICES:
        raise EngineError(f"unknown device {name!r}", fix=f"choose one of {', '.join(DEVICES)}")
    if name != "cpu":
        from wpk.device.cuda import CudaDevice

        try:
            return CudaDevice()
        except EngineError:
            if name == "gpu":
                raise
    from wpk.emulator.emulator import Emulator

    return Emulator()
