"""TensorRT's profiler interface: what each layer of an execution took."""

from typing import Any


def new_profiler(module: Any) -> Any:
    """An ``IProfiler`` whose ``taken()`` gives (layer, milliseconds) of the executions since the last call."""

    class Profiler(module.IProfiler):  # type: ignore[misc]  # a base that is known at run time only
        """Keeps what it is told, in the order of the calls."""

        def __init__(self) -> None:
            module.IProfiler.__init__(self)
            self._times: list[tuple[str, float]] = []

        def report_layer_time(self, layer: str, milliseconds: float) -> None:
            self._times.append((layer, milliseconds))

        def taken(self) -> list[tuple[str, float]]:
            times, self._times = self._times, []
            return times

    return Profiler()
