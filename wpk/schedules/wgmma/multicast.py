"""Tiles that two blocks of a cluster share, each asking for one half of them, for both (wgmma_ring.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wpk.dims import ceil_div, product
from wpk.performance.work import Columns, Floats
from wpk.schedules.matrix_tiles import TiledProduct, block_tile, words
from wpk.schedules.single_kernel import Grid
from wpk.schedules.template import Constraint
from wpk.targets.target import Target

PAIR = 2
"""Blocks that share a tile."""

NOTHING, ROWS, COLUMNS = 0, 1, 2
"""What they share: nothing; A's rows, side by side; B's columns, one below the other."""

_LEAST_COLUMNS = 64  # of a tile: halves are whole patterns of the swizzle, and worth a cluster
_USEFUL_STEPS = 4  # of one box: what has fewer waits for memory and its stores, not for L2


@dataclass(frozen=True)
class Sharing:
    """Who shares in a product of ``rows`` x ``columns``.

    Attributes:
        rows: Of a matrix.
        columns: That are written.
    """

    rows: int
    columns: int

    def axis(self, boxes: int, target: Target) -> tuple[int, ...]:
        """Values to try: nothing alone where tiles of 64 x 64 are too few for half of the SMs.

        There reductions are split, and each block's part is brought to it once.

        Args:
            boxes: Of the reduction.
            target: The GPU.
        """
        tiles = self.rows * self.columns / _LEAST_COLUMNS**2
        pays = boxes >= _USEFUL_STEPS and PAIR * tiles >= target.sm_count
        return (NOTHING, ROWS, COLUMNS) if pays else (NOTHING,)

    def constraints(self) -> Sequence[Constraint]:
        """The limits of WgmmaShape, and that there are two to share."""
        return (
            Constraint(
                lambda c: np.isin(c["share"], (NOTHING, ROWS, COLUMNS)),
                words("share is 0 (nothing), 1 (rows) or 2 (columns), not {share}"),
            ),
            Constraint(
                lambda c: (c["share"] == NOTHING) | (c["split"] == 1),
                words("share={share} in {split} parts: blocks that share have whole reductions"),
            ),
            Constraint(
                lambda c: (c["share"] == NOTHING) | (c["block_n"] >= _LEAST_COLUMNS),
                words(
                    f"share={{share}} of {{block_n}} columns, shared are {_LEAST_COLUMNS} or more"
                ),
            ),
            Constraint(
                lambda c: (c["share"] == NOTHING) | (self._tiles(c) >= PAIR),
                words("share={share} along an axis of one tile: nobody is there to share"),
            ),
        )

    def product(self, tiles: TiledProduct, columns: Columns, target: Target) -> TiledProduct:
        """What blocks then load from L2: half of what is shared; and blocks that fill up a pair."""
        block_m, block_n, block_k = block_tile(columns)
        along = self._tiles(columns)
        paired = tiles.tiles * (PAIR * np.ceil(along / PAIR) / along)
        lines = np.where(columns["share"] == ROWS, block_m, block_n)
        spared = lines * block_k * tiles.element_bytes / target.transaction_bytes / PAIR
        shares = columns["share"] != NOTHING
        return replace(
            tiles,
            tiles=np.where(shares, paired, tiles.tiles),
            transactions=tiles.transactions - np.where(shares, spared, 0.0),
        )

    def _tiles(self, columns: Columns) -> Floats:
        """Along the axis on which pairs lie."""
        block_m, block_n, _ = block_tile(columns)
        along: Floats = np.where(
            columns["share"] == ROWS, np.ceil(self.columns / block_n), np.ceil(self.rows / block_m)
        )
        return along


def paired_grid(grid: Grid, share: int) -> Grid:
    """A grid of whole pairs; a last block may have a tile outside the product, and stores nothing."""
    x, y, z = grid
    if share == COLUMNS:
        return product(ceil_div(x, PAIR), PAIR), y, z
    return (x, product(ceil_div(y, PAIR), PAIR), z) if share == ROWS else grid
