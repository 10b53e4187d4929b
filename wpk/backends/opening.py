"""Open a device by the name that a person gives."""

from wpk.device import CudaDevice
from wpk.did_you_mean import choices_words
from wpk.emulator import GUARDED, EmulatorProcess
from wpk.errors import EngineError
from wpk.libraries import CudaLibraries, NumpyLibraries

_DEVICES = ("auto", "gpu", "cpu")

_LAUNCH_SECONDS = 120.0
"""Time limit of one kernel on the CPU at the tuned sizes; the slowest of a ResNet-50 takes 2 s."""


def open_device(name: str) -> CudaDevice | EmulatorProcess:
    """The device called ``cpu``, ``gpu``, or ``auto``: a GPU where there is one.

    Raises:
        EngineError: There is no such device here.
    """
    if name not in _DEVICES:
        raise EngineError(f"unknown device {name!r}", fix=choices_words(str(name), _DEVICES))
    if name == "cpu":
        return open_cpu()
    try:
        return open_gpu()
    except EngineError:
        if name == "gpu":
            raise
        return open_cpu()


def open_gpu(ordinal: int = 0) -> CudaDevice:
    """A GPU of this machine, in this process, with the libraries that are installed.

    Raises:
        EngineError: There is no such GPU, or no pycuda.
    """
    return CudaDevice(ordinal, libraries=CudaLibraries())


def open_cpu() -> EmulatorProcess:
    """The emulator in a process of its own, with guarded memory and a time limit.

    What a plan does there reaches nothing of the process that asks for it: a kernel that hangs, crashes or
    tramples on memory costs only the child. No library runs there: NumPy computes what it would.
    """
    return EmulatorProcess(GUARDED, libraries=NumpyLibraries(), time_limit_seconds=_LAUNCH_SECONDS)
