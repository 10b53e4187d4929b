"""Depthwise convolution on the ordinary cores, plain or transposed, with a channel multiplier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.expression import flops
from wpk.performance import Columns, Work
from wpk.problems import Convolution, Tensor
from wpk.schedules.image import ORDER, Image, both_axes, image_members
from wpk.schedules.limit import Figures, Limit
from wpk.schedules.packings import depthwise_row
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access
from wpk.schedules.strided import constants_mask, cpp_tensor, is_wide, why_operand_missing
from wpk.schedules.template import Schedule
from wpk.schedules.tiles.depthwise import TILE_LOADS, TILE_PRODUCTS, TILE_WORDS, DepthwiseTile
from wpk.schedules.unit import Type
from wpk.targets import Target

MAX_HELD = 160
"""Floats that a thread may hold in sums and a row of weights."""

_FULL_THREADS = 256
"""Of an SM, for which several rows a thread pay."""

_ROWS_THREADS, _ROWS_PIXELS = 128, 2
"""The least of a tile of several rows: it is for a GPU that is full, and neither smaller blocks nor single
columns have less to load."""


@dataclass(frozen=True)
class DepthwiseSchedule(Schedule):
    """Parameters of depthwise.cuh.

    Attributes:
        vector: Channels of a thread.
        pixels: Neighbouring output columns of a thread.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
        rows: Neighbouring output rows of a thread, which loads each input row once for all of them.
    """

    vector: int
    pixels: int
    threads: int
    early: int = 0
    rows: int = 1


class DepthwiseTemplate(SingleKernelTemplate[Convolution, DepthwiseSchedule]):
    """Inputs and weights are loaded once for all outputs of a thread's tile; sums are fp32."""

    name: ClassVar[str] = "depthwise"
    version: ClassVar[int] = 7
    problem_type = Convolution
    schedule_type = DepthwiseSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """Refuse groups of several channels; everything else depthwise is carried."""
        if not problem.is_depthwise:
            return (
                f"{problem.groups} groups of {problem.c // problem.groups} channels: "
                "a depthwise convolution has as many groups as channels, and more than one"
            )
        if problem.precision.is_quantised:
            return f"products of {problem.precision.value}: sums of few taps are computed in fp32"
        return why_operand_missing(problem) or Image.of(problem).why_not(problem)

    def packing(self, problem: Convolution, schedule: DepthwiseSchedule) -> str:
        """Return the packing: rows of channels, tap by tap."""
        return "depthwise_rsk"

    def _axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """Channels, columns and rows a thread, threads a block."""
        pixels = tuple(n for n in (4, 2, 1, 7, 8, 3) if n < 2 * problem.q)
        return {
            "vector": Image.of(problem).vectors(problem.x),
            "pixels": pixels,
            "threads": (128, 64, 256, 32),
            "rows": _rows_axis(problem, target),
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        """Vectors run along the channels; sums and weights stay in registers."""
        return (
            *Image.of(problem).limits(),
            Limit(
                f"vector * (pixels + {problem.filter[1]}) <= {MAX_HELD}",
                f"a thread holds at most {MAX_HELD} sums and weights",
            ),
        )

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        return (
            Limit(
                "rows == 1 or is_held == 1",
                f"of several rows, a thread has at most {TILE_WORDS} words, {TILE_PRODUCTS} products "
                f"and {TILE_LOADS} loads of whole words, by a filter that is not transposed",
            ),
            Limit(
                f"rows == 1 or (threads >= {_ROWS_THREADS} and pixels >= {_ROWS_PIXELS})",
                f"several rows go with {_ROWS_PIXELS} columns and {_ROWS_THREADS} threads or more",
            ),
        )

    def figures(
        self, problem: Convolution, columns: Columns, work: Callable[[], Work], target: Target
    ) -> Figures:
        """Return whether tiles hold the filter whole."""
        del work, target
        return {"is_held": DepthwiseTile.of(problem, columns).is_held}

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart single rows and tiles of several: these were not held against a measurement yet."""
        return np.asarray(columns["rows"] > 1, np.int64)

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """Count the work: table 6 with one input channel an output; table 8's input tile of a block, its weights."""
        image, thread = Image.of(problem), DepthwiseTile.of(problem, columns)
        vector, pixels = columns["vector"].astype(float), columns["pixels"].astype(float)
        threads, rows = columns["threads"].astype(float), columns["rows"].astype(float)
        row_items = ceil_divide(problem.q + image.padding_q, pixels)
        chunks = ceil_divide(problem.k + image.padding_c, vector)
        items = problem.n.value * ceil_divide(problem.p, rows) * row_items * chunks
        blocks = ceil_divide(items, threads)
        taps, size = prod(problem.filter), problem.x.dtype.bytes
        outputs = vector * pixels * rows
        tile = image.block_inputs(
            outputs * threads, *_walk(problem), problem.dilation, rows=rows
        ) / (problem.k // problem.c)
        weights = taps * threads * vector  # each thread's own; L1 holds what neighbours share
        loaded = tile + weights.clip(max=taps * problem.k)
        return Stream(
            element_bytes=size,
            flops=items * outputs * (2 * taps + flops(problem.epilogue.expression)),
            loads=blocks * loaded * size * narrow_access(vector, size)
            + image.operand_bytes(problem),
            stores=prod(problem.accesses()[1].sizes) * problem.y.dtype.bytes,
            blocks=blocks,
            threads=threads,
            registers=thread.registers,
            steps=thread.steps,
            stages=thread.stages,
            early=columns["early"] == 1,
            slots=thread.slots,
        ).work(target)

    def kernel(self, problem: Convolution, schedule: DepthwiseSchedule) -> KernelPlan:
        """Items are runs of channels at several columns."""
        image = Image.of(problem)
        items = image.items(schedule.vector, schedule.pixels, schedule.rows)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, ORDER)),
                "Weight": Type(cpp_tensor(_weight(problem), (0, 1, 2))),
                **image_members(problem),
                "operand_constants": constants_mask(problem.epilogue.operands),
                "transposed": problem.transposed,
                "multiplier": problem.k // problem.c,
                **both_axes("filter", problem.filter),
                "wide": is_wide(problem.n, items),
            },
            grid=linear_grid(problem.n, items, schedule.threads),
            threads=schedule.threads,
        )


def _rows_axis(problem: Convolution, target: Target) -> tuple[int, ...]:
    """Values to try: single rows alone where tiles of four pixels would leave the GPU half empty."""
    image = Image.of(problem)
    if problem.transposed:
        return (1,)
    vector = image.vectors(problem.x)[0]
    tiles = image.items(vector, 2, 2) * problem.n.value
    pays = tiles >= target.sm_count * _FULL_THREADS
    return tuple(n for n in (1, 7, 4) if n < 2 * problem.p) if pays else (1,)


def _walk(problem: Convolution) -> tuple[tuple[int, int], tuple[int, int]]:
    """Window and stride over the input; a transposed filter touches one input a stride."""
    if not problem.transposed:
        return problem.filter, problem.stride
    r, s = (-(-size // step) for size, step in zip(problem.filter, problem.stride, strict=True))
    return (r, s), (1, 1)


def _weight(problem: Convolution) -> Tensor:
    """The packed weight over (r, s, k); of the storage type of the precision."""
    dtype: DType = problem.precision.storage
    row = depthwise_row(problem, dtype.bytes)
    return Tensor(dtype, (problem.filter[1] * row, row, 1))
