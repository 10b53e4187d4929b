"""Tiles of output pixels whose patches stay in shared memory: what they hold and take (tile_halo.cuh)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.performance.tables import input_extent
from wpk.performance.work import Columns, Floats, Work
from wpk.problems.convolution import Convolution
from wpk.schedules.matrix_tiles import TileCosts, TiledProduct
from wpk.schedules.wgmma_costs import GROUP_ROWS, threads
from wpk.schedules.wgmma_tiles import SWIZZLE, box_depth
from wpk.targets.target import Target

MOST_PIXELS = 256
"""Of a tile: those of four warpgroups."""

MOST_SIDE = 256
"""Pixels of a tensor copy along a side."""

_BARRIER_BYTES = 16  # of a slot
_REPEAT = 1024  # bytes after which a swizzle repeats: slots are multiples
_OTHER_REGISTERS = 40  # addresses, descriptors and counters; read from ptxas reports
_ROW_SLOTS = 30.0  # of a warp, to load its rows of a tap and ask for their products
_CHAIN_CYCLES = (
    100.0  # of a tap, from the end of products to those of rows loaded behind it; assumed
)
_PORT_BYTES = 128.0  # that shared memory gives in a cycle

Counts = NDArray[np.int64]


def rows(pixels: Counts) -> Counts:
    """Rows of the warpgroups that have so many pixels."""
    return -(-pixels // GROUP_ROWS) * GROUP_ROWS


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
    def stored_columns(self) -> int:
        """Columns that are written: filters and y's padding."""
        return self.problem.k + self.problem.y.padding

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
    def slots(self) -> Counts:
        """Slots of filters that a block fills in all."""
        slots: Counts = self.taps // np.maximum(self.columns["taps"], 1) * self.chunks
        return slots

    @cached_property
    def block_m(self) -> Counts:
        """Rows of a block, those without a pixel included."""
        return rows(self.columns["tile_p"] * self.columns["tile_q"])

    @cached_property
    def tiles_of_image(self) -> Counts:
        """Tiles that cover an image's output."""
        down = -(-self.problem.p // self.columns["tile_p"])
        tiles: Counts = down * -(-self.problem.q // self.columns["tile_q"])
        return tiles

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
        """Patches, filters and barriers, or the epilogue's staging where larger."""
        columns = self.columns
        patch = np.ceil(self.patch[0] * self.patch[1] * SWIZZLE / _REPEAT) * _REPEAT
        filters = columns["stages"] * columns["taps"] * columns["block_n"] * SWIZZLE
        barriers = (columns["stages"] + columns["patches"]) * _BARRIER_BYTES
        staging = self.block_m * (columns["block_n"] + 8) * 4
        shared: Floats = np.maximum(columns["patches"] * patch + filters + barriers, staging)
        return shared

    @cached_property
    def registers(self) -> Floats:
        """Accumulators, a warp's rows of two taps, the rest."""
        registers: Floats = self.columns["block_n"] / 2 + 2 * 16 + _OTHER_REGISTERS
        return registers

    def work(self, target: Target) -> Work:
        """What schedules make the GPU do: a step is a slot of filters, with its part of a patch.

        Rows go through registers, and warpgroups read filters as they multiply.
        """
        columns, size = self.columns, self.problem.precision.storage.bytes
        line = np.ceil(SWIZZLE / target.transaction_bytes)
        taps = columns["taps"].astype(np.float64)
        steps = self.slots.astype(np.float64)
        patches = self.patch[0] * self.patch[1] * self.chunks
        across = np.ceil(self.stored_columns / columns["block_n"])
        product = TiledProduct(
            element_bytes=size,
            store_bytes=self.problem.y.dtype.bytes,
            tiles=self.problem.n.value * self.tiles_of_image.astype(np.float64) * across,
            tile_steps=steps,
            transactions=(columns["block_n"] * taps + patches / steps) * line,
        )
        of = {
            "block_m": self.block_m,
            "block_n": columns["block_n"],
            "block_k": columns["taps"] * box_depth(self.problem.precision),
            "split": np.ones_like(columns["taps"]),
            "early": columns["early"],
        }
        block_threads = threads(of)
        read = self.block_m / GROUP_ROWS * (GROUP_ROWS + columns["block_n"]) * SWIZZLE * taps
        costs = TileCosts(
            unit=self.problem.precision,
            threads=block_threads,
            shared_bytes=self.shared_bytes,
            registers=self.registers,
            loads=read / _PORT_BYTES * 32 / block_threads,
            stages=columns["stages"].astype(np.float64),
            slots=_ROW_SLOTS * taps,
            chain=_CHAIN_CYCLES * taps,
            by_warpgroups=True,
        )
        return product.work(of, costs)
