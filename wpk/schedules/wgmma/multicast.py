"""Multicast: two or four blocks of a cluster need the same tiles, and each copies one part of them, to all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wpk.dims import DimExpr, ceil_div, product
from wpk.performance import Columns, Floats
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import Grid
from wpk.schedules.tiles.matrix import TiledProduct, block_tile
from wpk.targets import Target

PAIR, FOUR = 2, 4
"""Blocks that a tile is multicast to."""

NOTHING, ROWS, COLUMNS = 0, 1, 2
"""What is multicast: nothing; A's rows, to blocks side by side; B's columns, to blocks one below the other."""

MOST_CLUSTER = 8
"""Blocks of a cluster that every GPU of sm_90 places."""

_PATTERN = 8  # rows of 128 bytes, behind which the swizzle repeats itself: parts are whole ones
_LEAST_COLUMNS = (
    64  # of a tile, where there are many or split-K: narrower ones are worth no cluster
)
_TILE = 64  # rows and columns of the tiles that are counted
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

    def axes(self, boxes: int, many: bool, target: Target) -> dict[str, tuple[int, ...]]:
        """Return the values to try: nothing alone where there is too little to do for half of the SMs.

        That counts tiles of 64 x 64, each split into parts of four boxes. Four blocks share a tile where there
        are so few of them that each has a block.

        Args:
            boxes: Of the reduction.
            many: Whether tiles are more than fit all SMs at once.
            target: The GPU.
        """
        blocks = self.rows * self.columns / _TILE**2 * (1 if many else boxes // _USEFUL_STEPS)
        if boxes < _USEFUL_STEPS or PAIR * blocks < target.sm_count:
            return {"share": (NOTHING,), "shared_by": (PAIR,)}
        return {
            "share": (NOTHING, ROWS, COLUMNS),
            "shared_by": (PAIR,) if many else (PAIR, FOUR),
        }

    def limits(self, depth: int, many: bool) -> Sequence[Limit]:
        """There are more tiles along the axis than half of a cluster.

        Where there are few tiles, each part of split-K is worth it, and it is the larger operand's tiles that save
        most; where there are many, those are not too narrow.

        Args:
            depth: Elements of the reduction in a box.
            many: As `axes` takes it.
        """
        along = Limit(
            f"(share != {ROWS} or block_n * (shared_by // 2) < {self.columns}) and "
            f"(share != {COLUMNS} or block_m * (shared_by // 2) < {self.rows})",
            "tiles are multicast along an axis of two at least, to four blocks along one of three",
        )
        if many:
            return along, _columns(_LEAST_COLUMNS, "")
        return (
            along,
            _columns(_LEAST_COLUMNS // 2, ""),
            _columns(_LEAST_COLUMNS, "split == 1 or "),
            Limit(
                f"split == 1 and shared_by == {PAIR} or "
                f"(share != {ROWS} or block_m >= block_n) and (share != {COLUMNS} or block_n >= block_m)",
                "with split-K, and to four blocks, tiles of the larger operand are multicast",
            ),
            Limit(
                f"share == {NOTHING} or split == 1 or "
                f"min(steps, stages) * block_k >= {_USEFUL_STEPS * depth}",
                f"parts of a reduction whose blocks multicast, and pipelines, have at least {_USEFUL_STEPS} boxes",
            ),
            Limit(
                f"share == {NOTHING} or split <= {MOST_CLUSTER}",
                f"a reduction whose blocks multicast has at most {MOST_CLUSTER} parts",
            ),
        )

    def product(self, tiles: TiledProduct, columns: Columns, target: Target) -> TiledProduct:
        """Return what blocks then load from L2: their parts of what is multicast; and blocks that fill up clusters."""
        block_m, block_n, block_k = block_tile(columns)
        blocks = columns["shared_by"]
        along = self._tiles(columns)
        whole = tiles.tiles * (blocks * np.ceil(along / blocks) / along)
        lines = np.where(columns["share"] == ROWS, block_m, block_n)
        shared = lines * block_k * tiles.element_bytes / target.transaction_bytes
        multicast = columns["share"] != NOTHING
        return replace(
            tiles,
            tiles=np.where(multicast, whole, tiles.tiles),
            transactions=tiles.transactions - np.where(multicast, shared - shared / blocks, 0.0),
        )

    def _tiles(self, columns: Columns) -> Floats:
        """Along the axis on which clusters lie."""
        block_m, block_n, _ = block_tile(columns)
        along: Floats = np.where(
            columns["share"] == ROWS, np.ceil(self.columns / block_n), np.ceil(self.rows / block_m)
        )
        return along


def _columns(least: int, other: str) -> Limit:
    """What a tile that is multicast has, unless the expression ``other`` holds, which ends with ``or``."""
    return Limit(
        f"share == {NOTHING} or {other}block_n >= {least}",
        f"tiles that are multicast have at least {least} columns",
    )


LIMITS = (
    Limit(
        f"share in ({NOTHING}, {ROWS}, {COLUMNS})",
        "share is 0 (no multicast), 1 (of A) or 2 (of B)",
    ),
    Limit(f"shared_by in ({PAIR}, {FOUR})", "tiles are multicast to two or four blocks"),
    Limit(
        f"share != {NOTHING} or shared_by == {PAIR}",
        f"shared_by is {PAIR} where nothing is multicast",
    ),
    Limit(
        f"share != {COLUMNS} or block_n % ({_PATTERN} * shared_by) == 0",
        f"parts of a tile of B are whole patterns of the swizzle, {_PATTERN} columns",
    ),
    Limit(
        f"cluster == 0 or share == {NOTHING} or split * shared_by <= {MOST_CLUSTER}",
        f"blocks that multicast and split are a cluster of at most {MOST_CLUSTER}",
    ),
    Limit(
        f"persistent % shared_by == 0 or share == {NOTHING}",
        "persistent blocks that multicast are whole clusters",
    ),
)
"""What kernels can multicast."""


def whole_clusters(grid: Grid, multicast_a: int, multicast_b: int) -> Grid:
    """Return a grid of whole clusters; the last blocks may have tiles outside the product, and store nothing.

    Args:
        grid: Tiles of rows, tiles of columns, parts of the reduction.
        multicast_a: Blocks side by side that share a tile of A.
        multicast_b: Blocks one below the other that share a tile of B.
    """
    x, y, z = grid
    return _whole(x, multicast_b), _whole(y, multicast_a), z


def _whole(tiles: DimExpr, blocks: int) -> DimExpr:
    return tiles if blocks == 1 else product(ceil_div(tiles, blocks), blocks)
