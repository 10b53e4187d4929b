"""A matrix product as gemm_mma and gemm_simt both see it (MatrixSource of tile_source.cuh)."""

from dataclasses import dataclass

from wpk.dims import DimExpr, ceil_div, product
from wpk.dtypes import DType, Precision
from wpk.performance import Floats, row_transactions
from wpk.problems import Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.row_norm import norm_members
from wpk.schedules.unit import Member, Type, Wide
from wpk.schedules.views.matrix import MAX_INT32, VECTOR_BYTES, MatrixSizes, MatrixView
from wpk.targets import Target


def why_too_large(problem: Matmul) -> str | None:
    """Say why a kernel's 32-bit indices cannot hold the problem; None if they can."""
    rows = problem.batch[0].value * problem.batch[1] * problem.m.value
    if max(rows, problem.n, problem.k) > MAX_INT32:
        return f"{rows} rows of {problem.k} are more than 32-bit indices reach"
    return None


@dataclass(frozen=True)
class MatmulView(MatrixView[Matmul]):
    """A matrix product with what its kernels know of its operands.

    Attributes:
        problem: The product.
        max_vector: Elements of one access to an operand at most.
    """

    max_vector: int = 8

    @property
    def sizes(self) -> MatrixSizes:
        """See `MatrixView.sizes`."""
        p = self.problem
        return MatrixSizes(p.m.value, p.n, p.k, p.batch[0].value * p.batch[1])

    @property
    def b_dtype(self) -> DType:
        """Type of ``b`` in memory."""
        return self.problem.precision.storage if self.problem.b_constant else self.problem.b.dtype

    @property
    def packing(self) -> str | None:
        """How tensor cores read a constant ``b``: its columns as rows, in tf32 rounded; None if it is none."""
        if not self.problem.b_constant:
            return None
        return "nk_pad_tf32" if self.problem.precision is Precision.TF32 else "nk_pad"

    @property
    def a_vector(self) -> int:
        """Neighbours of ``a`` along k in one access."""
        return self._vector(self.problem.a, 3, self.problem.k)

    @property
    def b_vector(self) -> int:
        """Neighbours of ``b`` along k in one access; packed columns are whole vectors."""
        if self.problem.b_constant:
            return min(self.max_vector, VECTOR_BYTES // self.b_dtype.bytes)
        return self._vector(self.problem.b, 2, self.problem.k)

    @property
    def b_vector_across(self) -> int:
        """Neighbours of ``b`` along n in one access."""
        return 1 if self.problem.b_constant else self._vector(self.problem.b, 3, self.problem.n)

    @property
    def stored_columns(self) -> int:
        """Columns that are written: n and y's padding."""
        return self.problem.n + self.problem.y.padding

    def grid(self, block_m: int, block_n: int, split: int) -> tuple[DimExpr, int, int]:
        """Return the tiles of rows times the batch; tiles of columns; parts of the reduction."""
        p = self.problem
        tiles = product(ceil_div(p.m.expression, block_m), p.batch[0].expression)
        return product(tiles, p.batch[1]), -(-self.stored_columns // block_n), split

    @property
    def _rows(self) -> Tensor:
        return self.problem.a

    def _row_transactions(self, rows: Floats, elements: Floats, target: Target) -> Floats:
        a = self.problem.a
        run, count = (elements, rows) if a.strides[3] == 1 else (rows, elements)
        return row_transactions(count, run, target.transaction_bytes / a.dtype.bytes)

    def _column_transactions(self, columns: Floats, elements: Floats, target: Target) -> Floats:
        along_k = self.problem.b_constant or self.problem.b.strides[2] == 1
        run, count = (elements, columns) if along_k else (columns, elements)
        return row_transactions(count, run, target.transaction_bytes / self.b_dtype.bytes)

    def members(self, store_width: int = 8) -> dict[str, Member]:
        """See `MatrixView.members`."""
        p = self.problem
        free_rows = p.m.free is not None and p.leading == p.m
        b_outer, b_middle = (0, 0) if p.b_constant else p.b.strides[:2]
        return {
            "A": Type(p.a.dtype.c_name),
            "B": Type(self.b_dtype.c_name),
            "M": Type("wpk::Runtime" if free_rows else f"wpk::Const<{p.m.value}>"),
            "batch_middle": p.batch[1],
            "n": p.n,
            "k": p.k,
            "a_outer": Wide(p.a.strides[0]),
            "a_middle": Wide(p.a.strides[1]),
            "b_outer": Wide(b_outer),
            "b_middle": Wide(b_middle),
            "b_constant": p.b_constant,
            **epilogue_members(p, min(store_width, self._stored_together)),
            **norm_members(p),
        }

    def operand_members(self) -> dict[str, Member]:
        """See `MatrixView.operand_members`."""
        p = self.problem
        depth, b_k, b_n = p.k, *p.b.strides[2:]
        if p.b_constant:
            depth = packings.matrix_row(p, self.b_dtype.bytes)
            b_k, b_n = 1, depth
        return {
            "a_m": Wide(p.a.strides[2]),
            "a_k": Wide(p.a.strides[3]),
            "b_k": Wide(b_k),
            "b_n": Wide(b_n),
            "b_depth": depth,
            "a_vector": self.a_vector,
            "b_vector": self.b_vector,
        }

    @property
    def _stored_together(self) -> int:
        """Columns that a thread has side by side at most: of fp64, what one access of its tile gives."""
        return VECTOR_BYTES // DType.FP64.bytes if self.problem.numbers is DType.FP64 else 8

    def _vector(self, tensor: Tensor, axis: int, extent: int) -> int:
        if extent == 1:  # the next row may be the next element
            return 1
        return min(tensor.vector(axis), self.max_vector, VECTOR_BYTES // tensor.dtype.bytes)
