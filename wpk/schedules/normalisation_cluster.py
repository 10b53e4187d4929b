"""Norms and softmax of long rows, which the blocks of a cluster share, in several lines where they have them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wpk.dims import product
from wpk.performance import Columns, Floats, Work
from wpk.problems import Normalisation
from wpk.schedules.block_limits import cluster_limits, cluster_sizes, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.normalised_rows import MAX_CACHED, PASSES, NormalisedRows
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.streaming import Stream, ceil_divide
from wpk.schedules.template import Schedule
from wpk.targets import Target

LEAST_ELEMENTS = 1 << 12
"""Of a row of one line: shorter ones are read by one block before a cluster has met."""

_WARP, _BARRIER_BYTES = 32, 16

_ROUND_CYCLES, _MEETING_CYCLES, _BLOCK_BYTES = 700.0, 900.0, 43.5
"""Of a round of loads behind the first, from L2 for the most part; of a statistic of several blocks: the trip of a store to
another block (180 cycles, arXiv 2402.13499), two barriers of the block, and the sums. Assumptions, not measured yet. And
what all passes move in a cycle of a block, as measured for squeezes, whose blocks share their way to L2 just so."""


@dataclass(frozen=True)
class NormalisationClusterSchedule(Schedule):
    """Parameters of normalisation_cluster.cuh.

    Attributes:
        vector: Neighbouring elements of a thread.
        threads: Threads of a block.
        blocks: Of a cluster, which share a row.
        cached: Whether the prologue's values stay in registers between passes.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    threads: int
    blocks: int
    cached: int
    early: int = 0


class NormalisationClusterTemplate(
    SingleKernelTemplate[Normalisation, NormalisationClusterSchedule]
):
    """The blocks of a cluster to a row; statistics are fp32, a layer norm's in two passes."""

    name: ClassVar[str] = "normalisation_cluster"
    version: ClassVar[int] = 1
    problem_type = Normalisation
    schedule_type = NormalisationClusterSchedule

    def why_not(self, problem: Normalisation, target: Target) -> str | None:
        """Refuse what norms do not carry, and short rows."""
        if problem.lines == 1 and 0 < problem.cols < LEAST_ELEMENTS:
            return f"rows of {problem.cols} elements are work for one block"
        return NormalisedRows(problem).why_not()

    def _axes(self, problem: Normalisation, target: Target) -> dict[str, tuple[int, ...]]:
        """Vector, threads, blocks that share a row, cached or read again."""
        return {
            "vector": NormalisedRows(problem).vectors(),
            "threads": (256, 512, 1024, 128, 64),
            "blocks": cluster_sizes((8, 4, 2), target),
            "cached": (1, 0),
        }

    def _limits(self, problem: Normalisation) -> Sequence[Limit]:
        """What is cached fits the registers, of a large block, too."""
        most = MAX_CACHED * 4 // problem.numbers.bytes
        chunks = f"{problem.lines} * ceil_div({problem.cols + problem.y.padding}, vector)"
        held = f"ceil_div({chunks}, threads * blocks) * vector"
        return (
            Limit(f"threads % {_WARP} == 0", "a block has whole warps"),
            Limit("blocks in (1, 2, 4, 8, 16)", "a row has 1, 2, 4, 8 or 16 blocks"),
            Limit(
                f"cached == 0 or {held} <= {most}",
                f"a thread keeps at most {most} values",
            ),
            Limit(
                f"cached == 0 or {held} * threads <= {most * 512}",
                f"the threads of a block keep at most {most * 512} values",
            ),
        )

    def _target_limits(self, problem: Normalisation, target: Target) -> Sequence[Limit]:
        """Clusters that the target has, and no block that is idle."""
        chunks = f"{problem.lines} * ceil_div({problem.cols + problem.y.padding}, vector)"
        limits = [
            thread_limit(target),
            Limit(
                f"blocks * threads < 2 * {chunks} or (blocks == 1 and threads == 64)",
                "more threads than the row has vectors",
            ),
        ]
        return [*limits, *cluster_limits(target)]

    def work(self, problem: Normalisation, columns: Columns, target: Target) -> Work:
        """Count the work, and a block's own way: latencies of statistics, and its share of what is read and written."""
        norm = NormalisedRows(problem)
        rows, moved = norm.count, norm.moved(columns)
        vector = columns["vector"].astype(float)
        threads, blocks = columns["threads"].astype(float), columns["blocks"].astype(float)
        cached = columns["cached"] == 1
        passes = np.where(cached, 1.0, float(PASSES[problem.kind]))
        chunks = problem.lines * ceil_divide(problem.cols + problem.y.padding, vector)
        runs = ceil_divide(chunks, threads * blocks)
        words = problem.numbers.bytes / 4
        ahead = vector * runs * len(problem.epilogue.operands) * words
        early = np.minimum(MAX_CACHED, 16384 / threads)  # `aheadWords` of the header
        ahead = np.where(cached & (ahead <= early), ahead, 0.0)
        loads = passes * moved.read + moved.tail
        stores = norm.stored
        statistics = PASSES[problem.kind] - 1
        work = Stream(
            element_bytes=problem.inputs[0].dtype.bytes if problem.inputs else 4,
            flops=rows * problem.reduction * norm.value_flops(passes),
            loads=loads,
            stores=stores,
            blocks=rows * blocks,
            threads=threads,
            registers=32 + (vector * (2 + np.where(cached, runs, 0))) * words + ahead,
            shared_bytes=_shared_bytes(problem, columns),
            thread_loads=threads / _WARP * statistics,
            early=columns["early"] == 1,
            numbers=problem.numbers,
        ).work(target)
        of_block = (loads + stores) / (rows * blocks)
        meetings = statistics * np.where(blocks > 1, _MEETING_CYCLES, _MEETING_CYCLES / 3)
        rounds = np.where(cached, 0.0, passes * runs - 1) + (ahead == 0) * (moved.tail > 0)
        return replace(
            work, chain_cycles=_ROUND_CYCLES * rounds + meetings + of_block / _BLOCK_BYTES
        )

    def kernel(self, problem: Normalisation, schedule: NormalisationClusterSchedule) -> KernelPlan:
        """Clusters along x, one for each row."""
        norm = NormalisedRows(problem)
        o1, o2 = norm.outer_extents
        line = norm.column_axis - 1 if problem.lines > 1 else None
        return KernelPlan(
            members=norm.members(line, norm.column_axis) | {"lines": problem.lines},
            grid=(product(problem.leading.expression, o1 * o2 * schedule.blocks), 1, 1),
            threads=schedule.threads,
            shared_bytes=int(_shared_bytes(problem, schedule.columns())[0]),
            cluster=(schedule.blocks, 1, 1),
        )


def _shared_bytes(problem: Normalisation, columns: Columns) -> Floats:
    blocks, threads = (columns[name].astype(np.float64) for name in ("blocks", "threads"))
    numbers = 2.0 * blocks + threads / _WARP
    total: Floats = _BARRIER_BYTES + numbers * problem.numbers.bytes
    return total
