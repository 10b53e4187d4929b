"""Times of an engine's layers, as an ``IProfiler`` is told them."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from wpk.tensorrt.choosing.inspector import clean
from wpk.tensorrt.choosing.reading import malformed, number_of

_MILLISECOND = 1e-3


@dataclass(frozen=True)
class LayerTime:
    """What a layer takes in one execution of its engine.

    Attributes:
        name: As the inspector gives it; several layers of an engine may have the same.
        seconds: The median.
    """

    name: str
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Times of the layers of an engine, in the order of execution.

    Attributes:
        times: A layer each.
        count: Executions that they come from.
    """

    times: tuple[LayerTime, ...]
    count: int


def profile_of_reports(runs: Iterable[Iterable[tuple[str, float]]]) -> Profile:
    """The profile of what ``IProfiler.report_layer_time`` was told.

    Args:
        runs: For every execution, (layer, milliseconds) in the order of the calls.

    Raises:
        TensorRTError: There are no executions, or they do not report the same layers.
    """
    reported = [[(clean(name), time) for name, time in run] for run in runs]
    if not reported:
        raise malformed("the profiler's report", "no executions")
    names = [name for name, _ in reported[0]]
    if any([name for name, _ in run] != names for run in reported):
        raise malformed("the profiler's report", "executions with different layers")
    columns = [[run[i][1] for run in reported] for i in range(len(names))]
    times = [
        LayerTime(name, median(_checked(name, values)) * _MILLISECOND)
        for name, values in zip(names, columns, strict=True)
    ]
    return Profile(tuple(times), len(reported))


def _checked(name: str, values: list[float]) -> list[float]:
    return [number_of({"ms": value}, "ms", f"the time of {name!r}") for value in values]
