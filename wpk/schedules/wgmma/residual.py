"""The residual: an operand of the epilogue whose tiles TMA brings to shared memory while products run (residual.cuh)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from wpk.dims import DimExpr, product
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Floats
from wpk.problems import Convolution, Matmul, Tensor
from wpk.schedules.convolution_copies import is_one_image
from wpk.schedules.limit import Limit
from wpk.schedules.wgmma.persistent import staged_columns
from wpk.schedules.wgmma.tensor_copies import ALIGNMENT, SWIZZLE, map_strides

_MAP = 2  # behind the factors', which are the operator's inputs 0 and 1
_BARRIER_BYTES = 16  # of a piece
_SIZES = (2, 4)  # bytes of an element: rows of a box of the narrowest tile have 32 bytes
_TILES = (0, 1, 2)


@dataclass(frozen=True)
class Residual:
    """An operand that has the rows and columns of the output, as tensor copies bring it.

    Attributes:
        operand: Its place among the epilogue's operands.
        tensor: The operand.
        shape: Extents of its map: columns and rows, and of a batch its matrices.
        strides: Of the map's outer dimensions, in elements.
    """

    operand: int
    tensor: Tensor
    shape: tuple[DimExpr, ...]
    strides: tuple[int, ...]

    def map(self, block_m: int, columns: int) -> TensorMapArgument:
        """Return the map whose boxes have the rows of a tile.

        Args:
            block_m: Rows of a tile.
            columns: Of a piece.
        """
        size = self.tensor.dtype.bytes
        width = gcd(columns, SWIZZLE // size)
        strides = map_strides(self.strides, size)
        box = (width, block_m, *(1 for _ in self.shape[2:]))
        return TensorMapArgument(_MAP + self.operand, self.shape, strides, box, width * size)

    def shared_bytes(self, columns: Columns) -> Floats:
        """Count the bytes of its tiles that are in shared memory at once, and of the barriers of their pieces."""
        tiles, block_n = columns["residual"], columns["block_n"]
        pieces = -(-block_n // staged_columns(columns))
        size = float(self.tensor.dtype.bytes)
        each: Floats = columns["block_m"] * block_n * size + pieces * _BARRIER_BYTES
        return tiles * each


def residual_of(problem: Convolution | Matmul) -> Residual | None:
    """Return the first operand of the epilogue that tensor copies can bring; None if there is none."""
    for index, operand in enumerate(problem.epilogue.operands):
        if isinstance(problem, Convolution):
            found = _of_pixels(problem, index, operand)
        else:
            found = _of_matrices(problem, index, operand)
        if found is not None:
            return found
    return None


def _of_pixels(problem: Convolution, index: int, operand: Tensor) -> Residual | None:
    """Pixels that lie densely are the rows of a matrix; each group's columns begin at whole 16 bytes."""
    n, column, h, w = operand.strides
    dense = h == w * problem.q and (n == h * problem.p or is_one_image(problem))
    of_group = problem.k // problem.groups if problem.groups > 1 else 0
    if not dense or not _is_copied(operand, column, (w, of_group)):
        return None
    pixels = product(problem.n.expression, problem.p * problem.q)
    return Residual(index, operand, (problem.k, pixels), (w,))


def _of_matrices(problem: Matmul, index: int, operand: Tensor) -> Residual | None:
    outer, middle, row, column = operand.strides
    if not _is_copied(operand, column, (row, middle, outer)):
        return None
    images, heads = problem.batch
    batch = heads if middle else 1, images.expression if outer else 1
    shape = (problem.n, problem.m.expression, *batch)
    return Residual(index, operand, shape, (row, middle, outer))


def _is_copied(operand: Tensor, column: int, strides: Sequence[int]) -> bool:
    """Whether tensor copies bring it: columns side by side, in rows of their own that begin at whole 16 bytes."""
    size = operand.dtype.bytes
    whole = not any(stride * size % ALIGNMENT for stride in strides)
    aligned = operand.alignment >= ALIGNMENT
    return column == 1 and strides[0] > 0 and size in _SIZES and whole and aligned


def residual_axis(residual: Residual | None, persistent: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values to try: tiles in shared memory at once, two of persistent blocks at most."""
    if residual is None:
        return _TILES[:1]
    return _TILES if len(persistent) > 1 else _TILES[:2]


def residual_limits(residual: Residual | None) -> tuple[Limit, ...]:
    """Return what kernels can do with a problem's residual."""
    if residual is None:
        return (
            Limit("residual == 0", "no operand of the epilogue can be brought by tensor copies"),
        )
    return (
        Limit(f"residual in {_TILES}", "residual is a number of tiles, 0 to 2"),
        Limit("residual == 0 or split == 1", "the residual is brought where reductions are whole"),
        Limit("residual < 2 or persistent != 0", "a block with one tile has the residual of one"),
        Limit(
            "residual != 1 or pingpong == 0",
            "warpgroups that take turns have a tile of the residual each",
        ),
    )
