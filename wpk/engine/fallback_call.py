"""Steps that ONNX Runtime executes or whose bodies the host drives, among the graphs of the others.

    graph of the steps in front -> out of the device's memory -> ONNX Runtime -> into it -> graph of those behind

A run on a stream of the caller's is waited for at each such step: its numbers are in the machine's memory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from wpk.device import StreamDevice, StreamReplay
from wpk.dims import evaluate
from wpk.engine.control_call import ControlCall
from wpk.engine.crossing_memory import Array, read_crossing, write_crossing
from wpk.errors import LaunchError
from wpk.execution import Device, Replay
from wpk.plan import Step
from wpk.problems import Crossing, Fallback
from wpk.runtime import RuntimeProcess


@dataclass(frozen=True)
class FallbackCall:
    """A step at its addresses.

    Attributes:
        step: The step.
        problem: What it computes.
        address: Says where a value lies.
        dims: Values of the free dimensions.
        runtime: Executes it.
        device: Whose memory its tensors lie in.
        kept: Tensors in the machine's memory, which it reads and adds to.
        patience: How many times longer it may take than at the tuned sizes.
    """

    step: Step
    problem: Fallback
    address: Callable[[str], int]
    dims: Mapping[str, int]
    runtime: RuntimeProcess
    device: Device
    kept: dict[str, Array]
    patience: float

    def execute(self) -> None:
        """Read, have it computed, and write; what the device was given before is done then.

        Raises:
            LaunchError: It cannot be computed on these inputs, or the device failed before.
        """
        inputs = [
            self.kept[name]
            if each is None
            else read_crossing(self.device, self.address(name), each, self.dims)
            for name, each in zip(self.step.inputs, self.problem.x, strict=True)
        ]
        found = self.runtime.run(self.problem.model, inputs, self.patience)
        placed = len(self.problem.results)
        names = self.step.operator.outputs
        for name, each, array in zip(names, self.problem.results, found, strict=False):
            self._write(name, each, array)
        self.kept.update(zip(names[placed:], found[placed:], strict=True))

    def _write(self, name: str, crossing: Crossing, array: Array) -> None:
        shape = tuple(evaluate(each, self.dims) for each in crossing.shape)
        if array.shape != shape:
            raise LaunchError(
                f"ONNX Runtime gave '{name}' the shape {list(array.shape)}, expected {list(shape)}",
                fix="optimize the model for these sizes: --shapes; or report this as a bug, with the model",
            )
        write_crossing(self.device, self.address(name), crossing, array)


HostCall = FallbackCall | ControlCall
"""A step that the host executes, or drives."""


class SteppedReplay:
    """Graphs and calls in turn."""

    def __init__(self, parts: Sequence[Replay | HostCall], device: Device) -> None:
        """Take the parts, in order."""
        self._parts = tuple(parts)
        self._streams = device if isinstance(device, StreamDevice) else None

    def replay(self) -> None:
        """Start the graphs on the device's own stream, and execute what lies between."""
        for part in self._parts:
            if isinstance(part, HostCall):
                part.execute()
            else:
                part.replay()

    def replay_on(self, stream: int) -> None:
        """Do so on another stream, which is waited for at each call."""
        if self._streams is None:
            raise TypeError(f"{self._parts} is not on a device with streams")
        mark = self._streams.make_mark()
        for part in self._parts:
            if isinstance(part, HostCall):
                mark.record(stream)
                mark.wait()
                part.execute()
                self._streams.settle()
            else:
                cast("StreamReplay", part).replay_on(stream)
