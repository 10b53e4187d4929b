"""Norms and softmax of rows that lie across memory: tiles of neighbouring rows, in shared memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wpk.dims import product
from wpk.expression import cpp_type
from wpk.performance import Columns, Floats, Work
from wpk.problems import Normalisation
from wpk.schedules.block_limits import cluster_limits, cluster_sizes, shared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.normalised_rows import PASSES, NormalisedRows
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access, short_run
from wpk.schedules.strided import (
    PART_STORE_BYTES,
    SECTOR_BYTES,
    cpp_tensor,
    cpp_tensors,
    is_wide,
    moved_bytes,
    stored_bytes,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.schedules.views.across import AcrossView, across_view
from wpk.targets import Target

_WARP, _BARRIER_BYTES = 32, 8

_ROUND_CYCLES, _MEETING_CYCLES, _ALONE_CYCLES = 700.0, 900.0, 140.0
"""Of a round of loads behind the first, and of a statistic of several blocks, as of normalisation_cluster; of one of a block
alone, five steps over the lanes of a warp. Assumptions, not measured yet."""

_LOOK_CYCLES = 8.0
"""Of a warp, for an element of each of its lanes in a statistic: a load of shared memory, of which four are under way."""

_SLOTS = 24.0
"""Issue slots of an element besides its operations: its place twice, the accesses. An assumption, not measured yet."""

_STATISTICS = 2  # at most


@dataclass(frozen=True)
class NormalisationAcrossSchedule(Schedule):
    """Parameters of normalisation_across.cuh.

    Attributes:
        rows: Neighbouring rows of a tile.
        threads: Threads of a block.
        blocks: Of a cluster, which share a tile.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    rows: int
    threads: int
    blocks: int
    early: int = 0


class NormalisationAcrossTemplate(SingleKernelTemplate[Normalisation, NormalisationAcrossSchedule]):
    """A cluster to a tile of rows, read along the inputs and written along y; statistics are fp32, in two passes."""

    name: ClassVar[str] = "normalisation_across"
    version: ClassVar[int] = 1
    problem_type = Normalisation
    schedule_type = NormalisationAcrossSchedule

    def why_not(self, problem: Normalisation, target: Target) -> str | None:
        """Refuse rows whose elements follow each other, of several lines, and what norms do not carry."""
        if problem.lines > 1:
            return f"a row has {problem.lines} lines, one is carried"
        if problem.reduction == 0:
            return "rows are empty"
        if (missing := why_operand_missing(problem)) is not None:
            return missing
        view = across_view(problem)
        if view is None:
            return (
                "elements of rows follow each other, where they are read and where they are written"
            )
        if len(view.outer) > 1:
            return f"{len(view.outer) + 2} outer axes, at most 3 are carried"
        seen = view.problem
        tensors = [*seen.inputs, seen.y, *seen.epilogue.operands]
        reason = why_unaddressable(tensors, (1, *view.shape[1:]))
        return reason or why_unpaddable(seen.y, (view.axis(view.written_along_columns),))

    def _axes(self, problem: Normalisation, target: Target) -> dict[str, tuple[int, ...]]:
        """Rows, threads, blocks that share them."""
        return {
            "rows": (16, 32, 8, 64),
            "threads": (512, 256, 1024, 128),
            "blocks": cluster_sizes((4, 8, 2), target),
        }

    def _limits(self, problem: Normalisation) -> Sequence[Limit]:
        """What the header can compute."""
        return (
            Limit("rows in (8, 16, 32, 64)", "a tile has 8, 16, 32 or 64 rows"),
            Limit(f"threads % {_WARP} == 0", "a block has whole warps"),
            Limit("blocks in (1, 2, 4, 8, 16)", "a tile has 1, 2, 4, 8 or 16 blocks"),
        )

    def _target_limits(self, problem: Normalisation, target: Target) -> Sequence[Limit]:
        """Clusters that the target has; tiles that fit, and that are not mostly empty."""
        view = _view(problem)
        unit, room = _unit(view), _column_room(view)
        size = problem.numbers.bytes
        share = f"(ceil_div(ceil_div({room}, blocks), {unit}) * {unit})"
        numbers = f"({_STATISTICS} * blocks + 3 + {share}) * {size}"
        limits = [
            thread_limit(target),
            shared_limit(target, f"rows * ({numbers} + {_STATISTICS * _BARRIER_BYTES})"),
            Limit(f"rows == 8 or rows < {2 * view.rows}", f"there are {view.rows} rows"),
            Limit(
                f"blocks == 1 or {room} >= {_WARP} * blocks",
                f"each block has {_WARP} of the {room} columns at least",
            ),
        ]
        return [*limits, *cluster_limits(target)]

    def work(self, problem: Normalisation, columns: Columns, target: Target) -> Work:
        """Count the work, and a block's own way: rounds of loads, and statistics of the rows of a warp, one after another."""
        view = _view(problem)
        seen, shape = view.problem, view.shape
        rows, threads, blocks = (
            columns[name].astype(float) for name in ("rows", "threads", "blocks")
        )
        tiles = view.others * ceil_divide(view.rows, rows)
        share = ceil_divide(problem.cols, blocks)
        elements = rows * share  # of a block
        read, written = view.axis(view.read_along_columns), view.axis(view.written_along_columns)
        together, stored = float(view.read_together), float(view.written_together)
        one = np.ones(rows.shape)
        loads = sum(
            moved_bytes(t, shape, read) * narrow_access(one * together, t.dtype.bytes)
            for t in seen.inputs
        )
        tail = sum(
            moved_bytes(t, shape, written) * narrow_access(one * stored, t.dtype.bytes)
            for t in seen.epilogue.operands
        )
        run = rows * seen.y.dtype.bytes
        in_parts = (not view.written_along_columns) & (run < SECTOR_BYTES)
        stores = stored_bytes(seen.y, shape, written) * np.where(
            in_parts, PART_STORE_BYTES / run, 1.0
        )
        if not view.read_along_columns:
            loads = loads * short_run(rows, problem.inputs[0].dtype.bytes)
        statistics = PASSES[problem.kind] - 1
        of_warp = ceil_divide(rows, threads / _WARP)
        meeting = np.where(blocks > 1, _MEETING_CYCLES, _ALONE_CYCLES)
        of_lane = np.ceil(share / _WARP)
        looks = of_warp * statistics * (of_lane * _LOOK_CYCLES + meeting)
        rounds = ceil_divide(elements, threads * together * np.clip(64 / together, 1, 8)) - 1
        rounds = rounds + (len(seen.epilogue.operands) > 0) * ceil_divide(
            elements, threads * stored * np.clip(32 / stored, 1, 4)
        )
        work = Stream(
            element_bytes=problem.inputs[0].dtype.bytes if problem.inputs else 4,
            flops=tiles * rows * problem.cols * NormalisedRows(problem).value_flops(one),
            loads=loads + tail,
            stores=stores,
            blocks=tiles * blocks,
            threads=threads,
            registers=24 + 40.0 * problem.numbers.bytes / 4,
            shared_bytes=_shared_bytes(problem, columns),
            thread_loads=elements / threads * (statistics + 2),
            slots=elements / threads * _SLOTS,
            early=columns["early"] == 1,
            numbers=problem.numbers,
        ).work(target)
        return replace(work, chain_cycles=_ROUND_CYCLES / 2 * rounds + looks)

    def kernel(self, problem: Normalisation, schedule: NormalisationAcrossSchedule) -> KernelPlan:
        """Clusters along x, one for each tile."""
        view = _view(problem)
        seen = view.problem
        read, written = (
            view.order(along) for along in (view.read_along_columns, view.written_along_columns)
        )
        (o1,) = (1, *(view.shape[axis] for axis in view.outer if axis is not None))[-1:]
        room = view.rows + (0 if view.written_along_columns else seen.y.padding)
        tiles = o1 * -(-room // schedule.rows)
        members = NormalisedRows(seen).members(view.column_axis)
        for unused in ("operand_constants", "o2", "rowPadding"):
            del members[unused]
        return KernelPlan(
            members={
                **members,
                "Inputs": Type(cpp_tensors(seen.inputs, read)),
                "Y": Type(cpp_tensor(seen.y, written)),
                "Operands": Type(cpp_tensors(seen.epilogue.operands, written)),
                "Prologue": Type(cpp_type(seen.prologue)),
                "Epilogue": Type(cpp_type(seen.epilogue.expression)),
                "o1": o1,
                "rows": view.rows,
                "readAlongColumns": view.read_along_columns,
                "writtenAlongColumns": view.written_along_columns,
                "readTogether": view.read_together,
                "writtenTogether": view.written_together,
                "padding": seen.y.padding,
                "wide": is_wide(seen.leading, tiles),
            },
            leading=seen.leading,
            grid=(product(seen.leading.expression, tiles * schedule.blocks), 1, 1),
            threads=schedule.threads,
            shared_bytes=int(_shared_bytes(problem, schedule.columns())[0]),
            cluster=(schedule.blocks, 1, 1),
        )


def _view(problem: Normalisation) -> AcrossView:
    view = across_view(problem)
    assert view is not None, "why_not refuses it"
    return view


def _unit(view: AcrossView) -> int:
    """Columns of which a block has a multiple."""
    read = view.read_together if view.read_along_columns else 1
    return max(read, view.written_together if view.written_along_columns else 1)


def _column_room(view: AcrossView) -> int:
    """Columns that are written, y's padding included."""
    return view.problem.cols + (view.problem.y.padding if view.written_along_columns else 0)


def _shared_bytes(problem: Normalisation, columns: Columns) -> Floats:
    view = _view(problem)
    rows, blocks = (columns[name].astype(np.float64) for name in ("rows", "blocks"))
    unit = float(_unit(view))
    share = np.ceil(ceil_divide(_column_room(view), blocks) / unit) * unit
    numbers = _STATISTICS * blocks + 2 + share + 1 - share % 2
    total: Floats = rows * (numbers * problem.numbers.bytes + _STATISTICS * _BARRIER_BYTES)
    return total
