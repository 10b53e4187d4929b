"""One process of a run executes candidates; it is replaced where a candidate ruined it."""

from collections.abc import Callable
from typing import Self

from wpk.backends import GpuProcess

OpenGpu = Callable[[], GpuProcess]


class GpuLease:
    """A lease starts the process when it is first needed; tuning, comparing and checking share it."""

    def __init__(self, open_gpu: OpenGpu = GpuProcess) -> None:
        """Take what starts a process."""
        self._open = open_gpu
        self._gpu: GpuProcess | None = None

    def __enter__(self) -> Self:
        """Nothing starts yet."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End the process."""
        self.drop()

    def process(self) -> GpuProcess:
        """Return a process that is alive, with all that was loaded into it unless it is a new one.

        Raises:
            EngineError: There is no GPU.
            LaunchError: It does not start.
        """
        if self._gpu is None or not self._gpu.is_alive:
            self.drop()
            self._gpu = self._open()
        return self._gpu

    def drop(self) -> None:
        """End the process; another one is started when it is needed."""
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None
