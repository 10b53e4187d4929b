"""What a warp takes its sums through on their way to memory: columns as floats, or numbers as they are stored."""

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Floats
from wpk.schedules.wgmma.boxed_rows import SLICE


def staged_at_once(
    columns: NDArray[np.int64], most: int = 64, unit: int = SLICE
) -> NDArray[np.int64]:
    """Count the columns of a tile that are staged as floats at once in a loop of tiles (tile_store.cuh, stagedAtOnce).

    Args:
        columns: Of a tile.
        most: That are staged at once.
        unit: Of which they are a multiple.
    """
    staged = np.full_like(columns, unit)
    for width in range(unit, most + 1, unit):
        staged = np.where(columns % width == 0, width, staged)
    return staged


def column_row_bytes(columns: NDArray[np.int64], size: int) -> Floats:
    """Count the bytes of a staged row where sums are stored by columns (column_pieces.cuh, columnStagingBytes).

    Args:
        columns: Of a tile.
        size: Bytes of a number as it is stored.
    """
    together = np.where(columns >= 64, 64.0, np.where(columns >= 32, 32.0, 16.0))
    staged: Floats = together * size
    return staged
