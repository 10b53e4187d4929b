"""A problem as products of matrices: what convolutions and matrix products have in common."""

import abc
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from wpk.dims import DimExpr
from wpk.performance import Columns, Floats
from wpk.problems import Convolution, Matmul, Tensor, stored_slots
from wpk.schedules.matrix_epilogue import fetched_together, passed_bytes
from wpk.schedules.tiles.matrix import TiledProduct, block_tile
from wpk.schedules.unit import Member
from wpk.targets import Target

MAX_INT32 = 2**31 - 1
VECTOR_BYTES = 16
"""Of an access at most."""

Product = TypeVar("Product", bound=Convolution | Matmul)


class MatrixSizes(NamedTuple):
    """Rows, columns and summed elements of each product as its kernel walks them, and how many there are."""

    rows: int
    columns: int
    reduction: int
    products: int


@dataclass(frozen=True)
class MatrixView(abc.ABC, Generic[Product]):
    """A problem as matrix-like kernels see it.

    Attributes:
        problem: The problem.
    """

    problem: Product

    @property
    @abc.abstractmethod
    def sizes(self) -> MatrixSizes:
        """Of its products."""

    @property
    @abc.abstractmethod
    def stored_columns(self) -> int:
        """Columns of a product that are written, y's padding included."""

    @abc.abstractmethod
    def grid(self, block_m: int, block_n: int, split: int) -> tuple[DimExpr, int, int]:
        """Return the tiles of rows; tiles of columns; parts of the reductions."""

    def product(self, columns: Columns, target: Target) -> TiledProduct:
        """Return the products as blocks of tiles: a step loads ``block_k`` elements of each row and column."""
        block_m, block_n, block_k = block_tile(columns)
        tiles = np.ceil(self.sizes.rows / block_m) * np.ceil(self.stored_columns / block_n)
        rows = self._row_transactions(block_m, block_k, target)
        return TiledProduct(
            element_bytes=self._rows.dtype.bytes,
            store_bytes=passed_bytes(self.problem),
            tiles=tiles * self.sizes.products,
            tile_steps=np.ceil(self.sizes.reduction / block_k),
            transactions=rows + self._column_transactions(block_n, block_k, target),
            stored_slots=stored_slots(self.problem),
            fetched_together=fetched_together(self.problem),
        )

    @property
    @abc.abstractmethod
    def _rows(self) -> Tensor:
        """The operand that has the rows."""

    @abc.abstractmethod
    def _row_transactions(self, rows: Floats, elements: Floats, target: Target) -> Floats:
        """Global memory transactions that load ``elements`` of the reduction for so many rows."""

    @abc.abstractmethod
    def _column_transactions(self, columns: Floats, elements: Floats, target: Target) -> Floats:
        """The same for columns."""

    @abc.abstractmethod
    def members(self, store_width: int = 8) -> dict[str, Member]:
        """Return members of ``Problem`` that every header reads; a thread stores ``store_width`` columns at most."""

    @abc.abstractmethod
    def operand_members(self) -> dict[str, Member]:
        """Return the members that headers read whose threads address the operands."""
