"""Templates of warpgroups on the GPU: against the emulator, float64, themselves, and chained with early launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wpk.build.nvrtc import load_nvrtc
from wpk.device.cuda import CudaDevice
from wpk.dims import evaluate as evaluate_size
from wpk.dtypes import DType, Precision
from wpk.emulator.emulator import Emulator
from wpk.execution import BoundArgument, BoundLaunch, Device, KernelImage, Pointer, TensorMap
from wpk.expression import Acc, Operand, apply, evaluate
from wpk.extent import Extent
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma_tiles import WgmmaSchedule
from wpk.targets.registry import find_target

Array = NDArray[Any]

REPETITIONS = 20
"""Launches of each case: what is not ordered may come out right now and then."""

CHAIN = 12
"""Launches one behind the other, each beginning before the one in front has ended."""
ACCUMULATION = 2.0**-18
"""Error of an fp32 sum relative to the largest output: tensor cores cut the bits of aligned products."""

H200 = find_target("h200")
TAIL = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))

pytestmark = pytest.mark.gpu


def image(dtype: DType, c: int, h: int, w: int) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


def convolution(
    c: int, k: int, size: int, filter: int, stride: int, n: int, precision: Precision
) -> Convolution:
    """Same padding, with bias, residual and ReLU."""
    pad, out = filter // 2, -(-size // stride)
    x, y = image(precision.storage, c, size, size), image(precision.storage, k, out, out)
    return Convolution(
        *(precision, Extent(n), c, size, size, k, out, out, (filter,) * 2, (stride,) * 2, (1, 1)),
        *((pad, pad), 1, False, x, y, Epilogue(TAIL, (Tensor(DType.FP32, (0, 1, 0, 0)), y))),
    )


def matmul(m: int, n: int, k: int, precision: Precision, *, constant: bool = True) -> Matmul:
    """A ``b`` that is no constant lies across the reduction."""
    a, b, y = (Tensor(precision.storage, (0, 0, columns, 1)) for columns in (k, n, n))
    epilogue = Epilogue(TAIL, (Tensor(DType.FP32, (0, 0, 0, 1)), y))
    return Matmul(precision, (Extent(1), 1), Extent(m), n, k, a, b, constant, y, epilogue)


HALF, BRAIN = Precision.FP16, Precision.BF16
PROBLEMS: dict[str, Convolution | Matmul] = {
    "64 of 56x56": convolution(64, 64, 56, 3, 1, 1, HALF),
    "128 of 28x28": convolution(128, 128, 28, 3, 1, 3, HALF),
    "256 of 14x14": convolution(256, 256, 14, 3, 1, 1, HALF),
    "512 of 7x7": convolution(512, 512, 7, 3, 1, 3, BRAIN),
    "stride 2": convolution(128, 256, 28, 3, 2, 2, HALF),
    "stride 2, 1x1": convolution(64, 128, 56, 1, 2, 1, BRAIN),
    "1x1": convolution(256, 64, 56, 1, 1, 1, HALF),
    "5x5, 72 channels": convolution(72, 40, 9, 5, 1, 5, HALF),
    "24 channels": convolution(24, 144, 13, 3, 1, 2, BRAIN),
    "a product": matmul(100, 72, 200, HALF),
    "a layer of DistilBERT": matmul(128, 768, 3072, BRAIN),
    "b across": matmul(130, 136, 264, HALF, constant=False),
}
SCHEDULES = [
    WgmmaSchedule(64, 64, 64, 4),
    WgmmaSchedule(64, 64, 64, 2, early=1),
    WgmmaSchedule(64, 32, 64, 3, split=3),
    WgmmaSchedule(64, 64, 128, 3, split=4, early=1),
    WgmmaSchedule(64, 16, 128, 2),
    WgmmaSchedule(128, 128, 64, 4),
    WgmmaSchedule(128, 256, 64, 2),
    WgmmaSchedule(128, 64, 128, 2, split=2, early=1),
    WgmmaSchedule(64, 64, 64, 2, split=4, cluster=1, early=1),
    WgmmaSchedule(128, 128, 64, 2, split=2, cluster=1),
    WgmmaSchedule(64, 32, 64, 4, split=8, cluster=1, early=1),
    WgmmaSchedule(64, 16, 256, 2, split=4, cluster=1, early=1),
    WgmmaSchedule(64, 64, 192, 3, split=3, cluster=1, early=1),
    WgmmaSchedule(64, 32, 256, 2),
]


def template(problem: Convolution | Matmul) -> Any:
    return TEMPLATE_OF["conv_wgmma" if isinstance(problem, Convolution) else "gemm_wgmma"]


def cases() -> Iterator[Any]:
    for name, problem in PROBLEMS.items():
        for schedule in SCHEDULES:
            if template(problem).why_illegal(problem, schedule, H200) is None:
                yield pytest.param(problem, schedule, id=f"{name}: {schedule}")


@dataclass(frozen=True)
class Operands:
    """Memory of a problem's inputs, what it must give, and how far off rounding may be."""

    inputs: tuple[Array, ...]
    expected: Array
    allowed: Array


def operands(problem: Convolution | Matmul, schedule: WgmmaSchedule, seed: int) -> Operands:
    """Random numbers, dense in memory, and the result in float64."""
    rng = np.random.default_rng(seed)
    dtype = problem.precision.storage.numpy

    def draw(shape: tuple[int, ...], kind: Any = dtype) -> Array:
        return np.asarray(rng.standard_normal(shape)).astype(kind)

    if isinstance(problem, Convolution):
        n = problem.n.value
        x = draw((n, problem.h, problem.w, problem.c))
        w = draw((problem.k, problem.c, *problem.filter))
        columns = w.transpose(0, 2, 3, 1).reshape(problem.k, -1)
        rows = _patches(x, problem).reshape(-1, columns.shape[1])
    else:
        x, w = draw((problem.m.value, problem.k)), draw((problem.k, problem.n))
        rows, columns = x, w.T
    bias, residual = draw((columns.shape[0],), np.float32), draw((len(rows), columns.shape[0]))
    rows, columns = rows.astype(np.float64), columns.astype(np.float64)
    wide = [np.broadcast_to(o.astype(np.float64), residual.shape) for o in (bias, residual)]
    expected = evaluate(problem.epilogue.expression, rows @ columns.T, wide)
    name = template(problem).packing(problem, schedule)
    packed = w if name is None else packings.pack(name, w, problem)
    magnitude = np.abs(rows) @ np.abs(columns).T + sum(np.abs(o) for o in wide)
    roundoff = 4 * 2.0**-24 * np.sqrt(columns.shape[1])
    allowed = problem.y.dtype.unit_roundoff * np.abs(expected) + (
        ACCUMULATION * np.abs(expected).max() + roundoff * magnitude
    )
    return Operands((x, packed, bias, residual), expected, allowed)


def _patches(x: Array, problem: Convolution) -> Array:
    """Every pixel's window as (r, s, c)."""
    (top, left), (r, s), (down, right) = problem.pad, problem.filter, problem.stride
    padded = np.pad(x, ((0, 0), (top, r), (left, s), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (r, s), axis=(1, 2))
    picked = windows[:, ::down, ::right][:, : problem.p, : problem.q]
    return picked.transpose(0, 1, 2, 4, 5, 3)


class Step:
    """A launch over memory of a device."""

    def __init__(
        self,
        device: Device,
        problem: Convolution | Matmul,
        schedule: WgmmaSchedule,
        memory: Operands,
    ) -> None:
        self.device, self.problem = device, problem
        (source,) = template(problem).instantiate(problem, schedule)
        cubin = b"" if device.executes_source else load_nvrtc().compile(source, "sm_90a").cubin
        device.load(KernelImage(source.digest, source, cubin))
        (self.launch,) = template(problem).launches(problem, schedule)
        self.inputs = tuple(self._place(array) for array in memory.inputs)
        self.sizes = tuple(array.itemsize for array in memory.inputs)
        self.shape = memory.expected.shape
        self.bytes = memory.expected.size * problem.y.dtype.bytes
        self.output = device.allocate(self.bytes)
        self.workspace, self.counters = self._scratch(self.launch)

    def _place(self, array: Array) -> int:
        address = self.device.allocate(array.nbytes)
        self.device.write(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return address

    def _scratch(self, launch: Launch) -> tuple[int, int]:
        work = [a.bytes for a in launch.arguments if isinstance(a, WorkspaceArgument)]
        counts = [a.count for a in launch.arguments if isinstance(a, CounterArgument)]
        size = evaluate_size(work[0], {}) if work else 16
        zeros = np.zeros((evaluate_size(counts[0], {}) if counts else 4), np.int32)
        return self._place(np.full(size, 0xFF, np.uint8)), self._place(zeros)

    def bound(self, x: int | None = None, output: int | None = None) -> BoundLaunch:
        """The launch, with another input or output in the place of its own."""
        inputs = (self.inputs[0] if x is None else x, *self.inputs[1:])
        arguments = tuple(self._argument(a, inputs, output) for a in self.launch.arguments)
        gx, gy, gz = (evaluate_size(size, {}) for size in self.launch.grid)
        return BoundLaunch(
            *(self.launch.kernel, self.launch.entry, (gx, gy, gz), self.launch.block),
            *(self.launch.cluster, self.launch.shared_bytes, arguments, self.launch.attributes),
        )

    def _argument(self, argument: Any, inputs: Sequence[int], output: int | None) -> BoundArgument:
        match argument:
            case InputArgument(index):
                return Pointer(inputs[index])
            case SizeArgument(expression):
                return evaluate_size(expression, {})
            case TensorMapArgument(index):
                shape, strides = (
                    tuple(evaluate_size(size, {}) for size in sizes)
                    for sizes in (argument.shape, argument.strides)
                )
                form = (argument.box, argument.swizzle, argument.im2col)
                return TensorMap(inputs[index], self.sizes[index], shape, strides, *form)
            case OutputArgument():
                return Pointer(self.output if output is None else output)
            case WorkspaceArgument():
                return Pointer(self.workspace)
            case _:
                return Pointer(self.counters)

    def run(self) -> Array:
        """What one launch writes over memory that holds NaN before."""
        self.device.write(self.output, np.full(self.bytes, 0xFF, np.uint8))
        self.device.launch(self.bound())
        return self.read(self.output)

    def read(self, address: int) -> Array:
        memory = self.device.read(address, self.bytes)
        return memory.view(self.problem.y.dtype.numpy).reshape(self.shape)

    def free(self) -> None:
        for address in (*self.inputs, self.output, self.workspace, self.counters):
            self.device.free(address)


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must have wgmma."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


@pytest.mark.parametrize(("problem", "schedule"), list(cases()))
def test_agrees_with_float64_and_the_emulator_and_repeats_itself(
    hopper: CudaDevice, problem: Convolution | Matmul, schedule: WgmmaSchedule
) -> None:
    memory = operands(problem, schedule, seed=5)
    step = Step(hopper, problem, schedule, memory)
    first = step.run()
    error = np.abs(first.astype(np.float64) - memory.expected)
    assert (error <= memory.allowed).all(), f"{float((error / memory.allowed).max())} times too far"
    for _ in range(REPETITIONS):
        np.testing.assert_array_equal(step.run(), first)
    step.free()
    emulated = Step(Emulator(), problem, schedule, memory).run().astype(np.float64)
    difference = np.abs(first.astype(np.float64) - emulated)
    assert (difference <= 2 * memory.allowed).all()


@pytest.mark.parametrize("schedule", [s for s in SCHEDULES if s.early], ids=str)
@pytest.mark.parametrize("name", ["256 of 14x14", "64 of 56x56"])
def test_a_chain_of_early_launches_gives_what_one_after_the_other_gives(
    hopper: CudaDevice, name: str, schedule: WgmmaSchedule
) -> None:
    """Each launch reads what the one in front wrote, and writes what the one before that read."""
    problem = PROBLEMS[name]
    if template(problem).why_illegal(problem, schedule, H200) is not None:
        pytest.skip("the schedule is not legal for this problem")
    memory = operands(problem, schedule, seed=6)
    # Small filters: values stay where fp16 holds them from launch to launch.
    x, packed, bias, residual = memory.inputs
    memory = replace(memory, inputs=(x, (packed * 0.02).astype(packed.dtype), bias, residual))
    step = Step(hopper, problem, schedule, memory)
    other = hopper.allocate(step.bytes)
    places = (step.output, other)

    def launches() -> list[BoundLaunch]:
        first = [step.bound(output=places[0])]
        rest = [step.bound(x=places[(i + 1) % 2], output=places[i % 2]) for i in range(1, CHAIN)]
        return first + rest

    for launch in launches():
        hopper.launch(replace(launch, attributes=()))
        hopper.synchronize()
    expected = step.read(places[(CHAIN - 1) % 2])
    assert np.isfinite(expected.astype(np.float64)).all()
    graph = hopper.capture(launches())
    for _ in range(REPETITIONS):
        graph.replay()
        np.testing.assert_array_equal(step.read(places[(CHAIN - 1) % 2]), expected)
    hopper.free(other)
    step.free()
