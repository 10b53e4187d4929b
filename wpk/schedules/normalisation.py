"""Softmax, log-softmax, layer norm and RMS norm of rows, with element-wise work before and after."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from wpk.expression import cpp_type, flops
from wpk.performance import Columns, Work
from wpk.problems import Normalisation, NormKind
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access
from wpk.schedules.strided import (
    constants_mask,
    cpp_tensor,
    cpp_tensors,
    is_wide,
    moved_bytes,
    vector_widths,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Enumerator, Type, fp32_bits
from wpk.targets import Target

MAX_CACHED = 64
"""Words of a row that a thread may keep."""

_WARP = 32
_PARTS = (16, 8, 4)
"""Lanes of a warp that may have a row: more rows a warp, and fewer idle lanes where rows are short."""

_MOST_SHARED = 256
"""Threads of a block of several rows: larger ones only wait longer for a place on an SM."""

_MOST_RUNS = 4
"""Vectors of a lane that shares a row with less than a warp: with more of them a warp would be as fast."""

OUTER_AXES = 3
KINDS = {
    NormKind.SOFTMAX: "softmax",
    NormKind.LOG_SOFTMAX: "logSoftmax",
    NormKind.LAYER: "layer",
    NormKind.RMS: "rms",
}
PASSES = {NormKind.SOFTMAX: 3, NormKind.LOG_SOFTMAX: 3, NormKind.LAYER: 3, NormKind.RMS: 2}
VALUE_FLOPS = {NormKind.SOFTMAX: 20, NormKind.LOG_SOFTMAX: 12, NormKind.LAYER: 6, NormKind.RMS: 3}
"""Operations an element as the kernel does them: softmax takes the exponential twice."""

_SLOTS, _EXCHANGE_SLOTS = 80.0, 2.0
"""Issue slots of a thread besides those of its elements, and of a step of a reduction over lanes; from nvdisasm's listings."""

_EXCHANGE_CYCLES, _MEETING_CYCLES = 27.0, 100.0
"""Latency of a step over lanes, a shuffle and an addition (23 and 4, arXiv 1804.06826), and of the warps of a block
that meet: two barriers and loads of shared memory."""


@dataclass(frozen=True)
class NormalisationSchedule(Schedule):
    """Parameters of normalisation.cuh.

    Attributes:
        vector: Neighbouring elements of a thread.
        threads: Threads that share a row: lanes of a warp, or warps of a block.
        rows: Rows of a block.
        cached: Whether the prologue's values stay in registers between passes.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    threads: int
    rows: int
    cached: int
    early: int = 0

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows


class NormalisationTemplate(SingleKernelTemplate[Normalisation, NormalisationSchedule]):
    """Lanes of a warp or a block to a row; statistics are fp32, a layer norm's in two passes."""

    name: ClassVar[str] = "normalisation"
    version: ClassVar[int] = 7
    problem_type = Normalisation
    schedule_type = NormalisationSchedule

    def why_not(self, problem: Normalisation, target: Target) -> str | None:
        """Refuse too many axes, empty rows, those of several lines, 64-bit offsets and padding not at a row's end."""
        if len(problem.outer) > OUTER_AXES:
            return f"{len(problem.outer)} outer axes, at most {OUTER_AXES} are carried"
        if problem.cols == 0:
            return "rows are empty"
        if problem.lines > 1:
            return f"a row has {problem.lines} lines, one is carried"
        operands = problem.epilogue.operands
        missing = why_operand_missing(problem)
        shape = (1, *problem.outer[1:], problem.cols)
        reason = missing or why_unaddressable([*problem.inputs, problem.y, *operands], shape)
        return reason or why_unpaddable(problem.y, (len(problem.outer),))

    def _axes(self, problem: Normalisation, target: Target) -> dict[str, tuple[int, ...]]:
        """Vector, threads a row, rows a block, cached or read again."""
        tensors = [*problem.inputs, problem.y, *problem.epilogue.operands]
        extent = problem.cols + problem.y.padding
        return {
            "vector": vector_widths(tensors, len(problem.outer), extent),
            "threads": (_WARP, *_PARTS, 64, 128, 256, 512, 1024),
            "rows": (4, 1, 2, 8, 16, 32),
            "cached": (1, 0),
        }

    def _limits(self, problem: Normalisation) -> Sequence[Limit]:
        """What is cached fits the registers; only rows of a warp or less share a block."""
        room = problem.cols + problem.y.padding
        most = MAX_CACHED * 4 // problem.numbers.bytes
        return (
            Limit(
                f"threads % {_WARP} == 0 or threads in {_PARTS}",
                "a row belongs to whole warps, or to 4, 8 or 16 lanes of one",
            ),
            Limit(f"rows == 1 or threads <= {_WARP}", "only rows of a warp or less share a block"),
            Limit(f"threads * rows % {_WARP} == 0", "a block has whole warps"),
            Limit(
                f"cached == 0 or ceil_div({room}, vector * threads) * vector <= {most}",
                f"a thread keeps at most {most} values",
            ),
        )

    def _target_limits(self, problem: Normalisation, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no warp is idle, and no lane has much of a row alone."""
        most, room = target.max_threads_block, problem.cols + problem.y.padding
        return (
            Limit(
                f"threads <= {_WARP} or threads * vector < {2 * room}",
                f"more than a warp's threads have vectors of a row of {room}",
            ),
            Limit(
                f"threads >= {_WARP} or ceil_div({room}, vector * threads) <= {_MOST_RUNS}",
                f"a lane that shares a warp's rows has at most {_MOST_RUNS} vectors of each",
            ),
            Limit(
                f"rows == 1 or threads * rows <= {_MOST_SHARED}",
                f"blocks of several rows have at most {_MOST_SHARED} threads",
            ),
            Limit(f"threads * rows <= {most}", f"a block of the target has at most {most} threads"),
        )

    def work(self, problem: Normalisation, columns: Columns, target: Target) -> Work:
        """Count the work: inputs once a pass, or once in all where cached; outputs once; idle lanes take slots, too."""
        rows = problem.leading.value * prod(problem.outer[1:])
        shape = (problem.leading.value, *problem.outer[1:], problem.cols)
        axis, vector = len(problem.outer), columns["vector"].astype(float)
        threads = columns["threads"].astype(float)
        cached = columns["cached"] == 1
        passes = np.where(cached, 1.0, float(PASSES[problem.kind]))
        runs = ceil_divide(problem.cols + problem.y.padding, vector * threads)
        ahead = vector * runs * len(problem.epilogue.operands)
        words = problem.numbers.bytes / 4
        ahead = np.where(ahead * words <= MAX_CACHED, ahead, 0.0)  # `NormTail` of the header
        per_value = VALUE_FLOPS[problem.kind] + flops(problem.epilogue.expression)
        read, tail = (
            sum(moved_bytes(t, shape, axis) * narrow_access(vector, t.dtype.bytes) for t in tensors)
            for tensors in (problem.inputs, problem.epilogue.operands)
        )
        lanes, reductions = np.log2(np.minimum(threads, _WARP)), PASSES[problem.kind] - 1
        meets = np.where(threads > _WARP, _MEETING_CYCLES, 0.0)
        work = Stream(
            element_bytes=problem.inputs[0].dtype.bytes if problem.inputs else 4,
            flops=rows * threads * vector * runs * (per_value + passes * flops(problem.prologue)),
            loads=passes * read + tail,
            stores=float(rows * (problem.cols + problem.y.padding) * problem.y.dtype.bytes),
            blocks=ceil_divide(rows, columns["rows"].astype(float)),
            threads=threads * columns["rows"],
            registers=32
            + (vector * (2 + np.where(cached, runs, 0)) + np.where(cached, ahead, 0.0)) * words,
            steps=np.where(cached, 1.0, passes * runs),
            shared_bytes=np.where(threads > _WARP, threads / _WARP * problem.numbers.bytes, 0.0),
            thread_loads=np.where(threads > _WARP, threads / _WARP * PASSES[problem.kind], 0.0),
            early=columns["early"] == 1,
            numbers=problem.numbers,
            slots=_SLOTS + _EXCHANGE_SLOTS * reductions * lanes,
        ).work(target)
        return replace(work, chain_cycles=reductions * (_EXCHANGE_CYCLES * lanes + meets))

    def kernel(self, problem: Normalisation, schedule: NormalisationSchedule) -> KernelPlan:
        """Items are rows."""
        axes = range(1, len(problem.outer))
        first, second = ([None] * (OUTER_AXES - 1) + list(axes))[-2:]
        order = (0, first, second, len(problem.outer))
        o1, o2 = (1 if axis is None else problem.outer[axis] for axis in (first, second))
        operands = problem.epilogue.operands
        return KernelPlan(
            members={
                "Inputs": Type(cpp_tensors(problem.inputs, order)),
                "Y": Type(cpp_tensor(problem.y, order)),
                "Operands": Type(cpp_tensors(operands, order)),
                "input_constants": constants_mask(problem.inputs),
                "operand_constants": constants_mask(operands),
                "Prologue": Type(cpp_type(problem.prologue)),
                "Epilogue": Type(cpp_type(problem.epilogue.expression)),
                "kind": Enumerator(f"wpk::NormKind::{KINDS[problem.kind]}"),
                "o1": o1,
                "o2": o2,
                "columns": problem.cols,
                "rowPadding": problem.y.padding,
                "epsilon": fp32_bits(problem.epsilon),
                "wide": is_wide(problem.leading, o1 * o2),
            },
            grid=linear_grid(problem.leading, o1 * o2, schedule.rows),
            threads=schedule.block_threads,
        )
