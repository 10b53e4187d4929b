"""Tiles of output pixels that warps compute over a patch of the input: what conv_patch and conv_grouped share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wpk.performance import Columns, Floats
from wpk.problems import Convolution
from wpk.schedules.limit import Limit
from wpk.schedules.template import Schedule

THREADS = "(32 * warps_m * warps_n)"
"""Of a block, as limits have them."""

WHOLE_TILES = (
    Limit("tile_q % 8 == 0", "eight neighbouring pixels lie in all banks"),
    Limit("tile_p * tile_q % (16 * warps_m) == 0", "a warp has whole tiles of 16 pixels"),
    Limit("block_n % (16 * warps_n) == 0", "a warp has whole pairs of tiles of 8 filters"),
)

_STAGED_ROWS, _STAGED_PADDING = 16, 8


@dataclass(frozen=True)
class PixelSchedule(Schedule):
    """Tiles of a block, and its warps.

    Attributes:
        tile_p: Rows of output pixels of a tile.
        tile_q: Columns of output pixels of a tile.
        block_n: Filters of a block.
        warps_m: Warps along the pixels.
        warps_n: Warps along the filters.
    """

    tile_p: int
    tile_q: int
    block_n: int
    warps_m: int
    warps_n: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps_m * self.warps_n * 32


def accumulator_limit(most: int) -> Limit:
    """Return the limit of a thread's accumulators."""
    return Limit(
        f"tile_p * tile_q * block_n <= {most} * {THREADS}",
        f"a thread has at most {most} accumulators",
    )


def patch_sides(problem: Convolution) -> tuple[str, str]:
    """Return the rows and columns of the patch under a tile, as limits have them."""
    axes = zip("pq", problem.filter, problem.stride, problem.dilation, strict=True)
    height, width = (
        f"((tile_{axis} - 1) * {stride} + {(size - 1) * dilation + 1})"
        for axis, size, stride, dilation in axes
    )
    return height, width


@dataclass(frozen=True)
class PixelTiles:
    """Tiles of many schedules of one problem; the properties have one entry a schedule.

    Attributes:
        problem: A convolution.
        columns: The schedules.
    """

    problem: Convolution
    columns: Columns

    @cached_property
    def threads(self) -> Floats:
        """Threads of a block."""
        return (self.columns["warps_m"] * self.columns["warps_n"] * 32).astype(np.float64)

    @cached_property
    def block_m(self) -> Floats:
        """Output pixels of a tile."""
        return (self.columns["tile_p"] * self.columns["tile_q"]).astype(np.float64)

    @cached_property
    def tiles_of_image(self) -> Floats:
        """Tiles that cover an image's output."""
        down = np.ceil(self.problem.p / self.columns["tile_p"])
        tiles: Floats = down * np.ceil(self.problem.q / self.columns["tile_q"])
        return tiles

    @cached_property
    def tiles_of_filters(self) -> Floats:
        """Tiles that cover all filters, and y's padding behind them."""
        stored = self.problem.k + self.problem.y.padding
        tiles: Floats = np.ceil(stored / self.columns["block_n"])
        return tiles

    @cached_property
    def staging_bytes(self) -> Floats:
        """Shared memory in which warps turn their sums into rows, before they store them."""
        row = self.columns["block_n"] // self.columns["warps_n"] + _STAGED_PADDING
        staging: Floats = self.threads / 32 * _STAGED_ROWS * row * 4
        return staging
