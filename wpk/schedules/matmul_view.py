"""A matrix product as gemm_mma and gemm_simt both see it (MatrixSource of tile_source.cuh)."""

from dataclasses import dataclass

import numpy as np

from wpk.dims import ceil_div, product
from wpk.dtypes import DType, Precision
from wpk.performance import Columns, Floats, row_transactions
from wpk.problems import Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.matrix_tiles import TiledProduct, block_tile
from wpk.schedules.single_kernel import Grid
from wpk.schedules.unit import Member, Type, Wide
from wpk.targets import Target

_MAX_INT32 = 2**31 - 1
_VECTOR_BYTES = 16


def why_too_large(problem: Matmul) -> str | None:
    """Why a kernel's 32-bit indices cannot hold the problem; None if they can."""
    rows = problem.batch[0].value * problem.batch[1] * problem.m.value
    if max(rows, problem.n, problem.k) > _MAX_INT32:
        return f"{rows} rows of {problem.k} are more than 32-bit indices reach"
    return None


@dataclass(frozen=True)
class MatmulView:
    """A matrix product with what its kernels know of its operands.

    Attributes:
        problem: The product.
        store_width: Columns that a thread stores together at most.
        max_vector: Elements of one access to an operand at most.
    """

    problem: Matmul
    store_width: int = 8
    max_vector: int = 8

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
            return min(self.max_vector, _VECTOR_BYTES // self.b_dtype.bytes)
        return self._vector(self.problem.b, 2, self.problem.k)

    @property
    def b_vector_across(self) -> int:
        """Neighbours of ``b`` along n in one access."""
        return 1 if self.problem.b_constant else self._vector(self.problem.b, 3, self.problem.n)

    @property
    def stored_columns(self) -> int:
        """Columns that are written: n and y's padding."""
        return self.problem.n + self.problem.y.padding

    def grid(self, block_m: int, block_n: int, split: int) -> Grid:
        """Tiles of rows times the batch; tiles of columns; parts of the reduction."""
        p = self.problem
        tiles = product(ceil_div(p.m.expression, block_m), p.batch[0].expression)
        return product(tiles, p.batch[1]), -(-self.stored_columns // block_n), split

    def product(self, columns: Columns, target: Target) -> TiledProduct:
        """The product as blocks of tiles; every step loads both."""
        block_m, block_n, block_k = block_tile(columns)
        problem = self.problem
        batch = problem.batch[0].value * problem.batch[1]
        tiles = np.ceil(problem.m.value / block_m) * np.ceil(self.stored_columns / block_n)
        rows = self._transactions(block_m, block_k, target)
        return TiledProduct(
            element_bytes=problem.a.dtype.bytes,
            store_bytes=problem.y.dtype.bytes,
            tiles=batch * tiles,
            tile_steps=np.ceil(problem.k / block_k),
            transactions=rows + self._transactions(block_n, block_k, target, of_b=True),
        )

    def _transactions(
        self, lines: Floats, elements: Floats, target: Target, *, of_b: bool = False
    ) -> Floats:
        """Global memory transactions that load ``elements`` along k of ``lines`` rows or columns."""
        tensor, axis = (self.problem.b, 2) if of_b else (self.problem.a, 3)
        size = (self.b_dtype if of_b else tensor.dtype).bytes
        along_k = (of_b and self.problem.b_constant) or tensor.strides[axis] == 1
        run, count = (elements, lines) if along_k else (lines, elements)
        return row_transactions(count, run, target.transaction_bytes / size)

    def members(self) -> dict[str, Member]:
        """Members of ``Problem`` that every header reads."""
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
            **epilogue_members(p, self.store_width),
        }

    def operand_members(self) -> dict[str, Member]:
        """Of headers whose threads address the operands."""
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

    def _vector(self, tensor: Tensor, axis: int, extent: int) -> int:
        if extent == 1:  # the next row may be the next element
            return 1
        return min(tensor.vector(axis), self.max_vector, _VECTOR_BYTES // tensor.dtype.bytes)
