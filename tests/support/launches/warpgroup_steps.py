"""Launches of the templates of warpgroups over memory of a device, and what they must give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.problems.warpgroup_layers import moments_of
from wpk.build import load_nvrtc
from wpk.dims import evaluate as evaluate_size
from wpk.dtypes import Precision
from wpk.execution import BoundArgument, BoundLaunch, Device, KernelImage, Pointer, TensorMap
from wpk.expression import evaluate
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.libraries.definition import normalise, row_scales
from wpk.problems import ClampedConvolution, Convolution, Matmul, NormedMatmul
from wpk.schedules import packings
from wpk.schedules.conv_halo import HaloSchedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.tiles import WgmmaSchedule

Array = NDArray[Any]

ACCUMULATION = 2.0**-18
"""Error of an fp32 sum relative to the largest output: tensor cores cut the bits of aligned products."""


Tile = WgmmaSchedule | HaloSchedule


def template(problem: Convolution | Matmul, schedule: Tile) -> Any:
    """Of warpgroups, for a problem and a schedule."""
    if isinstance(schedule, HaloSchedule):
        return TEMPLATE_OF["conv_halo"]
    return TEMPLATE_OF["conv_wgmma" if isinstance(problem, Convolution) else "gemm_wgmma"]


@dataclass(frozen=True)
class Operands:
    """Memory of a problem's inputs, what it must give, and how far off rounding may be."""

    inputs: tuple[Array, ...]
    expected: Array
    allowed: Array


def operands(problem: Convolution | Matmul, schedule: Tile, seed: int) -> Operands:
    """Random numbers, dense in memory, and the result in float64."""
    rng = np.random.default_rng(seed)
    dtype = problem.precision.storage.numpy

    def draw(shape: tuple[int, ...], kind: Any = dtype) -> Array:
        return np.asarray(rng.standard_normal(shape)).astype(kind)

    if isinstance(problem, Convolution):
        x = draw((problem.n.value, problem.h, problem.w, problem.c))
        w = draw((problem.k, problem.c // problem.groups, *problem.filter))
    else:
        x, w = draw((problem.m.value, problem.k)), draw((problem.k, problem.n))
    return operands_of(problem, schedule, x, w, draw)


def operands_of(
    problem: Convolution | Matmul,
    schedule: Tile,
    x: Array,
    w: Array,
    draw: Callable[..., Array],
) -> Operands:
    """Those of given factors; ``draw`` makes bias, residual and limits."""
    behind: list[Array] = []
    if isinstance(problem, Convolution):
        columns = _over_all_channels(w, problem).transpose(0, 2, 3, 1).reshape(problem.k, -1)
        kept = x
        if isinstance(problem, ClampedConvolution):
            low = draw((problem.c,))
            behind = [low, np.maximum(low, 0) + np.abs(low)][: len(problem.limits)]
            kept = np.clip(x, low, behind[1] if behind[1:] else None)
        rows = _patches(kept, problem).reshape(-1, columns.shape[1])
    else:
        rows, columns = x, w.T
    shapes = ((columns.shape[0],), (len(rows), columns.shape[0]))
    epilogue = problem.epilogue.operands
    others = [draw(shape, each.dtype.numpy) for shape, each in zip(shapes, epilogue, strict=False)]
    rows, columns = rows.astype(np.float64), columns.astype(np.float64)
    shape = (len(rows), len(columns))
    wide = [np.broadcast_to(o.astype(np.float64), shape) for o in others]
    read, sizes = rows, np.abs(rows)
    if isinstance(problem, NormedMatmul):
        read, sizes = normalise(rows, problem), np.abs(rows) * row_scales(rows, problem)
        behind = [] if problem.sums is None else [columns.sum(axis=1).astype(np.float32)]
        if problem.moments is not None:
            behind.append(moments_of(rows, problem.kind).astype(np.float32))
    expected = evaluate(problem.epilogue.expression, read @ columns.T, wide)
    name = template(problem, schedule).packing(problem, schedule)
    packed = w if name is None else packings.pack(name, w, problem)
    magnitude = sizes @ np.abs(columns).T
    # Factors are rounded as they are multiplied where memory holds more; of fp32 2^-22 is left out.
    factors = {Precision.TF32: 2.0**-10, Precision.FP32: 2.0**-21}.get(problem.precision, 0.0)
    cut = 0.0 if problem.precision is Precision.FP32 else ACCUMULATION
    summed = columns.shape[1] / (problem.groups if isinstance(problem, Convolution) else 1)
    roundoff = factors + 4 * 2.0**-24 * np.sqrt(summed)
    allowed = problem.y.dtype.unit_roundoff * np.abs(expected) + (
        cut * np.abs(expected).max() + roundoff * (magnitude + sum(np.abs(o) for o in wide))
    )
    return Operands((x, packed, *others, *behind), expected, allowed)


def _over_all_channels(w: Array, problem: Convolution) -> Array:
    """Filters of groups as filters of all channels, (k, c, r, s): zeros stand for what another group reads."""
    of_all = np.zeros((problem.k, problem.c, *problem.filter), w.dtype)
    filters, channels = problem.k // problem.groups, problem.c // problem.groups
    for group in range(problem.groups):
        own = slice(group * filters, (group + 1) * filters)
        of_all[own, group * channels : (group + 1) * channels] = w[own]
    return of_all


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
        schedule: Tile,
        memory: Operands,
    ) -> None:
        self.device, self.problem = device, problem
        (source,) = template(problem, schedule).instantiate(problem, schedule)
        cubin = b"" if device.executes_source else load_nvrtc().compile(source, "sm_90a").cubin
        device.load(KernelImage(source.digest, source, cubin))
        (self.launch,) = template(problem, schedule).launches(problem, schedule)
        self.inputs = tuple(self._place(array) for array in memory.inputs)
        self.sizes = tuple(array.itemsize for array in memory.inputs)
        self.shape = memory.expected.shape
        self.bytes = memory.expected.size * problem.y.dtype.bytes
        self.output = device.allocate(self.bytes)
        _, *others = problem.writes()
        self.others = [(device.allocate(each.distinct_bytes), each) for each in others]
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

    def bound(
        self, x: int | None = None, output: int | None = None, residual: int | None = None
    ) -> BoundLaunch:
        """The launch, with other inputs or another output in the place of its own; a residual is the fourth input."""
        inputs = (self.inputs[0] if x is None else x, *self.inputs[1:])
        if residual is not None:
            inputs = (*inputs[:3], residual, *inputs[4:])
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
                form = (argument.box, argument.swizzle, argument.im2col, argument.to_tf32)
                return TensorMap(inputs[index], self.sizes[index], shape, strides, *form)
            case OutputArgument(0):
                return Pointer(self.output if output is None else output)
            case OutputArgument(index):
                return Pointer(self.others[index - 1][0])
            case WorkspaceArgument():
                return Pointer(self.workspace)
            case _:
                return Pointer(self.counters)

    def run(self) -> Array:
        """What one launch writes over memory that holds NaN before."""
        self.device.write(self.output, np.full(self.bytes, 0xFF, np.uint8))
        for address, each in self.others:
            self.device.write(address, np.full(each.distinct_bytes, 0xFF, np.uint8))
        self.device.launch(self.bound())
        return self.read(self.output)

    def moments(self) -> Array:
        """What the last launch wrote beside its rows."""
        ((address, each),) = self.others
        memory = self.device.read(address, each.distinct_bytes)
        return memory.view(np.float32).reshape(*self.shape[:-1], each.sizes[-1])

    def read(self, address: int) -> Array:
        memory = self.device.read(address, self.bytes)
        return memory.view(self.problem.y.dtype.numpy).reshape(self.shape)

    def free(self) -> None:
        others = (address for address, _ in self.others)
        for address in (*self.inputs, self.output, *others, self.workspace, self.counters):
            self.device.free(address)
