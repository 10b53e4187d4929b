"""Problems of attention."""

from dataclasses import replace

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Attention, Epilogue, Tensor, Windows

HARD_SWISH = apply(
    "Mul",
    Acc(),
    apply(
        "Max",
        Scalar(0.0),
        apply("Min", Scalar(1.0), apply("Add", apply("Mul", Acc(), Scalar(1 / 6)), Scalar(0.5))),
    ),
)


def heads_inside(dtype: DType, batch: int, rows: int, heads: int, size: int) -> Tensor:
    """Heads of a projection: (batch, row, head, element) in memory, as (batch, head, row, element)."""
    strides = (0 if batch == 1 else rows * heads * size, 0 if heads == 1 else size, heads * size, 1)
    alignment = next(a for a in (16, 8, 4, 2) if size * dtype.bytes % a == 0)
    return Tensor(dtype, strides, 0, alignment)


def attention(
    queries: int,
    keys: int,
    depth: int,
    *,
    precision: Precision = Precision.FP16,
    batch: tuple[int, int] = (2, 3),
    width: int | None = None,
    mask: tuple[int, ...] | None = None,
    scale: float = 1.0,
    zero: bool = False,
    sharing: int | None = None,
    ending: Expression | None = None,
    added: DType | None = None,
    windows: Windows | None = None,
) -> Attention:
    """A problem.

    ``mask`` gives the strides of an fp32 tensor that is added to the scores, ``ending`` what happens to the
    result, and ``added`` the type of a tensor that lies as the result does and is added behind that.
    """
    shared = batch[1] // (sharing or 1)
    dtype, d = precision.storage, depth if width is None else width
    scores: Expression = Acc() if scale == 1.0 else apply("Mul", Acc(), Scalar(scale))
    operands: tuple[Tensor, ...] = ()
    if mask is not None:
        scores = apply("Add", scores, Operand(0))
        operands = (Tensor(DType.FP32, mask, 0, 16 if keys % 4 == 0 else 4),)
    y = heads_inside(dtype, batch[0], queries, batch[1], d)
    behind = () if added is None else (replace(y, dtype=added, alignment=2),)
    end = ending or Acc()
    end = end if added is None else apply("Add", end, Operand(0))
    return Attention(
        precision=precision,
        batch=(Extent(batch[0]), batch[1]),
        queries=queries,
        keys=keys,
        depth=depth,
        width=d,
        q=heads_inside(dtype, batch[0], queries, batch[1], depth),
        k=heads_inside(dtype, batch[0], keys, shared, depth),
        v=heads_inside(dtype, batch[0], keys, shared, d),
        scores=Epilogue(scores, operands),
        empty_rows_are_zero=zero,
        y=y,
        sharing=sharing,
        epilogue=None if end == Acc() else Epilogue(end, behind),
        windows=windows,
    )
