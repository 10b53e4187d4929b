"""Runs on arrays that lie on the GPU: used where they are, on the caller's stream, without waiting.

What a run does is found by `RunCache`; here it is put in order with what other streams do, and started.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wpk.device import (
    LEGACY_STREAM,
    ForeignArray,
    Mark,
    StreamDevice,
    StreamReplay,
    read_array,
    stream_handle,
)
from wpk.engine.bindings import Bindings
from wpk.engine.gpu_array import GpuArray
from wpk.engine.inputs import require_names
from wpk.engine.run_cache import Arrays, Run, RunCache
from wpk.plan import KeptOutput, Plan, Port


class GpuRuns:
    r"""The asynchronous runs of an engine. Entered only while the device is active.

    All runs use one arena, so each waits for the one before, whatever their streams are:

        caller's streams   ... writes x --mark-.
                                                \ hold
        stream of run 1    --copies--replay--copies--end mark-.
                                                               \ hold
        stream of run 2                                    --copies--replay--copies--end mark--
    """

    def __init__(self, plan: Plan, device: StreamDevice, bindings: Bindings) -> None:
        """Begin with nothing bound."""
        self._plan, self._device = plan, device
        self._own_stream = device.stream
        self._end_mark: Mark = device.make_mark()  # kept behind the last run
        self._last_stream: int | None = None
        self._writers_mark: Mark = device.make_mark()  # behind what writes a caller's array
        self._cache = RunCache(plan, device, bindings, self._end_mark)

    @property
    def result_bytes(self) -> int:
        """Memory of the output arrays that are kept."""
        return self._cache.result_bytes

    def run(
        self,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None,
        stream: object,
    ) -> dict[str, Any]:
        """Start a run: see `Engine.run`.

        Raises:
            EngineError: Something cannot be used without a copy.
            LaunchError: It cannot be started.
        """
        handle = self._own_stream if stream is None else stream_handle(stream)
        asked_types: set[type] = set()
        read = self._describe("inputs", self._plan.inputs, inputs, handle, asked_types)
        written = None
        if outputs is not None:
            written = self._describe("outputs", self._plan.outputs, outputs, handle, asked_types)
        run = self._cache.run(read, written)
        self._start(run, handle)
        given = dict(run.results if outputs is None else outputs)
        return given | {kept.name: self._kept(run, kept) for kept in self._plan.kept_outputs}

    def _kept(self, run: Run, kept: KeptOutput) -> GpuArray:
        """A copy on the GPU of an output in the machine's memory; its shape is another in each run."""
        array = np.array(run.binding.kept[kept.name], kept.dtype.numpy)
        copy = GpuArray(self._device, array.shape, kept.dtype, self._end_mark)
        copy.write(array)
        return copy

    def upload(self, arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, GpuArray]:
        """Copies of inputs on the GPU; they have been checked.

        Raises:
            EngineError: There is not enough memory.
        """
        copies = {}
        for port in self._plan.inputs:
            array = arrays[port.name]
            copies[port.name] = GpuArray(self._device, array.shape, port.dtype, self._end_mark)
            copies[port.name].write(array)
        return copies

    def wait(self) -> None:
        """Wait until the last run has ended.

        Raises:
            LaunchError: One failed.
        """
        self._end_mark.wait()

    def close(self) -> None:
        """Forget everything; arrays that the caller holds stay."""
        self._cache.clear()

    def _start(self, run: Run, handle: int) -> None:
        # The arena is still used by the run before. Its stream may be another of the same handle by
        # now, but for the device's own.
        if handle != self._own_stream or self._last_stream != handle:
            self._end_mark.hold(handle)
        for copy in run.before:
            self._device.copy_on(handle, *copy)
        cast("StreamReplay", run.binding.replay).replay_on(handle)
        for copy in run.after:
            self._device.copy_on(handle, *copy)
        self._end_mark.record(handle)
        self._last_stream = handle
        for array in run.results.values():
            array.written_on(handle)

    def _describe(
        self,
        what: str,
        ports: Sequence[Port],
        arrays: Mapping[str, Any],
        handle: int,
        asked_types: set[type],
    ) -> Arrays:
        """Describe arrays, and order what writes them before the stream."""
        if len(arrays) != len(ports):
            require_names(what, ports, arrays)
        descriptions: list[ForeignArray] = []
        ordered = None
        for port in ports:
            try:
                array = arrays[port.name]
            except KeyError:
                require_names(what, ports, arrays)
                raise
            if isinstance(array, GpuArray):
                descriptions.append(array.described(handle, self._end_mark))
                continue
            description, writer = read_array(array, port.name, handle, asked_types)
            if writer is not None and writer != ordered:
                self._order(writer or LEGACY_STREAM, handle or LEGACY_STREAM)
                ordered = writer
            descriptions.append(description)
        return tuple(descriptions)

    def _order(self, writer: int, handle: int) -> None:
        """What the writer's stream was given is done before what ours will be given."""
        if writer == handle or (writer == LEGACY_STREAM and handle == self._own_stream):
            return  # our stream waits for the legacy one by itself
        self._writers_mark.record(writer)
        self._writers_mark.hold(handle)
