"""Runs on arrays that lie on the GPU: used where they are, on the caller's stream, without waiting.

What was found out about a set of arrays is kept by their descriptions, so that a run on arrays that
were seen before costs little more than the start of its graph.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, cast

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
from wpk.dims import evaluate
from wpk.engine.bindings import Binding, BindingKey, Bindings, binding_key
from wpk.engine.gpu_array import GpuArray
from wpk.engine.inputs import bind_shape, require_names
from wpk.engine.port_memory import replaceable, require_apart
from wpk.errors import EngineError
from wpk.plan import Plan, Port

ALIGNMENT = 16
"""Every address is a multiple of so many bytes: kernels read and write so many at once."""

_RESULTS_KEPT = 4
"""For how many sizes the engine keeps output arrays of its own."""

_SETS_KEPT = 64
"""How many sets of checked arrays are remembered: more than the bindings that use them."""

_Arrays = tuple[ForeignArray, ...]
_Dims = tuple[tuple[str, int], ...]


class _Copy(NamedTuple):
    source: int
    target: int
    size: int


class _Start(NamedTuple):
    """What a run on a set of arrays does, around the binding with this key."""

    before: tuple[_Copy, ...]
    binding: BindingKey
    after: tuple[_Copy, ...]


class _Run(NamedTuple):
    """All that is needed to repeat a run while its binding is kept.

    Attributes:
        read: The inputs.
        written: The outputs; None where they are the engine's own.
        before: Copies in front of the replay.
        bound: What is replayed.
        after: Copies behind the replay.
        results: The engine's own outputs.
    """

    read: _Arrays
    written: _Arrays | None
    before: tuple[_Copy, ...]
    bound: Binding
    after: tuple[_Copy, ...]
    results: dict[str, GpuArray]


class GpuRuns:
    """The asynchronous runs of an engine. Its methods are called only while the device is active."""

    def __init__(self, plan: Plan, device: StreamDevice, bindings: Bindings) -> None:
        """Begin with nothing bound.

        Args:
            plan: What is executed.
            device: Where.
            bindings: The bindings of the plan on the device.
        """
        self._plan, self._device, self._bindings = plan, device, bindings
        self._own_stream = device.stream
        self._done: Mark = device.make_mark()  # kept behind the last run
        self._done_on: int | None = None
        self._last: _Run | None = None
        self._theirs: Mark = device.make_mark()
        self._sizes: dict[_Arrays, _Dims] = {}
        self._starts: dict[tuple[_Arrays, _Arrays], _Start] = {}
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
        handle = self._own_stream if stream is None else stream_handle(stream)
        asked: set[type] = set()
        read = self._read("inputs", self._plan.inputs, inputs, handle, asked)
        written = None
        if outputs is not None:
            written = self._read("outputs", self._plan.outputs, outputs, handle, asked)
        run = self._last
        if (
            run is None
            or run.bound is not self._bindings.newest
            or run.read != read
            or run.written != written
        ):
            run = self._last = self._found(read, written)
        # The arena is still used by the run before. Its stream may be another of the same handle by
        # now, but for the device's own.
        if handle != self._own_stream or self._done_on != handle:
            self._done.hold(handle)
        for copy in run.before:
            self._device.copy_on(handle, *copy)
        cast("StreamReplay", run.bound.replay).replay_on(handle)
        for copy in run.after:
            self._device.copy_on(handle, *copy)
        self._done.record(handle)
        self._done_on = handle
        for array in run.results.values():
            array.written_on(handle)
        return dict(run.results if outputs is None else outputs)

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
        self._last = None
        self._results.clear()

    def _read(
        self,
        what: str,
        ports: Sequence[Port],
        arrays: Mapping[str, Any],
        handle: int,
        asked: set[type],
    ) -> _Arrays:
        """Describe arrays, and order what writes them before the stream."""
        if len(arrays) != len(ports):
            require_names(what, ports, arrays)
        found, ordered = [], None
        for port in ports:
            try:
                array = arrays[port.name]
            except KeyError:
                require_names(what, ports, arrays)
                raise
            if isinstance(array, GpuArray):
                found.append(array.described(handle, self._done))
                continue
            read, theirs = read_array(array, port.name, handle, asked)
            if theirs is not None and theirs != ordered:
                self._order(theirs or LEGACY_STREAM, handle or LEGACY_STREAM)
                ordered = theirs
            found.append(read)
        return tuple(found)

    def _found(self, read: _Arrays, written: _Arrays | None) -> _Run:
        """Return what a run on a set of arrays does; a set that is new is checked and bound."""
        sizes = self._sizes.get(read)
        if sizes is None:
            sizes = self._sizes_of(read)
        results = self._own(sizes) if written is None else {}
        into = tuple(a.description for a in results.values()) if written is None else written
        start = self._starts.get((read, into))
        bound = None if start is None else self._bindings.kept(start.binding)
        if start is None or bound is None:
            start = self._prepare(read, into, dict(sizes))
            bound = self._bindings.kept(start.binding)
            assert bound is not None  # it was made just now
        return _Run(read, written, start.before, bound, start.after, results)

    def _order(self, theirs: int, handle: int) -> None:
        """Let our stream wait for all work that was given to the stream of the arrays."""
        if theirs == handle or (theirs == LEGACY_STREAM and handle == self._own_stream):
            return  # our stream waits for the legacy one by itself
        self._theirs.record(theirs)
        self._theirs.hold(handle)

    def _sizes_of(self, read: _Arrays) -> _Dims:
        """The free dimensions' sizes; arrays that do not fit are refused."""
        dims: dict[str, int] = {}
        for port, array in zip(self._plan.inputs, read, strict=True):
            self._require(port, array)
            bind_shape(port, array.shape, dims)
        _forget_first(self._sizes, _SETS_KEPT)
        sizes = self._sizes[read] = tuple(sorted(dims.items()))
        return sizes

    def _require(self, port: Port, array: ForeignArray) -> None:
        wrong = fix = ""
        if array.kind != port.dtype.value:
            wrong, fix = f"has type {array.kind}, expected {port.dtype}", "convert it first"
        elif not array.is_dense:
            wrong = f"is not dense: shape {list(array.shape)}, strides {array.strides}"
            fix = "make it contiguous in C's order first, e.g. tensor.contiguous()"
        elif array.address % ALIGNMENT:
            wrong = f"lies at {array.address:#x}, no multiple of {ALIGNMENT} bytes"
            fix = "give an array with an allocation of its own, not a slice of another"
        else:
            ordinal = array.ordinal
            found = self._device.located(array.address) if ordinal is None else ordinal
            if found != self._device.ordinal:
                where = "in no GPU's memory" if found is None else f"on GPU {found}"
                wrong = f"lies {where}, the engine on GPU {self._device.ordinal}"
                fix = "give arrays on the engine's GPU"
        if wrong:
            raise EngineError(f"'{port.name}' {wrong}", fix=fix)

    def _own(self, sizes: _Dims) -> dict[str, GpuArray]:
        """Return the engine's own output arrays at a size."""
        arrays = self._results.pop(sizes, None)
        if arrays is None:
            _forget_first(self._results, _RESULTS_KEPT)
            dims = dict(sizes)
            arrays = {
                port.name: GpuArray(self._device, _shape(port, dims), port.dtype, self._done)
                for port in self._plan.outputs
            }
        self._results[sizes] = arrays
        return arrays

    def _prepare(self, read: _Arrays, written: _Arrays, dims: dict[str, int]) -> _Start:
        """Check and bind a set of arrays."""
        for port, array in zip(self._plan.outputs, written, strict=True):
            self._require(port, array)
            bind_shape(port, array.shape, dims)
            if array.read_only:
                raise EngineError(
                    f"'{port.name}' may not be written to", fix="give an output that may"
                )
        ports = (*self._plan.inputs, *self._plan.outputs)
        sizes = {port.name: prod(_shape(port, dims)) * port.dtype.bytes for port in ports}
        sources, targets = _places(self._plan.inputs, read), _places(self._plan.outputs, written)
        require_apart(sources, targets, sizes)
        direct = replaceable(self._plan, dims)
        external = {n: place for n, place in (sources | targets).items() if n in direct}
        bound = self._bindings.at(dims, external)
        start = _Start(
            tuple(
                _Copy(place, bound.address(name), sizes[name])
                for name, place in sources.items()
                if name not in direct
            ),
            binding_key(dims, external),
            tuple(
                _Copy(bound.address(name), place, sizes[name])
                for name, place in targets.items()
                if name not in direct
            ),
        )
        _forget_first(self._starts, _SETS_KEPT)
        self._starts[read, written] = start
        return start


def _places(ports: Sequence[Port], arrays: _Arrays) -> dict[str, int]:
    return {port.name: array.address for port, array in zip(ports, arrays, strict=True)}


def _shape(port: Port, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(size, dims) for size in port.shape)


def _forget_first(kept: dict[Any, Any], most: int) -> None:
    """Forget the set that was used longest ago, to make room for one more."""
    while len(kept) >= most:
        del kept[next(iter(kept))]
