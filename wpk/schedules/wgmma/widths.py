"""Columns of a tile: powers of two, widths with which tiles fill the SMs of a GPU in few waves, and such as waste no column.

A product of 197 x 3072 has 96 tiles of 64 x 128 or 192 of 64 x 64, but 128 of 64 x 96: on 132 SMs these take three
quarters of the time of the former, and no second wave. One of 6304 x 768 has 300 tiles of 128 x 128, which are three
waves, but 250 of 128 x 160, which are two. One of 100352 x 288 is many waves whatever the width: three tiles of
128 columns multiply and store a third more than two of 144 or three of 96.
"""

from __future__ import annotations

from collections.abc import Sequence

from wpk.dtypes import Precision
from wpk.schedules.limit import Limit
from wpk.schedules.tiles.matrix import up_to
from wpk.targets import Target

POWERS = Limit("(block_n & (block_n - 1)) == 0", "columns are a power of two")

_STEP, _LEAST, _MOST = 16, 16, 256
_POWERS = (16, 32, 64, 128, 256)
_PARTS = (1, 2, 4)  # of split reductions whose tiles should fill the SMs
_WAVES = (2, 3, 4)  # of whole reductions; more are nearly full whatever the width
_WHOLE = 2  # counts of tiles, from the fewest on, that are as wide as the product
_LEAST_OF_WAVES = 96  # columns: narrower tiles take more from L2 than a fuller wave saves

WIDTHS = Limit(f"{_LEAST} <= block_n <= {_MOST}", f"a block has {_LEAST} to {_MOST} columns")


def limits(precision: Precision) -> Sequence[Limit]:
    """Return the widths that the kernel has; of fp32 products all consumers share what is cut off in powers of two."""
    if precision is Precision.FP32:
        return POWERS, WIDTHS
    return (
        WIDTHS,
        Limit(f"block_n % {_STEP} == 0", f"columns are a multiple of {_STEP}"),
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
    once = {
        _filling(columns, target.sm_count // (-(-rows // each) * matrices * parts))
        for each in tile_rows
        for parts in _PARTS
    }
    in_waves = {
        _filling(columns, target.sm_count * waves // (-(-rows // each) * matrices))
        for each in tile_rows
        for waves in _WAVES
    }
    fewest = -(-columns // _MOST)
    whole = {_filling(columns, tiles) for tiles in range(fewest, fewest + _WHOLE)}
    wide = {width for width in in_waves | whole if width >= _LEAST_OF_WAVES}
    return tuple(sorted({*powers, *(width for width in once | wide if _LEAST <= width <= _MOST)}))


def _filling(columns: int, tiles: int) -> int:
    """Return the width of which so many tiles are as wide as the product; 0 where there is room for none."""
    return -(-columns // (tiles * _STEP)) * _STEP if tiles else 0
