"""What follows what on a stream while it is captured: nodes of a graph, and the edges between them."""

from collections.abc import Callable, Sequence
from typing import Any

from wpk.device.graph import CudaMark, bindings, checked, stream_object
from wpk.execution import BoundLaunch, Predecessors, Work


def put_in_order(
    stream: int,
    works: Sequence[Work],
    predecessors: Predecessors | None,
    start: Callable[[Work, bool], None],
) -> None:
    """Put work on a captured stream; the graph gets edges from its predecessors, and no others.

    The driver makes programmatic edges from kernels to a kernel that may be launched early, however
    many there are (docs/decisions/0032).

    Args:
        stream: Handle of the stream.
        works: What to put on it.
        predecessors: See `wpk.execution.Device.capture`.
        start: Puts one piece of work on the stream; told whether a kernel is in front of it.

    Raises:
        LaunchError: The driver refuses.
    """
    if predecessors is None:
        predecessors = [(number - 1,) if number else () for number in range(len(works))]
    moves = {n: others for n, others in enumerate(predecessors) if tuple(others) != (n - 1,)}
    followed = {other for others in predecessors for other in others}
    last = [number for number in range(len(works)) if number not in followed]
    asked = {other for others in (*moves.values(), last) for other in others}
    ends: dict[int, Sequence[Any]] = {}
    for number, (work, others) in enumerate(zip(works, predecessors, strict=True)):
        if number in moves:
            _set_front(stream, [node for other in others for node in ends[other]])
        start(work, any(isinstance(works[other], BoundLaunch) for other in others))
        if number in asked:
            ends[number] = _captured(stream)[1]
    _set_front(stream, [node for number in last for node in ends[number]])


def end_overlap(stream: int) -> None:
    """What follows on a stream begins after the kernel in front of it has ended, however it is launched.

    A captured stream gets a node that does nothing: only between two kernels is an edge programmatic.
    On other streams an event stands between them.

    Raises:
        LaunchError: The driver refuses.
    """
    graph, nodes = _captured(stream)
    if graph is None:
        CudaMark().record(stream)
        return
    added = bindings().cuGraphAddEmptyNode(graph, nodes, len(nodes))
    _set_front(stream, [checked("order a graph", added)])


def _set_front(stream: int, nodes: Sequence[Any]) -> None:
    """What is put on the stream next follows these nodes, and no others."""
    driver = bindings()
    replace = driver.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    arguments = (stream_object(stream), list(nodes), None, len(nodes), int(replace))
    checked("order a graph", driver.cuStreamUpdateCaptureDependencies(*arguments))


def _captured(stream: int) -> tuple[Any, Sequence[Any]]:
    """The graph that a stream is captured in, None where it is not, and the nodes in front."""
    driver = bindings()
    answer = driver.cuStreamGetCaptureInfo(stream_object(stream))
    checked("look at a stream", answer)
    _, status, _, graph, nodes, *_ = answer
    if status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        return None, []
    return graph, list(nodes)
