"""Tiles of output pixels whose filters and patches are kept in shared memory: what they hold and take (tile_halo.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats, Work
from wpk.problems import Convolution, stored_slots
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.matrix_epilogue import fetched_together, passed_bytes
from wpk.schedules.tiles.matrix import TileCosts, TiledProduct
from wpk.schedules.tiles.pixels import patch_sides
from wpk.schedules.wgmma.costs import BARRIER_BYTES, PORT_BYTES
from wpk.schedules.wgmma.group import GROUP_ROWS, GROUP_THREADS, WARP
from wpk.schedules.wgmma.persistent import in_turn
from wpk.schedules.wgmma.staging import staged_at_once
from wpk.schedules.wgmma.tensor_copies import PRODUCT_BYTES, SWIZZLE, box_depth
from wpk.schedules.wgmma.widths import POWERS, WIDTHS
from wpk.targets import Target

_MOST_PIXELS = 256  # of a tile: those of four warpgroups
_MOST_SIDE = 256  # pixels of a tensor copy along a side
_MOST_PATCHES = 4  # of a team: more does not hide more
_MOST_GROUPS = 6  # warpgroups of a block; a seventh would leave too few registers
_REPEAT = 1024  # bytes after which a swizzle repeats: patches are multiples
_OTHER_REGISTERS = (
    38  # addresses, descriptors and counters, where ptxas is short; it takes up to 70
)
_CARRYING_REGISTERS = 27  # likewise; three teams of 64 filters would spill
_ROW_SLOTS = 30.0  # of a warp, to load its rows of a tap and ask for their products
_CHAIN_CYCLES = (
    100.0  # of a tap, from the end of products to those of rows loaded behind it; assumed
)

Counts = NDArray[np.int64]

_PIXELS = "(tile_p * tile_q)"
_GROUPS = f"ceil_div({_PIXELS}, {GROUP_ROWS})"  # warpgroups of a team
_THREADS = f"teams * ({_GROUPS} * {GROUP_THREADS} + {WARP})"  # a warp of each team asks for patches


def limits(problem: Convolution) -> Sequence[Limit]:
    """Return what tile_halo.cuh can compute."""
    carrying = f"carry == 1 and tile_q == 8 and {_PIXELS} % {GROUP_ROWS} == 0"
    return (
        Limit(
            f"1 <= {_PIXELS} <= {_MOST_PIXELS}",
            f"a tile has at most {_MOST_PIXELS} pixels, those of four warpgroups",
        ),
        Limit(
            f"4 * {_PIXELS} >= {3 * GROUP_ROWS} * {_GROUPS}",
            "at most a quarter of the warpgroups' rows have no pixel",
        ),
        POWERS,
        WIDTHS,
        Limit(
            f"1 <= teams and teams * {_GROUPS} <= {_MOST_GROUPS}",
            f"a block has a team, and at most {_MOST_GROUPS} warpgroups",
        ),
        Limit(f"1 <= patches <= {_MOST_PATCHES}", f"a team has 1 to {_MOST_PATCHES} patches"),
        Limit(
            f"max({', '.join(patch_sides(problem))}) <= {_MOST_SIDE}",
            f"a patch has at most {_MOST_SIDE} pixels along each side",
        ),
        Limit(
            f"carry == 0 or ({carrying})" if carries(problem) else "carry == 0",
            "carry is 0, or 1 where a warp has two rows of eight pixels, one below the other",
        ),
        Limit("persistent >= 0", "persistent is a number of blocks, or 0"),
    )


def useful_limits(problem: Convolution) -> Sequence[Limit]:
    """No patch stays empty, and persistent blocks are dealt out evenly."""
    stored = problem.k // problem.groups + problem.y.padding
    across = f"ceil_div({stored}, block_n) * {problem.groups}"
    return (
        Limit(
            f"persistent > 0 or patches <= {_chunks(problem)}",
            "channels of one tile fill all patches",
        ),
        Limit(
            f"persistent % ({across}) == 0",
            "each tile of filters of each group has the same number of persistent blocks",
        ),
    )


def carries(problem: Convolution) -> bool:
    """Return whether what lies one pixel below is what the next tap down the filter reads."""
    below = problem.stride == (1, 1) and problem.dilation[0] == 1
    return below and problem.filter[0] > 1


def _chunks(problem: Convolution) -> int:
    """Patches that hold all channels of a group, 128 bytes of each pixel's."""
    return -(-problem.c // problem.groups // box_depth(problem.precision))


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
        """Patches that hold all channels of a group."""
        return _chunks(self.problem)

    @property
    def depth(self) -> int:
        """Channels of a patch that are multiplied: whole products of a group's."""
        problem, unit = self.problem, self.problem.precision
        product = PRODUCT_BYTES // unit.storage.bytes
        return min(-(-problem.c // problem.groups // product) * product, box_depth(unit))

    @property
    def taps(self) -> int:
        """Of a filter."""
        r, s = self.problem.filter
        return r * s

    @cached_property
    def across(self) -> Counts:
        """Tiles of the columns that a group writes: filters and, the last one, y's padding."""
        stored = self.problem.k // self.problem.groups + self.problem.y.padding
        across: Counts = -(-stored // self.columns["block_n"])
        return across

    @cached_property
    def groups(self) -> Counts:
        """Warpgroups of a team."""
        groups: Counts = value_of(_GROUPS, self.columns)
        return groups

    @cached_property
    def threads(self) -> Floats:
        """Threads of a block: its warpgroups, and for each team the warp that asks for patches."""
        threads: Counts = value_of(_THREADS, self.columns)
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
        across = self.across * self.problem.groups
        blocks: Counts = -(-tiles // np.maximum(self.columns["teams"], 1)) * across
        return blocks

    @cached_property
    def patch(self) -> tuple[Floats, Floats]:
        """Rows and columns of the patch under a tile."""
        height, width = (value_of(side, self.columns) for side in patch_sides(self.problem))
        return height.astype(np.float64), width.astype(np.float64)

    @cached_property
    def shared_bytes(self) -> Floats:
        """Filters, each team's patches and its epilogue's staging, barriers."""
        columns, teams = self.columns, self.columns["teams"]
        patch = np.ceil(self.patch[0] * self.patch[1] * SWIZZLE / _REPEAT) * _REPEAT
        filters = self.chunks * self.taps * columns["block_n"] * SWIZZLE
        staging = self.groups * GROUP_ROWS * (staged_at_once(columns["block_n"]) + 8) * 4
        barriers = (self.chunks + teams * columns["patches"]) * BARRIER_BYTES
        shared: Floats = filters + teams * (columns["patches"] * patch + staging) + barriers
        return shared

    @cached_property
    def registers(self) -> Floats:
        """Accumulators, a warp's rows of two taps, the rest; and what carries rows from one to the other."""
        carrying = self.columns["carry"] * _CARRYING_REGISTERS
        registers: Floats = self.columns["block_n"] / 2 + 2 * 16 + _OTHER_REGISTERS + carrying
        return registers

    def work(self, target: Target) -> Work:
        """Return what schedules make the GPU do: a step is a patch for each team, and all taps of it."""
        columns = self.columns
        line = np.ceil(SWIZZLE / target.transaction_bytes)
        teams = columns["teams"].astype(np.float64)
        product = TiledProduct(
            element_bytes=self.problem.precision.storage.bytes,
            store_bytes=passed_bytes(self.problem),
            tiles=self.blocks.astype(np.float64),
            tile_steps=np.full(teams.shape, float(self.chunks)),
            transactions=teams * self.patch[0] * self.patch[1] * line,
            stored_slots=stored_slots(self.problem),
            fetched_together=fetched_together(self.problem),
        )
        step = self.taps * self.depth
        tiles = {
            "block_m": columns["teams"] * self.groups * GROUP_ROWS,
            "block_n": columns["block_n"],
            "block_k": np.full_like(columns["teams"], step),
            "split": np.ones_like(columns["teams"]),
            "early": columns["early"],
        }
        work = in_turn(product.work(tiles, self._costs()), columns)
        filters = self.chunks * self.taps * columns["block_n"] * line
        return replace(work, block_transactions=work.block_transactions + filters)

    def _costs(self) -> TileCosts:
        """Rows go through registers, and warpgroups read filters as they multiply."""
        columns = self.columns
        # Of r taps down the filter the first loads all rows, the others half of them.
        down = self.problem.filter[0]
        loaded = np.where(columns["carry"] == 1, (down + 1) / (2 * down), 1.0)
        rows = columns["teams"] * self.groups * (GROUP_ROWS * loaded + columns["block_n"])
        multiplied = self.depth * self.problem.precision.storage.bytes
        return TileCosts(
            unit=self.problem.precision,
            threads=self.threads,
            shared_bytes=self.shared_bytes,
            registers=self.registers,
            loads=rows * multiplied * self.taps / PORT_BYTES * WARP / self.threads,
            stages=columns["patches"].astype(np.float64),
            slots=_ROW_SLOTS * self.taps,
            chain=_CHAIN_CYCLES * self.taps,
            by_warpgroups=True,
        )
