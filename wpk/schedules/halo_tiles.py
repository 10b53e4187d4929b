"""Tiles of output pixels whose filters and patches stay in shared memory: what they hold and take (tile_halo.cuh)."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.performance.occupancy import resident_blocks
from wpk.performance.tables import input_extent
from wpk.performance.work import Columns, Floats, Work
from wpk.problems.convolution import Convolution
from wpk.schedules.matrix_tiles import TileCosts, TiledProduct
from wpk.schedules.wgmma_costs import BARRIER_BYTES, GROUP_ROWS, GROUP_THREADS, PORT_BYTES, WARP
from wpk.schedules.wgmma_persistent import STAGED_COLUMNS, in_turn
from wpk.schedules.wgmma_tiles import SWIZZLE, box_depth
from wpk.targets.target import Target

MOST_PIXELS = 256
"""Of a tile: those of four warpgroups."""

MOST_SIDE = 256
"""Pixels of a tensor copy along a side."""

_REPEAT = 1024  # bytes after which a swizzle repeats: slots are multiples
_OTHER_REGISTERS = (
    38  # addresses, descriptors and counters, where ptxas is short; it takes up to 70
)
_CARRYING_REGISTERS = 27  # likewise; three teams of 64 filters would spill
_ROW_SLOTS = 30.0  # of a warp, to load its rows of a tap and ask for their products
_CHAIN_CYCLES = (
    100.0  # of a tap, from the end of products to those of rows loaded behind it; assumed
)

Counts = NDArray[np.int64]


def rows(pixels: Counts) -> Counts:
    """Rows of the warpgroups that have so many pixels."""
    return -(-pixels // GROUP_ROWS) * GROUP_ROWS


def carries(problem: Convolution) -> bool:
    """Whether what lies one pixel below is what the next tap down the filter reads."""
    below = problem.stride == (1, 1) and problem.dilation[0] == 1
    return below and problem.filter[0] > 1


def patch_chunks(problem: Convolution) -> int:
    """Patches that hold all channels, 128 bytes of each pixel's."""
    return -(-problem.c // box_depth(problem.precision))


def patch_sides(problem: Convolution) -> tuple[str, str]:
    """Rows and columns of the patch under a tile, as limits have them."""
    axes = zip(("tile_p", "tile_q"), problem.filter, problem.stride, problem.dilation, strict=True)
    height, width = (
        f"(({name} - 1) * {stride} + {(size - 1) * dilation + 1})"
        for name, size, stride, dilation in axes
    )
    return height, width


@dataclass(frozen=True)
class HaloTiles:
    """Tiles of many schedules of one problem; the properties have one entry a schedule.

    Attributes:
        problem: A convolution.
        columns: The schedules.
    """

    problem: Convolution
    columns: Columns

    @property
    def chunks(self) -> int:
        """Patches that hold all channels, 128 bytes of each pixel's."""
        return -(-self.problem.c // box_depth(self.problem.precision))

    @property
    def taps(self) -> int:
        """Of a filter."""
        r, s = self.problem.filter
        return r * s

    @cached_property
    def across(self) -> Counts:
        """Tiles of the columns that are written: filters and y's padding."""
        stored = self.problem.k + self.problem.y.padding
        across: Counts = -(-stored // self.columns["block_n"])
        return across

    @cached_property
    def groups(self) -> Counts:
        """Warpgroups of a team."""
        return self.team_rows // GROUP_ROWS

    @cached_property
    def team_rows(self) -> Counts:
        """Rows of a team, those without a pixel included."""
        return rows(self.columns["tile_p"] * self.columns["tile_q"])

    @cached_property
    def may_carry(self) -> NDArray[np.bool_]:
        """Where warps have two whole rows of eight pixels, and what is below is read next."""
        pixels = self.columns["tile_p"] * self.columns["tile_q"]
        whole: NDArray[np.bool_] = (self.columns["tile_q"] == 8) & (pixels % GROUP_ROWS == 0)
        return whole & carries(self.problem)

    @cached_property
    def threads(self) -> Floats:
        """Threads of a block."""
        threads = self.columns["teams"] * (self.groups * GROUP_THREADS + WARP)
        return threads.astype(np.float64)

    @cached_property
    def tiles_of_image(self) -> Counts:
        """Tiles that cover an image's output."""
        down = -(-self.problem.p // self.columns["tile_p"])
        tiles: Counts = down * -(-self.problem.q // self.columns["tile_q"])
        return tiles

    @cached_property
    def blocks(self) -> Counts:
        """Blocks that have a tile for each of their teams, of all filters."""
        tiles = self.problem.n.value * self.tiles_of_image
        blocks: Counts = -(-tiles // np.maximum(self.columns["teams"], 1)) * self.across
        return blocks

    @cached_property
    def patch(self) -> tuple[Floats, Floats]:
        """Rows and columns of the patch under a tile."""
        sides = zip(
            ("tile_p", "tile_q"),
            self.problem.filter,
            self.problem.stride,
            self.problem.dilation,
            strict=True,
        )
        height, width = (
            input_extent(self.columns[name].astype(np.float64), size, stride, dilation)
            for name, size, stride, dilation in sides
        )
        return height, width

    @cached_property
    def shared_bytes(self) -> Floats:
        """Filters, each team's patches and its epilogue's staging, barriers."""
        columns, teams = self.columns, self.columns["teams"]
        patch = np.ceil(self.patch[0] * self.patch[1] * SWIZZLE / _REPEAT) * _REPEAT
        filters = self.chunks * self.taps * columns["block_n"] * SWIZZLE
        staging = self.team_rows * (np.minimum(columns["block_n"], STAGED_COLUMNS) + 8) * 4
        barriers = (self.chunks + teams * columns["patches"]) * BARRIER_BYTES
        shared: Floats = filters + teams * (columns["patches"] * patch + staging) + barriers
        return shared

    @cached_property
    def registers(self) -> Floats:
        """Accumulators, a warp's rows of two taps, the rest; and what carries rows from one to the other."""
        carrying = self.columns["carry"] * _CARRYING_REGISTERS
        registers: Floats = self.columns["block_n"] / 2 + 2 * 16 + _OTHER_REGISTERS + carrying
        return registers

    def resident(self, target: Target) -> Floats:
        """Blocks that an SM holds at once."""
        return resident_blocks(self.work(target), target)

    def work(self, target: Target) -> Work:
        """What schedules make the GPU do: a step is a patch for each team, and all taps of it.

        Rows go through registers, and warpgroups read filters as they multiply.
        """
        columns, size = self.columns, self.problem.precision.storage.bytes
        line = np.ceil(SWIZZLE / target.transaction_bytes)
        teams = columns["teams"].astype(np.float64)
        product = TiledProduct(
            element_bytes=size,
            store_bytes=self.problem.y.dtype.bytes,
            tiles=self.blocks.astype(np.float64),
            tile_steps=np.full(teams.shape, float(self.chunks)),
            transactions=teams * self.patch[0] * self.patch[1] * line,
        )
        of = {
            "block_m": columns["teams"] * self.team_rows,
            "block_n": columns["block_n"],
            "block_k": np.full_like(
                columns["teams"], self.taps * box_depth(self.problem.precision)
            ),
            "split": np.ones_like(columns["teams"]),
            "early": columns["early"],
        }
        # Of r taps down the filter the first loads all rows, the others half of them.
        down = self.problem.filter[0]
        loaded = np.where(columns["carry"] == 1, (down + 1) / (2 * down), 1.0)
        read = (
            teams * self.groups * (GROUP_ROWS * loaded + columns["block_n"]) * SWIZZLE * self.taps
        )
        costs = TileCosts(
            unit=self.problem.precision,
            threads=self.threads,
            shared_bytes=self.shared_bytes,
            registers=self.registers,
            loads=read / PORT_BYTES * WARP / self.threads,
            stages=columns["patches"].astype(np.float64),
            slots=_ROW_SLOTS * self.taps,
            chain=_CHAIN_CYCLES * self.taps,
            by_warpgroups=True,
        )
        work = in_turn(product.work(of, costs), columns)
        filters = self.chunks * self.taps * columns["block_n"] * line
        return replace(work, block_transactions=work.block_transactions + filters)
