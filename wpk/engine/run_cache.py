"""What is known about runs on arrays of a GPU, so that a run on arrays that were seen costs little more than its start."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from wpk.device import ForeignArray, Mark, StreamDevice
from wpk.dims import evaluate
from wpk.engine.bindings import Binding, BindingKey, Bindings, binding_key
from wpk.engine.gpu_array import GpuArray
from wpk.engine.inputs import bind_shape
from wpk.engine.port_memory import replaceable, require_apart
from wpk.engine.recent import Recent
from wpk.errors import EngineError
from wpk.plan import Plan, Port

ALIGNMENT = 16
"""Bytes that an address is a multiple of: kernels read and write so many at once."""

_RESULTS_KEPT = 4
"""Sizes whose own output arrays are kept."""

_RECIPES_KEPT = 64
"""Sets of arrays that were found good; more than the bindings that use them."""

Arrays = tuple[ForeignArray, ...]
"""Descriptions of the arrays of all inputs, or of all outputs."""

_Dims = tuple[tuple[str, int], ...]


class Copy(NamedTuple):
    """Bytes that go from one address to another, on the GPU."""

    source: int
    target: int
    size: int


class _Recipe(NamedTuple):
    """What a run on a set of arrays does, without the binding itself, which may be forgotten.

    Attributes:
        dims: Sizes of the free dimensions.
        outputs: The arrays that it writes.
        before: Copies in front of the replay.
        binding: Key of what is replayed.
        after: Copies behind the replay.
    """

    dims: _Dims
    outputs: Arrays
    before: tuple[Copy, ...]
    binding: BindingKey
    after: tuple[Copy, ...]


class Run(NamedTuple):
    """All that is needed to start a run, as long as its binding is kept.

    Attributes:
        inputs: The arrays that it reads.
        outputs: The caller's arrays that it writes; None where it writes the engine's own.
        before: Copies in front of the replay.
        binding: What is replayed.
        after: Copies behind the replay.
        results: The engine's own arrays by name, where it writes those.
    """

    inputs: Arrays
    outputs: Arrays | None
    before: tuple[Copy, ...]
    binding: Binding
    after: tuple[Copy, ...]
    results: dict[str, GpuArray]


class RunCache:
    r"""Finds the run for a set of arrays; each level is asked only where the one before does not know.

        (inputs, outputs or None)
            |
        last run    the same arrays, and no other binding was used since ----------> Run
            | else
        recipes     checked before: sizes, copies, key of the binding
            |  \
            |   no: check the arrays, bind them, keep the recipe ------------------> Run
            | yes
        results     the engine's own outputs at these sizes, if outputs is None;
            |  \
            |   elsewhere than the recipe says: bind again ------------------------> Run
            | there
        bindings    addresses, launches and their graph (`Bindings`)
            |  \
            |   forgotten, or the arena was moved: bind again ---------------------> Run
            | kept
            +----------------------------------------------------------------------> Run

    Each level but the first forgets what was used longest ago, and only the results and the bindings hold memory of
    the GPU. Used only while the device is active.
    """

    def __init__(self, plan: Plan, device: StreamDevice, bindings: Bindings, ready: Mark) -> None:
        """Begin with nothing known; ``ready`` lies behind whatever writes the engine's own outputs."""
        self._plan, self._device, self._bindings, self._ready = plan, device, bindings, ready
        self._last: Run | None = None
        self._recipes: Recent[tuple[Arrays, Arrays | None], _Recipe] = Recent(_RECIPES_KEPT)
        self._results: Recent[_Dims, dict[str, GpuArray]] = Recent(_RESULTS_KEPT)

    @property
    def result_bytes(self) -> int:
        """Memory of the output arrays that are kept."""
        return sum(array.nbytes for results in self._results for array in results.values())

    def clear(self) -> None:
        """Forget everything; arrays that the caller holds stay."""
        self._last = None
        self._recipes.clear()
        self._results.clear()

    def run(self, inputs: Arrays, outputs: Arrays | None) -> Run:
        """The run on a set of arrays.

        Args:
            inputs: What it reads.
            outputs: What it writes; None for arrays of the engine's own.

        Raises:
            EngineError: An array cannot be used without a copy.
        """
        run = self._last
        if (
            run is None
            or run.binding is not self._bindings.newest
            or run.inputs != inputs
            or run.outputs != outputs
        ):
            run = self._last = self._look_up(inputs, outputs)
        return run

    def _look_up(self, inputs: Arrays, outputs: Arrays | None) -> Run:
        recipe = self._recipes.get((inputs, outputs))
        dims = self._dims_of(inputs) if recipe is None else recipe.dims
        results = self._results_at(dims) if outputs is None else {}
        targets = outputs
        if targets is None:
            targets = tuple(array.description for array in results.values())
        binding = None
        if recipe is not None and recipe.outputs == targets:
            binding = self._bindings.kept(recipe.binding)
        if recipe is None or binding is None:
            recipe, binding = self._bind(inputs, targets, dims)
            self._recipes.put((inputs, outputs), recipe)
        return Run(inputs, outputs, recipe.before, binding, recipe.after, results)

    def _dims_of(self, inputs: Arrays) -> _Dims:
        """The free dimensions' sizes; arrays that do not fit are refused."""
        dims: dict[str, int] = {}
        for port, array in zip(self._plan.inputs, inputs, strict=True):
            self._require(port, array)
            bind_shape(port, array.shape, dims)
        return tuple(sorted(dims.items()))

    def _results_at(self, dims: _Dims) -> dict[str, GpuArray]:
        """The engine's own output arrays at a size."""
        results = self._results.get(dims)
        if results is None:
            self._results.make_room()  # before memory is asked for
            sizes = dict(dims)
            results = {
                port.name: GpuArray(self._device, _shape(port, sizes), port.dtype, self._ready)
                for port in self._plan.outputs
            }
            self._results.put(dims, results)
        return results

    def _bind(self, inputs: Arrays, outputs: Arrays, sizes: _Dims) -> tuple[_Recipe, Binding]:
        """Check a set of arrays, whose inputs fit, and bind it."""
        dims = dict(sizes)
        for port, array in zip(self._plan.outputs, outputs, strict=True):
            self._require(port, array)
            bind_shape(port, array.shape, dims)
            if array.read_only:
                raise EngineError(
                    f"'{port.name}' may not be written to", fix="give an output that may"
                )
        ports = (*self._plan.inputs, *self._plan.outputs)
        extents = {port.name: prod(_shape(port, dims)) * port.dtype.bytes for port in ports}
        sources = _addresses(self._plan.inputs, inputs)
        targets = _addresses(self._plan.outputs, outputs)
        require_apart(sources, targets, extents)
        direct = replaceable(self._plan, dims)
        external = {n: address for n, address in (sources | targets).items() if n in direct}
        binding = self._bindings.at(dims, external)
        inside = {name: binding.address(name) for name in extents if name not in direct}
        before = tuple(Copy(sources[n], at, extents[n]) for n, at in inside.items() if n in sources)
        after = tuple(Copy(at, targets[n], extents[n]) for n, at in inside.items() if n in targets)
        recipe = _Recipe(sizes, outputs, before, binding_key(dims, external), after)
        return recipe, binding

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
            place = self._device.located(array.address) if ordinal is None else ordinal
            if place != self._device.ordinal:
                where = "in no GPU's memory" if place is None else f"on GPU {place}"
                wrong = f"lies {where}, the engine on GPU {self._device.ordinal}"
                fix = "give arrays on the engine's GPU"
        if wrong:
            raise EngineError(f"'{port.name}' {wrong}", fix=fix)


def _addresses(ports: Sequence[Port], arrays: Arrays) -> dict[str, int]:
    return {port.name: array.address for port, array in zip(ports, arrays, strict=True)}


def _shape(port: Port, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(size, dims) for size in port.shape)
