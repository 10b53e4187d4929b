"""Columns of a tile: powers of two, and widths with which tiles fill the SMs of a GPU once.

A product of 197 x 3072 has 96 tiles of 64 x 128 or 192 of 64 x 64, but 128 of 64 x 96: on 132 SMs these take three
quarters of the time of the former, and no second wave.
"""

from __future__ import annotations

from collections.abc import Sequence

from wpk.dtypes import Precision
from wpk.schedules.limit import Limit
from wpk.schedules.tiles.matrix import up_to
from wpk.schedules.wgmma.persistent import STAGED_COLUMNS
from wpk.targets import Target

POWERS = Limit("(block_n & (block_n - 1)) == 0", "columns are a power of two")

_STEP, _LEAST, _MOST = 16, 16, 256
_POWERS = (16, 32, 64, 128, 256)
_PARTS = (1, 2, 4)  # of split reductions whose tiles should fill the SMs

WIDTHS = Limit(f"{_LEAST} <= block_n <= {_MOST}", f"a block has {_LEAST} to {_MOST} columns")


def limits(precision: Precision) -> Sequence[Limit]:
    """Return the widths that the kernel has; of fp32 products all consumers share what is cut off in powers of two."""
    if precision is Precision.FP32:
        return POWERS, WIDTHS
    return (
        WIDTHS,
        Limit(f"block_n % {_STEP} == 0", f"columns are a multiple of {_STEP}"),
        Limit(
            f"persistent == 0 or block_n <= {STAGED_COLUMNS} or block_n % {STAGED_COLUMNS} == 0",
            f"a persistent block stages {STAGED_COLUMNS} columns at once",
        ),
    )


def axis(
    rows: int,
    columns: int,
    matrices: int,
    tile_rows: Sequence[int],
    precision: Precision,
    target: Target,
) -> tuple[int, ...]:
    """Return the widths to try for a product.

    Args:
        rows: Of a matrix.
        columns: Of a matrix.
        matrices: Of the batch.
        tile_rows: Rows of a tile.
        precision: Of the product.
        target: The GPU.
    """
    powers = up_to(_POWERS, columns)
    if precision is Precision.FP32:
        return powers
    rooms = {
        target.sm_count // (-(-rows // each) * matrices * parts)
        for each in tile_rows
        for parts in _PARTS
    }
    filling = {-(-columns // (room * _STEP)) * _STEP for room in rooms if room > 0}
    return tuple(sorted({*powers, *(width for width in filling if _LEAST <= width <= _MOST)}))
