"""How long every step takes among its neighbours: events between the steps of one CUDA graph."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from wpk.device.cuda import CudaDevice
from wpk.device.graph import CudaGraph, bindings, checked
from wpk.execution import Work

REPLAYS = 31


def step_seconds(device: CudaDevice, steps: Sequence[Sequence[Work]]) -> tuple[float, ...]:
    """Median seconds from one step's end to the next one's, over `REPLAYS` replays of all of them.

    The events themselves take time: the sum lies above the time of the graph without them.

    Args:
        device: Where; everything is loaded.
        steps: The work of each step, in order.

    Raises:
        LaunchError: Something failed.
    """
    driver = bindings()
    with device.active():
        flag = driver.CUevent_flags.CU_EVENT_DEFAULT
        events = [
            checked("make an event", driver.cuEventCreate(flag)) for _ in range(len(steps) + 1)
        ]
        try:
            graph = CudaGraph(device.stream, lambda: _enqueue(device, driver, steps, events))
            samples = [_replay(device, driver, graph, events) for _ in range(REPLAYS + 1)][1:]
        finally:
            for event in events:
                driver.cuEventDestroy(event)
    return tuple(median(each) for each in zip(*samples, strict=True))


def _enqueue(
    device: CudaDevice, driver: Any, steps: Sequence[Sequence[Work]], events: Sequence[Any]
) -> None:
    stream = driver.CUstream(device.stream)
    external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL

    def mark(event: Any) -> None:
        checked("mark a step", driver.cuEventRecordWithFlags(event, stream, external))

    first, *others = events
    mark(first)
    for step, event in zip(steps, others, strict=True):
        for work in step:
            device.launch(work)
        mark(event)


def _replay(
    device: CudaDevice, driver: Any, graph: CudaGraph, events: Sequence[Any]
) -> tuple[float, ...]:
    graph.replay()
    device.synchronize()
    return tuple(
        1e-3 * float(checked("read a time", driver.cuEventElapsedTime(begin, end)))
        for begin, end in pairwise(events)
    )
