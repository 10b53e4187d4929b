"""Tiles of whole rows of 16-bit elements as tensor copies bring them, box by box (BoxedRows of boxed_rows.cuh)."""

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Floats

ELEMENT = 2
"""Bytes of an element."""

SLICE = 16
"""Elements of a product's depth, and columns of a box of the narrowest swizzle."""

_SWIZZLES = (32, 64, 128)
_ALIGNED = 1024  # bytes: of tiles


def widest_swizzle(columns: int) -> int:
    """Return the bytes of a row of a box: the least that hold a row, or the most there are (kWidestSwizzle)."""
    return next((size for size in _SWIZZLES if columns * ELEMENT <= size), _SWIZZLES[-1])


def tight_swizzle(columns: int) -> int:
    """Return the bytes of a row of a box: the widest whose boxes end with the fewest zeros (kTightSwizzle)."""
    return min(_SWIZZLES, key=lambda swizzle: (-columns * ELEMENT % swizzle, -swizzle))


def tile_bytes(rows: NDArray[np.int64] | int, columns: int, swizzle: int) -> Floats:
    """Count the bytes of whole boxes of rows; what follows is aligned as all are."""
    boxes = -(-columns * ELEMENT // swizzle)
    tile: Floats = np.ceil(rows * (boxes * swizzle) / _ALIGNED) * _ALIGNED
    return tile


def whole_slices(columns: int) -> int:
    """Return the columns with the zeros that fill the last slice of a product."""
    return -(-columns // SLICE) * SLICE
