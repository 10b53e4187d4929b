"""Products of matrices of every layout."""

from __future__ import annotations

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Epilogue, Matmul, Tensor


def row_major(
    dtype: DType, shape: tuple[int, int, int, int], padding: int = 0, transposed: bool = False
) -> Tensor:
    """A batch of matrices; ``transposed`` ones have their second axis outermost."""
    b0, b1, rows, columns = shape
    outer, inner = (columns, rows) if transposed else (rows, columns)
    pitch = inner + padding
    alignment = next(a for a in (16, 8, 4, 2, 1) if pitch * dtype.bytes % a == 0)
    last = (1, pitch) if transposed else (pitch, 1)
    batch = (0 if b0 == 1 else b1 * outer * pitch, 0 if b1 == 1 else outer * pitch)
    return Tensor(dtype, (*batch, *last), padding, alignment)


def matmul(
    m: int,
    n: int,
    k: int,
    precision: Precision = Precision.FP16,
    batch: tuple[int, int] = (1, 1),
    constant: bool = False,
    a_transposed: bool = False,
    b_transposed: bool = False,
    y_padding: int = 0,
) -> Matmul:
    dtype = precision.storage
    return Matmul(
        precision=precision,
        batch=(Extent(batch[0]), batch[1]),
        m=Extent(m),
        n=n,
        k=k,
        a=row_major(dtype, (*batch, m, k), transposed=a_transposed),
        b=row_major(dtype, (1, 1, k, n) if constant else (*batch, k, n), transposed=b_transposed),
        b_constant=constant,
        y=row_major(dtype, (*batch, m, n), y_padding),
        epilogue=Epilogue(),
    )
