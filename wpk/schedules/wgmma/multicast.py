"""Multicast: two blocks of a cluster need the same tiles, and each copies one half of them, to both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wpk.dims import ceil_div, product
from wpk.performance import Columns, Floats
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_tiles import TiledProduct, block_tile
from wpk.schedules.single_kernel import Grid
from wpk.targets import Target

PAIR = 2
"""Blocks that a tile is multicast to."""

NOTHING, ROWS, COLUMNS = 0, 1, 2
"""What is multicast: nothing; A's rows, to blocks side by side; B's columns, to blocks one below the other."""

LEAST_COLUMNS = 64
"""Of a tile that is multicast: halves are whole patterns of the swizzle, and worth a cluster."""

_USEFUL_STEPS = 4  # of one box: what has fewer waits for memory and its stores, not for L2


@dataclass(frozen=True)
class Multicast:
    """Multicast in a product of ``rows`` x ``columns``.

    Attributes:
        rows: Of a matrix.
        columns: That are written.
    """

    rows: int
    columns: int

    def axis(self, boxes: int, target: Target) -> tuple[int, ...]:
        """Return the values to try: nothing alone where tiles of 64 x 64 are too few for half of the SMs.

        There split-K is used, and each block's part of a tile is copied to it once.

        Args:
            boxes: Of the reduction.
            target: The GPU.
        """
        tiles = self.rows * self.columns / LEAST_COLUMNS**2
        pays = boxes >= _USEFUL_STEPS and PAIR * tiles >= target.sm_count
        return (NOTHING, ROWS, COLUMNS) if pays else (NOTHING,)

    def limits(self) -> Sequence[Limit]:
        """There are two tiles along the axis on which pairs lie."""
        return (
            Limit(
                f"(share != {ROWS} or block_n < {self.columns}) and "
                f"(share != {COLUMNS} or block_m < {self.rows})",
                "tiles are multicast along an axis of two at least",
            ),
        )

    def product(self, tiles: TiledProduct, columns: Columns, target: Target) -> TiledProduct:
        """Return what blocks then load from L2: half of what is multicast; and blocks that fill up a pair."""
        block_m, block_n, block_k = block_tile(columns)
        along = self._tiles(columns)
        paired = tiles.tiles * (PAIR * np.ceil(along / PAIR) / along)
        lines = np.where(columns["share"] == ROWS, block_m, block_n)
        spared = lines * block_k * tiles.element_bytes / target.transaction_bytes / PAIR
        multicast = columns["share"] != NOTHING
        return replace(
            tiles,
            tiles=np.where(multicast, paired, tiles.tiles),
            transactions=tiles.transactions - np.where(multicast, spared, 0.0),
        )

    def _tiles(self, columns: Columns) -> Floats:
        """Along the axis on which pairs lie."""
        block_m, block_n, _ = block_tile(columns)
        along: Floats = np.where(
            columns["share"] == ROWS, np.ceil(self.columns / block_n), np.ceil(self.rows / block_m)
        )
        return along


def paired_grid(grid: Grid, share: int) -> Grid:
    """Return a grid of whole pairs; a last block may have a tile outside the product, and stores nothing."""
    x, y, z = grid
    if share == COLUMNS:
        return product(ceil_div(x, PAIR), PAIR), y, z
    return (x, product(ceil_div(y, PAIR), PAIR), z) if share == ROWS else grid
