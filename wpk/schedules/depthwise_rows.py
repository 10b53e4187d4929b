"""Depthwise convolution down the rows of an image (depthwise_rows.cuh): large filters, and many images."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from wpk.dims import ceil_div, product
from wpk.expression import flops
from wpk.performance import Columns, Floats, Work
from wpk.problems import Convolution
from wpk.schedules.block_limits import shared_limit
from wpk.schedules.depthwise import DepthwiseSchedule, DepthwiseTemplate
from wpk.schedules.image import Image
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access, short_run
from wpk.schedules.template import Schedule
from wpk.targets import Target

_DEPTHWISE, _ANY = DepthwiseTemplate(), DepthwiseSchedule(1, 1, 32)
_WORD = 4
_MOST_SUMS = 128
_LEAST_THREADS = 128
"""Of an SM: four warps, one for each scheduler."""

_OTHER_REGISTERS = 36  # addresses, the epilogue's operands; read from ptxas reports
_ROW_SLOTS, _LOAD_SLOTS, _STORE_SLOTS = 40.0, 4.0, 6.0
"""Issue slots of a thread for an input row, for a load of a pixel's channels with its bounds, and for a stored pixel; from
nvdisasm's listings."""


@dataclass(frozen=True)
class DepthwiseRowsSchedule(Schedule):
    """Parameters of depthwise_rows.cuh.

    Attributes:
        vector: Channels of a thread.
        pixels: Neighbouring output columns of a thread.
        rows: Output rows of a strip, which a thread computes one after the other.
        lanes: Neighbouring threads that have neighbouring channels.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    pixels: int
    rows: int
    lanes: int
    threads: int
    early: int = 0


class DepthwiseRowsTemplate(SingleKernelTemplate[Convolution, DepthwiseRowsSchedule]):
    """Rows are loaded and converted once for all filter rows; filters lie in shared memory; sums are fp32."""

    name: ClassVar[str] = "depthwise_rows"
    version: ClassVar[int] = 2
    problem_type = Convolution
    schedule_type = DepthwiseRowsSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """Refuse what depthwise refuses, and rows that are not under neighbouring output rows."""
        if (reason := _DEPTHWISE.why_not(problem, target)) is not None:
            return reason
        if problem.transposed:
            return "transposed: an output row is under some rows of the filter alone"
        if problem.stride[0] != 1 or problem.dilation[0] != 1:
            return (
                f"a stride of {problem.stride[0]} and a dilation of {problem.dilation[0]} down the image: "
                "output rows begin one below the other"
            )
        if problem.filter[0] == 1:
            return "a filter of one row: no input row is under two output rows"
        if not Image.of(problem).channels_fastest:
            return "neighbours in the output are no channels"
        return None

    def packing(self, problem: Convolution, schedule: DepthwiseRowsSchedule) -> str:
        """Return the packing: rows of channels, tap by tap."""
        return "depthwise_rsk"

    def _axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """Channels, columns and rows of a thread; threads along the channels, and of a block.

        Hardly any where strips of seven rows leave the GPU idle: single rows (depthwise) do not.
        """
        image = Image.of(problem)
        fills = image.items(2, 4, 7) * problem.n.value >= target.sm_count * _LEAST_THREADS
        rows, pixels = ((14, 7, 28, 56), (8, 4, 7, 2)) if fills else ((7,), (4, 2))
        return {
            "vector": image.vectors(problem.x),
            "pixels": tuple(n for n in pixels if n < 2 * problem.q or n == 2),
            "rows": tuple(n for n in rows if n < 2 * problem.p or n == 7),
            "lanes": (32, 16, 8, 4) if fills else (16, 8),
            "threads": (128, 256) if fills else (128,),
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        """Sums stay in registers; threads of a block share whole runs of channels."""
        return (
            Limit(
                f"{problem.filter[0]} * pixels * vector <= {_MOST_SUMS}",
                f"a thread holds at most {_MOST_SUMS} sums",
            ),
            Limit("threads % 32 == 0", "a block has whole warps"),
            Limit("threads % lanes == 0", "a block's threads have whole runs of channels"),
        )

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        """No more lanes than channels, and what the target holds."""
        image = Image.of(problem)
        channels = image.c + image.padding_c
        return (
            Limit(f"lanes * vector < {2 * channels}", f"there are {channels} channels"),
            shared_limit(target),
        )

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """Count the work: an input row is a step, loaded while the one above is multiplied."""
        image, size = Image.of(problem), problem.x.dtype.bytes
        vector, pixels, rows, lanes, threads = (
            columns[name].astype(float) for name in ("vector", "pixels", "rows", "lanes", "threads")
        )
        strips = np.ceil(problem.p / rows)
        tiles = problem.n.value * strips * np.ceil(problem.q / pixels)
        runs = np.ceil((image.c + image.padding_c) / (vector * lanes))
        blocks = ceil_divide(tiles, threads / lanes) * runs
        walked = rows + problem.filter[0] - 1
        span = (pixels - 1) * problem.stride[1] + (problem.filter[1] - 1) * problem.dilation[1] + 1
        taps, outputs = prod(problem.filter), vector * pixels * rows
        loaded = blocks * threads * walked * span * vector * size
        words = np.ceil(vector * size / _WORD)
        converted = np.where(size < _WORD, vector, 0.0)
        row_slots = _ROW_SLOTS + span * (_LOAD_SLOTS + words + converted)
        moved = problem.filter[0] * pixels * vector
        slots = walked * (row_slots + moved) + rows * pixels * _STORE_SLOTS
        return Stream(
            element_bytes=size,
            flops=blocks * threads * outputs * (2.0 * taps + flops(problem.epilogue.expression)),
            loads=loaded
            * narrow_access(vector, size)
            / _shared_by_l1(pixels, span)
            * short_run(vector * lanes, size)
            + image.operand_bytes(problem),
            stores=prod(problem.accesses()[1].sizes) * problem.y.dtype.bytes,
            blocks=blocks,
            threads=threads,
            registers=problem.filter[0] * pixels * vector
            + span * (vector + 2 * words)
            + _OTHER_REGISTERS,
            steps=walked,
            stages=2.0,
            shared_bytes=_shared_bytes(problem, columns),
            thread_loads=rows * taps * np.maximum(1.0, vector / 2),
            early=columns["early"] == 1,
            slots=slots,
        ).work(target)

    def kernel(self, problem: Convolution, schedule: DepthwiseRowsSchedule) -> KernelPlan:
        """Members are those of depthwise, but for the order of its items."""
        image = Image.of(problem)
        members = dict(_DEPTHWISE.kernel(problem, _ANY).members)
        channels = schedule.lanes * schedule.vector
        tiles = -(-problem.p // schedule.rows) * -(-problem.q // schedule.pixels)
        return KernelPlan(
            members=members,
            grid=(
                ceil_div(product(problem.n.expression, tiles), schedule.threads // schedule.lanes),
                -(-(image.c + image.padding_c) // channels),
                1,
            ),
            threads=schedule.threads,
            shared_bytes=int(_shared_bytes(problem, schedule.columns())[0]),
        )


def _shared_bytes(problem: Convolution, columns: Columns) -> Floats:
    """Count the bytes of a block's filters, as floats."""
    taps = prod(problem.filter)
    shared: Floats = (taps * columns["lanes"] * columns["vector"] * _WORD).astype(np.float64)
    return shared


def _shared_by_l1(pixels: Floats, span: Floats) -> Floats:
    """How often L1 has what neighbours in a row load, too."""
    shared: Floats = span / pixels
    return shared
