"""Problems of feed-forward blocks."""

from typing import Any

from support.problems.agreement import check_rows
from support.problems.squeezes import ACTIVATIONS, biased
from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, apply
from wpk.extent import Extent
from wpk.operators import express
from wpk.problems import Epilogue, FeedForward, NormKind, RowNorm, Tensor, whole_runs
from wpk.schedules.wgmma.feed_forward import FeedForwardWgmmaSchedule, FeedForwardWgmmaTemplate

GELU = express("Gelu", (Acc(),), {"approximate": "none"})


def feed_forward(
    m: int,
    k: int,
    hidden: int,
    *,
    n: int | None = None,
    precision: Precision = Precision.FP16,
    norm: NormKind | None = None,
    activation: str | None = None,
    scaled: bool = False,
    residual: bool = True,
    gap: int = 0,
    bias: DType | None = None,
    free: str | None = None,
) -> FeedForward:
    """A problem with a bias behind each product, and a GELU or another activation behind the first.

    ``scaled`` multiplies the output's columns, ``residual`` adds a tensor that lies as y does, ``gap`` are elements
    between rows of x and y.
    """
    dtype, n = precision.storage, k if n is None else n
    sums = Tensor(DType.FP32, (0, 1)) if norm is NormKind.LAYER else None
    y = _rows(dtype, n, gap)
    behind: Expression = apply("Add", Acc(), Operand(0))
    operands = [Tensor(dtype, (0, 1))]
    if scaled:
        behind = apply("Mul", behind, Operand(len(operands)))
        operands.append(Tensor(dtype, (0, 1)))
    if residual:
        behind = apply("Add", behind, Operand(len(operands)))
        operands.append(y)
    return FeedForward(
        precision=precision,
        m=Extent(m, free),
        k=k,
        hidden_size=hidden,
        n=n,
        x=_rows(dtype, k, gap),
        up=Tensor(dtype, (whole_runs(k), 1)),
        down=Tensor(dtype, (whole_runs(n), 1)),
        norm=None if norm is None else RowNorm(norm, 1e-5, sums),
        hidden=biased(GELU if activation is None else ACTIVATIONS[activation], bias or dtype),
        epilogue=Epilogue(behind, tuple(operands)),
        y=y,
    )


def _rows(dtype: DType, columns: int, gap: int) -> Tensor:
    row = columns + gap
    return Tensor(dtype, (row, 1), 0, next(a for a in (16, 8, 4, 2) if row * dtype.bytes % a == 0))


def check(
    execution: Any,
    problem: FeedForward,
    schedule: FeedForwardWgmmaSchedule,
    template: Any = None,
) -> None:
    """See `check_rows`; ``template`` is where a fault is planted."""
    check_rows(execution, template or FeedForwardWgmmaTemplate(), problem, schedule)
