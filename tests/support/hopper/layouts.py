"""Where tiles of matrices lie in shared memory, as the PTX ISA says: swizzles and matrix descriptors.

Sections "Swizzling Modes" and "Asynchronous Warpgroup Level Matrix Shared Memory Layout": canonical layouts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_PIECE = 16  # bytes that stay together


@dataclass(frozen=True)
class Tile:
    """A tile as bytes.

    Attributes:
        data: From its start on; a multiple of 1024 bytes.
        offsets: The descriptor's leading and stride offsets, and the way from one product to the next
            along K, in bytes.
    """

    data: Bytes
    offsets: tuple[int, int, int]


def swizzled(dense: Bytes, swizzle: int) -> Bytes:
    """Bytes moved to where a swizzle puts them; they start at a multiple of 1024."""
    if swizzle == 0:
        return dense
    place = np.arange(dense.size)
    moved = np.empty_like(dense)
    moved[place ^ ((place >> 7) % (swizzle // _PIECE) << 4)] = dense
    return moved


def along_k(matrix: NDArray[np.generic], swizzle: int) -> Tile:
    """A matrix (rows of M or N, columns along K) whose neighbours in memory are neighbours along K.

    With a swizzle, a row is no longer than it.
    """
    rows = np.ascontiguousarray(matrix).view(np.uint8).reshape(matrix.shape[0], -1)
    if swizzle != 0:
        rows = np.pad(rows, ((0, 0), (0, swizzle - rows.shape[1])))
        return Tile(_whole(swizzled(rows.reshape(-1), swizzle)), (_PIECE, 8 * swizzle, 32))
    # Pieces of eight rows of 16 bytes; those along M or N lie side by side.
    pieces = rows.reshape(rows.shape[0] // 8, 8, -1, _PIECE).transpose(2, 0, 1, 3)
    leading = rows.shape[0] // 8 * 128
    return Tile(_whole(pieces.reshape(-1)), (leading, 128, 2 * leading))


def across_k(matrix: NDArray[np.generic], swizzle: int) -> Tile:
    """A matrix of 16-bit values whose neighbours in memory are neighbours along M or N."""
    depth = matrix.shape[1]
    width = (swizzle or _PIECE) // 2
    padded = np.pad(matrix.view(np.uint16), ((0, -matrix.shape[0] % width), (0, 0)))
    blocks = padded.reshape(-1, width, depth).transpose(0, 2, 1)  # [block][k][value]
    if swizzle != 0:
        data = swizzled(np.ascontiguousarray(blocks).reshape(-1).view(np.uint8), swizzle)
        return Tile(_whole(data), (depth * swizzle, 8 * swizzle, 16 * swizzle))
    pieces = blocks.reshape(blocks.shape[0], depth // 8, 8, width).transpose(1, 0, 2, 3)
    leading = blocks.shape[0] * 128
    data = np.ascontiguousarray(pieces).reshape(-1).view(np.uint8)
    return Tile(_whole(data), (leading, 128, 2 * leading))


def _whole(data: Bytes) -> Bytes:
    return np.pad(data, (0, -data.size % 1024))
