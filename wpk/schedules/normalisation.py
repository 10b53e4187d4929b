"""Softmax, log-softmax, layer norm and RMS norm of rows, with element-wise work before and after."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import Normalisation
from wpk.schedules.block_limits import thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.normalised_rows import MAX_CACHED, PASSES, NormalisedRows
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide
from wpk.schedules.strided import constants_mask
from wpk.schedules.template import Schedule
from wpk.targets import Target

_WARP = 32
_PARTS = (16, 8, 4)
"""Lanes of a warp that may have a row: more rows a warp, and fewer idle lanes where rows are short."""

_MOST_SHARED = 256
"""Threads of a block of several rows: larger ones only wait longer for a place on an SM."""

_MOST_RUNS = 4
"""Vectors of a lane that shares a row with less than a warp: with more of them a warp would be as fast."""

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
        """Refuse what norms do not carry, and rows of several lines."""
        if problem.lines > 1:
            return f"a row has {problem.lines} lines, one is carried"
        return NormalisedRows(problem).why_not()

    def _axes(self, problem: Normalisation, target: Target) -> dict[str, tuple[int, ...]]:
        """Vector, threads a row, rows a block, cached or read again."""
        return {
            "vector": NormalisedRows(problem).vectors(),
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
        room = problem.cols + problem.y.padding
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
            thread_limit(target, "threads * rows"),
        )

    def work(self, problem: Normalisation, columns: Columns, target: Target) -> Work:
        """Count the work: inputs once a pass, or once in all where cached; outputs once; idle lanes take slots, too."""
        norm = NormalisedRows(problem)
        rows, moved = norm.count, norm.moved(columns)
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        cached = columns["cached"] == 1
        passes = np.where(cached, 1.0, float(PASSES[problem.kind]))
        runs = ceil_divide(problem.cols + problem.y.padding, vector * threads)
        ahead = vector * runs * len(problem.epilogue.operands)
        words = problem.numbers.bytes / 4
        ahead = np.where(ahead * words <= MAX_CACHED, ahead, 0.0)  # `NormTail` of the header
        lanes, reductions = np.log2(np.minimum(threads, _WARP)), PASSES[problem.kind] - 1
        meets = np.where(threads > _WARP, _MEETING_CYCLES, 0.0)
        work = Stream(
            element_bytes=problem.inputs[0].dtype.bytes if problem.inputs else 4,
            flops=rows * threads * vector * runs * norm.value_flops(passes),
            loads=passes * moved.read + moved.tail,
            stores=norm.stored,
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
        norm = NormalisedRows(problem)
        o1, o2 = norm.outer_extents
        return KernelPlan(
            members=norm.members(norm.column_axis)
            | {"input_constants": constants_mask(problem.inputs)},
            grid=linear_grid(problem.leading, o1 * o2, schedule.rows),
            threads=schedule.block_threads,
        )
