"""Matrix product by warpgroups, with batch and broadcasting (gemm.cuh), on sm_90a."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.dims import DimExpr
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.launch import TensorMapArgument
from wpk.problems import Matmul
from wpk.schedules import packings
from wpk.schedules.limit import Limit
from wpk.schedules.row_norm import norm_limits
from wpk.schedules.unit import Members
from wpk.schedules.views.matmul import MatmulView, why_too_large
from wpk.schedules.wgmma.multicast import COLUMNS
from wpk.schedules.wgmma.template import WgmmaTemplate
from wpk.schedules.wgmma.tensor_copies import (
    SWIZZLE,
    box_depth,
    map_strides,
    why_no_warpgroups,
    why_not_copied,
    why_not_stored,
)
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets import Target


class GemmWgmmaTemplate(WgmmaTemplate[Matmul]):
    """Matrix products in all precisions; ``a`` lies along the reduction, ``b`` along or across it."""

    name: ClassVar[str] = "gemm_wgmma"
    header: ClassVar[str] = "wgmma/gemm"
    version: ClassVar[int] = 18
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Matmul
    schedule_type = WgmmaSchedule

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if (reason := why_no_warpgroups(problem.precision, target)) is not None:
            return reason
        if (reason := why_not_stored(problem)) is not None:
            return reason
        if _across(problem) and problem.precision in _ALONG:
            return f"b lies across the reduction; operands of {problem.precision.value} products lie along it"
        stored = problem.precision.storage
        operands = [("a", problem.a, (3, 2, 1, 0))]
        if not problem.b_constant:
            operands.append(("b", problem.b, (3, 2, 1, 0) if _across(problem) else (2, 3, 1, 0)))
        for name, tensor, order in operands:
            strides = [tensor.strides[axis] for axis in order]
            if strides[1] == 0:
                return f"{name} is broadcast along its rows"
            reason = why_not_copied(name, tensor.dtype, stored, tensor.alignment, strides)
            if reason is not None:
                return reason
        return why_too_large(problem)

    def _limits(self, problem: Matmul) -> Sequence[Limit]:
        depth = box_depth(problem.precision)
        whole = Limit(
            f"block_n % {depth} == 0", f"a b that lies across has whole boxes of {depth} columns"
        )
        return (
            *super()._limits(problem),
            *norm_limits(problem),
            *(_ONE_MATRIX if problem.batch != (Extent(1), 1) else ()),
            *([whole] if _across(problem) else ()),
        )

    def packing(self, problem: Matmul, schedule: WgmmaSchedule) -> str | None:
        """See `MatmulView.packing`; in fp32 tensor cores cut ``b`` where it lies, so that lies rounded."""
        del schedule  # every schedule reads the same rows
        split = problem.b_constant and problem.precision is Precision.FP32
        return "nk_pad_nearest" if split else self._view(problem).packing

    def _view(self, problem: Matmul) -> MatmulView:
        return MatmulView(problem)

    def _members(self, problem: Matmul) -> Members:
        return {"b_across": _across(problem)}

    def _multiplied(self, problem: Matmul) -> tuple[DType, DType]:
        b = problem.precision.storage if problem.b_constant else problem.b.dtype
        return problem.a.dtype, b

    def _maps(
        self, problem: Matmul, schedule: WgmmaSchedule
    ) -> tuple[TensorMapArgument, TensorMapArgument]:
        return _a_map(problem, schedule), _b_map(problem, schedule)


_ALONG = (Precision.FP32, Precision.TF32, Precision.INT8)
"""Whose operands wgmma takes along the reduction alone."""

_ONE_MATRIX = (
    Limit(f"share != {COLUMNS}", "blocks one below the other may be of two matrices of the batch"),
    Limit("persistent == 0", "persistent blocks count tiles in one matrix, not in a batch of them"),
)


def _across(problem: Matmul) -> bool:
    """Whether ``b`` is contiguous along its columns, as it lies."""
    return not problem.b_constant and problem.b.strides[2] != 1 and problem.b.strides[3] == 1


def _a_map(problem: Matmul, schedule: WgmmaSchedule) -> TensorMapArgument:
    outer, middle, row, _ = problem.a.strides
    rows = ((problem.m.expression, row), *_batch(problem, outer, middle))
    return _map(0, problem, problem.k, rows, schedule.block_m // schedule.multicast_a)


def _b_map(problem: Matmul, schedule: WgmmaSchedule) -> TensorMapArgument:
    block_n, block_k = (
        size // schedule.multicast_b for size in (schedule.block_n, schedule.block_k)
    )
    if problem.b_constant:
        row = packings.matrix_row(problem, problem.precision.storage.bytes)
        columns = ((problem.n, row), (1, 0), (1, 0))
        return _map(1, problem, problem.k, columns, block_n)
    outer, middle, depth, column = problem.b.strides
    batch = _batch(problem, outer, middle)
    if _across(problem):
        return _map(1, problem, problem.n, ((problem.k, depth), *batch), block_k)
    return _map(1, problem, problem.k, ((problem.n, column), *batch), block_n)


def _batch(
    problem: Matmul, outer: int, middle: int
) -> tuple[tuple[DimExpr, int], tuple[DimExpr, int]]:
    """Matrices along both dimensions of the batch, with their strides; one where broadcast."""
    b0, b1 = problem.batch
    return (b1 if middle else 1, middle), (b0.expression if outer else 1, outer)


def _map(
    index: int,
    problem: Matmul,
    width: int,
    rows: tuple[tuple[DimExpr, int], ...],
    block: int,
) -> TensorMapArgument:
    """A map over what is contiguous, rows, middle and outer; the stride of a single one says nothing.

    A constant ``b`` is rounded to tf32 where it is packed.
    """
    size = problem.precision.storage.bytes
    return TensorMapArgument(
        index,
        (width, *(extent for extent, _ in rows)),
        map_strides((stride for _, stride in rows), size),
        (box_depth(problem.precision), block, 1, 1),
        SWIZZLE,
        to_tf32=problem.precision is Precision.TF32 and not (index == 1 and problem.b_constant),
    )
