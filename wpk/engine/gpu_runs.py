"""Runs on arrays that lie on the GPU: used where they are, on the caller's stream, without waiting."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wpk.device.arrays import ForeignArray, lies_on_gpu, read_array
from wpk.device.streams import (
    LEGACY_STREAM,
    Mark,
    StreamDevice,
    StreamReplay,
    stream_handle,
)
from wpk.dims import evaluate
from wpk.engine.bindings import Binding, Bindings
from wpk.engine.gpu_array import GpuArray
from wpk.engine.inputs import bind_shape, require_names
from wpk.engine.plan import Plan, Port
from wpk.engine.port_memory import replaceable
from wpk.errors import EngineError

ALIGNMENT = 16
"""Bytes that an address is a multiple of: kernels read and write so many at once."""

_RESULTS_KEPT = 4
"""Sizes whose own output arrays are kept."""

_PLACES_KEPT = 64
"""Addresses that are known to be good; more than the bindings that use them."""

_Dims = tuple[tuple[str, int], ...]


class GpuRuns:
    """The asynchronous runs of an engine. Entered only while the device is active."""

    def __init__(self, plan: Plan, device: StreamDevice, bindings: Bindings) -> None:
        """Begin with nothing bound.

        Args:
            plan: What is executed.
            device: Where.
            bindings: Of the plan on the device.
        """
        self._plan, self._device, self._bindings = plan, device, bindings
        self._done: Mark = device.make_mark()  # kept behind the last run
        self._ports = (*plan.inputs, *plan.outputs)
        self._good: dict[tuple[_Dims, tuple[int, ...]], None] = {}
        self._direct: dict[_Dims, frozenset[str]] = {}
        self._results: dict[_Dims, dict[str, GpuArray]] = {}

    @property
    def result_bytes(self) -> int:
        """Memory of the output arrays that are kept."""
        return sum(a.nbytes for arrays in self._results.values() for a in arrays.values())

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
        device = self._device
        handle = device.stream if stream is None else stream_handle(stream)
        dims: dict[str, int] = {}
        addresses = self._addresses("inputs", self._plan.inputs, inputs, handle, dims)
        given: Mapping[str, Any] = self._own(dims) if outputs is None else outputs
        if outputs is None:
            addresses += [given[port.name].address for port in self._plan.outputs]
        else:
            addresses += self._addresses("outputs", self._plan.outputs, outputs, handle, dims)
        places = dict(zip((port.name for port in self._ports), addresses, strict=True))
        bound, copied = self._bound(places, dims)
        self._done.hold(handle)  # the arena is still used by the run before
        for port in (port for port in self._plan.inputs if port.name in copied):
            self._copy(handle, places[port.name], bound.address(port.name), port, dims)
        cast("StreamReplay", bound.replay).replay_on(handle)
        for port in (port for port in self._plan.outputs if port.name in copied):
            self._copy(handle, bound.address(port.name), places[port.name], port, dims)
        self._done.record(handle)
        if outputs is None:
            for array in given.values():
                array.written_on(handle)
        return dict(given)

    def upload(self, arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, GpuArray]:
        """Copies of inputs on the GPU; they have been checked.

        Raises:
            EngineError: There is not enough memory.
        """
        copies = {}
        for port in self._plan.inputs:
            array = arrays[port.name]
            copies[port.name] = GpuArray(self._device, array.shape, port.dtype, self._done)
            copies[port.name].write(array)
        return copies

    def wait(self) -> None:
        """Wait until the last run has ended.

        Raises:
            LaunchError: One failed.
        """
        self._done.wait()

    def close(self) -> None:
        """Forget everything; arrays that the caller holds stay."""
        self._results.clear()

    def _addresses(
        self,
        what: str,
        ports: Sequence[Port],
        arrays: Mapping[str, object],
        handle: int,
        dims: dict[str, int],
    ) -> list[int]:
        """Check arrays, and order their contents before the stream."""
        require_names(what, ports, arrays)
        addresses = []
        for port in ports:
            array = arrays[port.name]
            if not lies_on_gpu(array):
                raise EngineError(
                    f"'{port.name}' is a {type(array).__name__} on the host, and the run is one on "
                    "GPU arrays",
                    fix="give all inputs and outputs on the GPU (engine.upload makes inputs), or "
                    "only NumPy inputs, without outputs and stream",
                )
            read = (
                array.described(handle)
                if isinstance(array, GpuArray)
                else read_array(array, port.name, handle)
            )
            self._require(port, read, writes=what == "outputs")
            bind_shape(port, read.shape, dims)
            if read.stream is not None:
                self._order(read.stream, handle)
            addresses.append(read.address)
        return addresses

    def _require(self, port: Port, array: ForeignArray, *, writes: bool) -> None:
        wrong = fix = ""
        if array.dtype is not port.dtype:
            wrong, fix = f"has type {array.words}, expected {port.dtype}", "convert it first"
        elif not array.is_dense:
            wrong = f"is not dense: shape {list(array.shape)}, strides {array.strides}"
            fix = "make it contiguous in C's order first, e.g. tensor.contiguous()"
        elif array.address % ALIGNMENT:
            wrong = f"lies at {array.address:#x}, no multiple of {ALIGNMENT} bytes"
            fix = "give an array with an allocation of its own, not a slice of another"
        elif writes and array.read_only:
            wrong, fix = "may not be written to", "give an output that may"
        elif array.ordinal not in (None, self._device.ordinal):
            wrong = f"lies on GPU {array.ordinal}, the engine on GPU {self._device.ordinal}"
            fix = "give arrays on the engine's GPU"
        if wrong:
            raise EngineError(f"'{port.name}' {wrong}", fix=fix)

    def _order(self, theirs: int, handle: int) -> None:
        """What their stream was given is done before what ours will be given."""
        if theirs == handle or (theirs == LEGACY_STREAM and handle == self._device.stream):
            return  # our stream waits for the legacy one by itself
        mark = self._device.make_mark()
        mark.record(theirs)
        mark.hold(handle)

    def _own(self, dims: Mapping[str, int]) -> dict[str, GpuArray]:
        """The engine's output arrays at a size."""
        key = tuple(sorted(dims.items()))
        arrays = self._results.pop(key, None)
        if arrays is None:
            while len(self._results) >= _RESULTS_KEPT:
                del self._results[next(iter(self._results))]
            arrays = {
                port.name: GpuArray(
                    self._device,
                    tuple(evaluate(size, dims) for size in port.shape),
                    port.dtype,
                    self._done,
                )
                for port in self._plan.outputs
            }
        self._results[key] = arrays
        return arrays

    def _bound(
        self, places: Mapping[str, int], dims: Mapping[str, int]
    ) -> tuple[Binding, frozenset[str]]:
        """The binding for these arrays, and the names of those that are copied from or to."""
        key = tuple(sorted(dims.items()))
        good = key, tuple(places.values())
        if good not in self._good:
            self._check_places(places, dims)
            while len(self._good) >= _PLACES_KEPT:
                del self._good[next(iter(self._good))]
            self._good[good] = None
        direct = self._direct.get(key)
        if direct is None:
            direct = self._direct[key] = replaceable(self._plan, dims)
        external = {name: place for name, place in places.items() if name in direct}
        bound = self._bindings.at(dims, external)
        return bound, frozenset(places) - direct if len(external) < len(places) else frozenset()

    def _check_places(self, places: Mapping[str, int], dims: Mapping[str, int]) -> None:
        sizes = {port.name: _bytes(port, dims) for port in self._ports}
        outputs = {port.name for port in self._plan.outputs}
        for name, place in places.items():
            found = self._device.located(place)
            if found != self._device.ordinal:
                where = "no GPU's memory" if found is None else f"GPU {found}"
                raise EngineError(
                    f"'{name}' lies at {place:#x}, which is {where}, and the engine is on GPU "
                    f"{self._device.ordinal}",
                    fix="give arrays on the engine's GPU",
                )
        for one, other in combinations(places, 2):
            low, high = sorted((one, other), key=lambda name: places[name])
            if {one, other} & outputs and places[low] + sizes[low] > places[high]:
                raise EngineError(
                    f"'{one}' and '{other}' share memory, and a run writes while it reads",
                    fix="give each output memory of its own",
                )

    def _copy(
        self, stream: int, source: int, target: int, port: Port, dims: Mapping[str, int]
    ) -> None:
        self._device.copy_on(stream, source, target, _bytes(port, dims))


def _bytes(port: Port, dims: Mapping[str, int]) -> int:
    return prod(evaluate(size, dims) for size in port.shape) * port.dtype.bytes
