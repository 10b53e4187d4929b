"""Engines of TensorRT as work of a device: launched, captured and timed as everything else is."""

from wpk.device import CudaDevice
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.nvinfer.session import EngineSession


class EngineCalls:
    """The engines that one `CudaDevice` executes, given to it as its libraries."""

    def __init__(self) -> None:
        """Begin with none."""
        self._sessions: dict[str, EngineSession] = {}

    def add(self, name: str, session: EngineSession) -> None:
        """Let calls of this name execute an engine."""
        self._sessions[name] = session

    def remove(self, name: str) -> None:
        """Let go of an engine."""
        self._sessions.pop(name).close()

    def load(self, image: LibraryImage, device: CudaDevice) -> int:
        """Refuse: whole engines are added, and libraries' implementations are not for this device.

        Raises:
            EngineError: Always.
        """
        raise EngineError(
            f"{image.library} is asked of a device that executes whole engines of TensorRT only",
            fix="this is a bug in the code that opened the device",
        )

    def call(self, call: BoundCall, device: CudaDevice) -> None:
        """Put an execution on the device's stream.

        Raises:
            LaunchError: There is no such engine, or it does not start.
        """
        session = self._sessions.get(call.image)
        if session is None:
            raise LaunchError(
                f"engine '{call.image}' is executed but not loaded",
                fix="this is a bug in the code that calls it",
            )
        session.enqueue(call.pointers, device.work_stream)

    def close(self) -> None:
        """Let go of all engines, before the device does."""
        while self._sessions:
            self._sessions.popitem()[1].close()
