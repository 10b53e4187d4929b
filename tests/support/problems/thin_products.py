"""Products of rows by a constant matrix, of every kind that may have a weight that stays."""

from dataclasses import replace
from typing import Any

from support.problems.agreement import check_rows
from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, apply
from wpk.extent import Extent
from wpk.operators import express
from wpk.problems import (
    Epilogue,
    Matmul,
    MomentsMatmul,
    NormedMatmul,
    NormKind,
    Tensor,
    moments_of_row,
)
from wpk.schedules.wgmma.thin import ThinWgmmaSchedule, ThinWgmmaTemplate


def thin(
    m: int,
    n: int,
    k: int,
    *,
    precision: Precision = Precision.FP16,
    norm: NormKind | None = None,
    known: bool = False,
    stored: NormKind | None = None,
    bias: DType | None = None,
    residual: bool = False,
    gelu: bool = False,
    gap: int = 0,
    padding: int = 0,
    free: str | None = None,
) -> Matmul:
    """A product with a constant bias, in the products' type unless another one is given.

    Of rows that are normalised, by ``known`` moments or their own; or whose results are ``stored`` with theirs; plus a
    tensor that lies as y does; through a GELU. ``gap`` are elements between rows of a and y, ``padding`` zeros of y.
    """
    dtype = precision.storage
    y = _rows(dtype, n + padding, gap, padding)
    behind: Expression = apply("Add", Acc(), Operand(0))
    operands = [Tensor(bias or dtype, (0, 0, 0, 1), padding, constant=True)]
    if residual:
        behind = apply("Add", behind, Operand(1))
        operands.append(y)
    if gelu:
        behind = express("Gelu", (behind,), {"approximate": "none"})
    plain = Matmul(
        precision=precision,
        batch=(Extent(1), 1),
        m=Extent(m, free),
        n=n,
        k=k,
        a=_rows(dtype, k, gap),
        b=_rows(dtype, n),
        b_constant=True,
        y=y,
        epilogue=Epilogue(behind, tuple(operands)),
    )
    if stored is not None:
        return MomentsMatmul(**vars(plain), kind=stored, moments=_moments(n, stored))
    if norm is None:
        return plain
    return NormedMatmul(
        **vars(plain),
        kind=norm,
        epsilon=1e-5,
        sums=Tensor(DType.FP32, (0, 0, 0, 1), constant=True) if norm is NormKind.LAYER else None,
        moments=_moments(k, norm) if known else None,
    )


def _rows(dtype: DType, columns: int, gap: int = 0, padding: int = 0) -> Tensor:
    row = columns + gap
    alignment = next(each for each in (16, 8, 4, 2) if row * dtype.bytes % each == 0)
    return Tensor(dtype, (0, 0, row, 1), padding, alignment)


def _moments(columns: int, kind: NormKind) -> Tensor:
    return Tensor(DType.FP32, (0, 0, moments_of_row(columns, kind), 1), alignment=4)


def swin(rows: int, *, free: str | None = None) -> tuple[Matmul, Matmul]:
    """Both products beside attention in stage 1 of Swin-T: of normed rows with known moments, and with a residual."""
    queries = thin(rows, 288, 96, norm=NormKind.LAYER, known=True, free=free)
    return queries, thin(rows, 96, 96, residual=True, free=free)


def broadcast(problem: Matmul) -> Matmul:
    """The same of an ``a`` that has one row."""
    return replace(problem, a=replace(problem.a, strides=(0, 0, 0, 1)))


def check(
    execution: Any, problem: Matmul, schedule: ThinWgmmaSchedule, template: Any = None
) -> None:
    """See `check_rows`; ``template`` is where a fault is planted."""
    check_rows(execution, template or ThinWgmmaTemplate(), problem, schedule)
