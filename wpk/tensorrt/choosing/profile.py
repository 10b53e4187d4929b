"""Times of an engine's layers: trtexec's profile, and what an ``IProfiler`` was told."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from wpk.tensorrt.choosing.inspector import clean
from wpk.tensorrt.choosing.reading import entries, malformed, number_of, parsed, text_of

MILLISECOND = 1e-3


@dataclass(frozen=True)
class LayerTime:
    """What a layer takes in one execution of its engine.

    Attributes:
        name: As the inspector gives it; several layers of an engine may have the same.
        seconds: Median where it is known, else mean.
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


def parse_profile(text: str) -> Profile:
    """Read a file of ``trtexec --exportProfile``; versions 8 to 11 write the same form.

    Raises:
        TensorRTError: The text is something else; says where.
    """
    records = entries(parsed(text, "the profile"), "the profile")
    if not records or not isinstance(records[0], dict) or "count" not in records[0]:
        raise malformed("the profile", "no 'count' at its start")
    count = int(number_of(records[0], "count", "the profile"))
    if count == 0:
        raise malformed("the profile", "a 'count' of 0: nothing was executed")
    layers = [each for each in records[1:] if not _is_count(each)]
    return Profile(tuple(_time(each, i, count) for i, each in enumerate(layers)), count)


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
        LayerTime(name, median(_checked(name, values)) * MILLISECOND)
        for name, values in zip(names, columns, strict=True)
    ]
    return Profile(tuple(times), len(reported))


def _time(record: Any, index: int, count: int) -> LayerTime:
    what = f"layer {index} of the profile"
    if not isinstance(record, dict):
        raise malformed(what, f"a {type(record).__name__}")
    name = clean(text_of(record, "name", what))
    for key in ("medianMs", "averageMs"):
        if key in record:
            return LayerTime(name, number_of(record, key, what) * MILLISECOND)
    return LayerTime(name, number_of(record, "timeMs", what) / count * MILLISECOND)


def _is_count(record: Any) -> bool:
    return isinstance(record, dict) and "count" in record and "name" not in record


def _checked(name: str, values: list[float]) -> list[float]:
    return [number_of({"ms": value}, "ms", f"the time of {name!r}") for value in values]
