"""Executes a template's kernels on the emulator: guarded memory, poisoned outputs, every byte accounted for."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each_value import mark_beside_diagonals
from support.launches.on_arrays import guarded, launch_on_arrays

from wpk import dims as dim_expressions
from wpk.dtypes import DType
from wpk.emulator import CHECKING, FAST
from wpk.emulator.build import compile_unit
from wpk.emulator.native import Statistics
from wpk.execution import TensorMap
from wpk.expression import evaluate
from wpk.launch import (
    EARLY_LAUNCH,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.problems import ClampedConvolution, Convolution, Matmul, Tensor
from wpk.schedules import packings
from wpk.strided import strided

Array = NDArray[Any]
_POISON = 0xFF  # a NaN in every floating type


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Most of what these tests cost is compilers: each has a unit to build for every combination."""
    here = Path(__file__).parent
    mark_beside_diagonals(item for item in items if item.path.is_relative_to(here))


class Execution:
    """Memory of tensors, and launches over it.

    Attributes:
        statistics: Of the last launch.
        others: Outputs of the last problem that was executed besides the first one, over their domains.
    """

    def __init__(self, checking: bool) -> None:
        self.checking = checking
        self.statistics: Statistics | None = None
        self.others: list[Array] = []
        self._computed: list[Array] = []

    def memory(self, tensor: Tensor, values: Array) -> Array:
        """The tensor's memory holding ``values`` (over the domain) and zeros in its padding."""
        memory = np.zeros(_span(tensor, values.shape), tensor.dtype.numpy)
        _view(memory, tensor, values.shape)[...] = values
        return memory

    def run(
        self,
        template: Any,
        problem: Any,
        schedule: Any,
        inputs: Sequence[Array],
        shape: tuple[int, ...],
        dims: dict[str, int] | None = None,
    ) -> Array:
        """The output over its domain ``shape``, in float64.

        The output's padding must come back zero, and what lies between rows untouched; counters are
        zero again.
        """
        dims = dims or {}
        _, *further = problem.writes()
        written = [(problem.y, shape)]
        for each in further:
            sizes = tuple(dim_expressions.evaluate(extent, dims) for extent in each.extents)
            written.append((each.tensor, sizes))
        outputs = [guarded(np.zeros(_span(*each), each[0].dtype.numpy)) for each in written]
        for output in outputs:
            output.view(np.uint8)[...] = _POISON
        of_array = {
            id(array): guarded(array) for array in inputs
        }  # one may be read as several inputs
        held = [of_array[id(array)] for array in inputs]
        constants = {1} if template.packing(problem, schedule) is not None else set()
        constants |= {i for i, each in enumerate(problem.reads()) if each and each.tensor.constant}
        constants |= set(problem.constant_inputs)
        computed = {id(held[i]): held[i] for i in range(len(held)) if i not in constants}
        self._computed = list(computed.values())
        sources = {s.digest: s for s in template.instantiate(problem, schedule)}
        for launch in template.launches(problem, schedule):
            library = compile_unit(sources[launch.kernel], checking=self.checking)
            self._launch(library, launch, held, outputs, dims)
        results = [
            _view(output, *each).astype(np.float64)
            for output, each in zip(outputs, written, strict=True)
        ]
        for output, each in zip(outputs, written, strict=True):
            _check_the_rest(output, *each)
        result, *self.others = results
        return result

    def _launch(
        self,
        library: Any,
        launch: Launch,
        inputs: list[Array],
        outputs: list[Array],
        dims: dict[str, int],
    ) -> None:
        arguments: list[Any] = []
        counters = guarded(np.zeros(0, np.int32))
        awaited = [*self._computed, *outputs]
        for argument in launch.arguments:
            match argument:
                case InputArgument(index):
                    arguments.append(inputs[index])
                case SizeArgument(expression):
                    arguments.append(dim_expressions.evaluate(expression, dims))
                case TensorMapArgument():
                    arguments.append(_tensor_map(argument, inputs[argument.index], dims))
                case OutputArgument(index):
                    arguments.append(outputs[index])
                case WorkspaceArgument(size):
                    scratch = np.zeros(dim_expressions.evaluate(size, dims), np.uint8)
                    scratch[...] = _POISON
                    arguments.append(guarded(scratch))
                    awaited.append(arguments[-1])
                case CounterArgument(count):
                    zeros = np.zeros(dim_expressions.evaluate(count, dims), np.int32)
                    counters = guarded(zeros)
                    arguments.append(counters)
                    awaited.append(counters)
                case _:
                    raise NotImplementedError(argument)
        x, y, z = (dim_expressions.evaluate(extent, dims) for extent in launch.grid)
        mode = CHECKING if self.checking else FAST
        self.statistics = launch_on_arrays(
            library,
            launch.entry,
            (x, y, z),
            launch.block,
            launch.shared_bytes,
            arguments,
            mode,
            cluster=launch.cluster,
            awaited=awaited if EARLY_LAUNCH in launch.attributes else None,
            attributes=tuple(name for name in launch.attributes if name != EARLY_LAUNCH),
        )
        assert not counters.any(), "counters are zero between launches"


@pytest.fixture(params=[False, True], ids=["fast", "checking"])
def execution(request: pytest.FixtureRequest) -> Execution:
    """An execution in each mode of the emulator."""
    return Execution(request.param)


@pytest.fixture
def fast_execution() -> Execution:
    """An execution in fast mode."""
    return Execution(False)


@pytest.fixture
def checking_execution() -> Execution:
    """An execution with every check that the emulator can make."""
    return Execution(True)


@pytest.fixture
def assert_close() -> Callable[..., None]:
    """Holds a result against its reference within the project's bound on rounding errors."""
    return _assert_close


def _assert_close(
    y: Array, reference: Array, magnitude: Array, *, out: float, multiply: float, reduction: int
) -> None:
    """|y - ref| <= u_out |ref| + 4 (u_mul + u_acc sqrt(K)) magnitude, for every element."""
    assert y.shape == reference.shape
    accumulate = 2.0**-24 * np.sqrt(reduction)
    bound = out * np.abs(reference) + 4 * (multiply + accumulate) * magnitude + 1e-30
    error = np.abs(y - reference)
    assert not np.isnan(error).any(), "poison was read, or not every element was written"
    worst = float((error / bound).max())
    assert worst <= 1, f"the largest error is {worst:.3g} times what rounding explains"


def _tensor_map(argument: TensorMapArgument, memory: Array, dims: dict[str, int]) -> TensorMap:
    shape, strides = (
        tuple(dim_expressions.evaluate(size, dims) for size in sizes)
        for sizes in (argument.shape, argument.strides)
    )
    form = (argument.box, argument.swizzle, argument.im2col, argument.to_tf32)
    return TensorMap(memory.ctypes.data, memory.itemsize, shape, strides, *form)


def _span(tensor: Tensor, shape: tuple[int, ...]) -> int:
    """Elements from the first to the last of a tensor, padding included."""
    last = sum((n - 1) * s for n, s in zip(shape, tensor.strides, strict=True))
    return last + 1 + tensor.padding


def _view(memory: Array, tensor: Tensor, shape: tuple[int, ...]) -> Array:
    strides = tuple(s * memory.itemsize for s in tensor.strides)
    return strided(memory, shape, strides)


def _check_the_rest(memory: Array, tensor: Tensor, shape: tuple[int, ...]) -> None:
    rest = np.ones(memory.shape, bool)
    _view(rest, tensor, shape)[...] = False
    if tensor.padding:
        axis = tensor.strides.index(1)
        strides = tuple(0 if a == axis else s for a, s in enumerate(tensor.strides))
        starts = _view(np.arange(memory.size), Tensor(tensor.dtype, strides), shape).ravel()
        for i in range(shape[axis], shape[axis] + tensor.padding):
            assert not memory[starts + i].astype(np.float64).any(), "padding is zero"
            rest[starts + i] = False
    untouched = memory.view(np.uint8).reshape(memory.size, -1)[rest]
    assert (untouched == _POISON).all(), "something was written that is not the output's"


@pytest.fixture
def check_convolution() -> Callable[..., None]:
    """Executes a convolution's schedule on random data and compares it with NumPy in float64."""
    return _check_convolution


@pytest.fixture
def check_matmul() -> Callable[..., None]:
    """Executes a matrix product's schedule on random data and compares it with NumPy in float64."""
    return _check_matmul


def _check_convolution(
    execution: Execution,
    template: Any,
    problem: Convolution,
    schedule: Any,
    *,
    batch: int | None = None,
    integers: bool = False,
    seed: int = 0,
) -> None:
    rng = np.random.default_rng(seed)
    n = batch or problem.n.value
    per_group, channels = problem.k // problem.groups, problem.c // problem.groups
    filters = (problem.c, per_group) if problem.transposed else (problem.k, channels)
    x = _draw(rng, (n, problem.c, problem.h, problem.w), problem.x.dtype, integers)
    w = _draw(rng, (*filters, *problem.filter), problem.precision.storage, integers)
    packed = packings.pack(template.packing(problem, schedule), w, problem)
    memory = [execution.memory(problem.x, x), packed]
    x, w = x.astype(np.float64), w.astype(np.float64)
    limits: list[Array] = []
    if isinstance(problem, ClampedConvolution):
        limits = _limits(rng, problem, integers)
        x = np.maximum(x, limits[0].astype(np.float64)[:, None, None])
        x = np.minimum(x, limits[1].astype(np.float64)[:, None, None]) if limits[1:] else x
    products = (_convolve(x, w, problem), _convolve(np.abs(x), np.abs(w), problem))
    dims = {problem.n.free: n} if problem.n.free else {}
    _execute(
        *(execution, template, problem, schedule, memory, products, dims, integers, rng), limits
    )


def _limits(rng: np.random.Generator, problem: ClampedConvolution, integers: bool) -> list[Array]:
    """One number a channel for each limit, upper ones not below; some are infinite."""
    lower = _draw(rng, (problem.c,), problem.lower.dtype, integers)
    lower[::5] = -np.inf
    if problem.upper is None:
        return [lower]
    upper = np.maximum(lower, 0) + np.abs(_draw(rng, (problem.c,), problem.lower.dtype, integers))
    upper[::3] = np.inf
    return [lower, upper.astype(lower.dtype)]


def _check_matmul(
    execution: Execution,
    template: Any,
    problem: Matmul,
    schedule: Any,
    *,
    leading: int | None = None,
    integers: bool = False,
    seed: int = 0,
) -> None:
    rng = np.random.default_rng(seed)
    free = problem.leading.free
    size = leading or problem.leading.value
    b0, b1, m = problem.batch[0].value, problem.batch[1], problem.m.value
    if free:
        b0, m = (size, m) if problem.leading == problem.batch[0] else (b0, size)
    a = _draw(rng, _stored((b0, b1, m, problem.k), problem.a), problem.a.dtype, integers)
    memory = [execution.memory(problem.a, np.broadcast_to(a, (b0, b1, m, problem.k)))]
    if problem.b_constant:
        b = _draw(rng, (problem.k, problem.n), problem.precision.storage, integers)
        memory.append(packings.pack(template.packing(problem, schedule), b, problem))
    else:
        shape = (b0, b1, problem.k, problem.n)
        b = _draw(rng, _stored(shape, problem.b), problem.b.dtype, integers)
        memory.append(execution.memory(problem.b, np.broadcast_to(b, shape)))
    a, b = a.astype(np.float64), b.astype(np.float64)
    full = (b0, b1, m, problem.n)
    products = (np.broadcast_to(a @ b, full), np.broadcast_to(np.abs(a) @ np.abs(b), full))
    dims = {free: size // problem.leading.factor} if free else {}
    _execute(execution, template, problem, schedule, memory, products, dims, integers, rng)


def _execute(
    execution: Execution,
    template: Any,
    problem: Convolution | Matmul,
    schedule: Any,
    memory: list[Array],
    products: tuple[Array, Array],
    dims: dict[str, int],
    integers: bool,
    rng: np.random.Generator,
    limits: Sequence[Array] = (),
) -> None:
    """Draws the epilogue's operands, executes, and compares with the exact products given."""
    exact, magnitude = products
    shape = exact.shape
    wide = []
    for tensor in problem.epilogue.operands:
        operand = _draw(rng, _stored(shape, tensor), tensor.dtype, integers)
        memory.append(execution.memory(tensor, np.broadcast_to(operand, shape)))
        wide.append(np.broadcast_to(operand.astype(np.float64), shape))
    memory += limits
    y = execution.run(template, problem, schedule, memory, shape, dims)
    reference = evaluate(problem.epilogue.expression, exact, wide)
    if integers:
        np.testing.assert_array_equal(y, reference)
        return
    _assert_close(
        y,
        reference,
        magnitude + sum(np.abs(o) for o in wide),
        out=problem.y.dtype.unit_roundoff,
        multiply=problem.precision.multiply_roundoff,
        reduction=problem.reduction,
    )


def _stored(shape: tuple[int, ...], tensor: Tensor) -> tuple[int, ...]:
    """The shape with 1 where the tensor is broadcast."""
    return tuple(d if s else 1 for d, s in zip(shape, tensor.strides, strict=True))


def _draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType, integers: bool) -> Array:
    values = rng.integers(-3, 4, shape) if integers else rng.standard_normal(shape)
    return values.astype(dtype.numpy)


def _convolve(x: Array, w: Array, problem: Convolution) -> Array:
    """ONNX's Conv or ConvTranspose in float64, tap by tap."""
    n, groups = x.shape[0], problem.groups
    y = np.zeros((n, groups, problem.k // groups, problem.p, problem.q))
    grouped = x.reshape(n, groups, problem.c // groups, problem.h, problem.w)
    for r in range(problem.filter[0]):
        for s in range(problem.filter[1]):
            tap = w[:, :, r, s].reshape(groups, -1, w.shape[1])
            tap = tap.transpose(0, 2, 1) if problem.transposed else tap
            product = np.einsum("gkc,ngchw->ngkhw", tap, grouped)
            _add_tap(y, product, problem, r, s)
    return y.reshape(n, problem.k, problem.p, problem.q)


def _add_tap(y: Array, product: Array, problem: Convolution, r: int, s: int) -> None:
    """Adds one tap's products, given at every input position, where the outputs read them."""
    small, large = ((problem.h, problem.w), (problem.p, problem.q))
    if not problem.transposed:
        small, large = large, small
    positions = [
        np.arange(count) * stride - pad + tap * dilation
        for count, stride, pad, tap, dilation in zip(
            small, problem.stride, problem.pad, (r, s), problem.dilation, strict=True
        )
    ]
    inside = [(at >= 0) & (at < size) for at, size in zip(positions, large, strict=True)]
    few = np.ix_(*(np.flatnonzero(mask) for mask in inside))
    many = np.ix_(*(at[mask] for at, mask in zip(positions, inside, strict=True)))
    if problem.transposed:
        y[..., many[0], many[1]] += product[..., few[0], few[1]]
    else:
        y[..., few[0], few[1]] += product[..., many[0], many[1]]
