"""Tiles of output pixels over patches of several groups: what they hold and take (tile_groups.cuh)."""

from functools import cached_property

import numpy as np

from wpk.performance import Floats, SharedAccess
from wpk.problems import Convolution
from wpk.schedules.limit import value_of
from wpk.schedules.tiles.pixels import PixelTiles, patch_sides

CHUNK = 8
"""Elements of the reduction in half a step of mma, and channels that a copy brings."""

_ELEMENT, _CHUNK_BYTES = 2, 16
_OTHER_REGISTERS = 28  # addresses, places of copies; read from ptxas reports
_FRAGMENT_ROWS = 16
_SLOTS, _COPY_SLOTS, _FILTER_SLOTS = 130.0, 14.0, 1.5
"""Issue slots of a thread, of its copy of a chunk (its pixel, its bounds), and of a word of a filter; from nvdisasm's
listings: 400 instructions where these and those of the rates are 407, 1820 where they are 1590."""


def few_channels(channels: int) -> bool:
    """Return whether chunks keep groups of so many channels apart."""
    return channels == CHUNK // 2 or channels % CHUNK == 0


def few_filters(filters: int) -> bool:
    """Return whether tiles of eight filters are of one group, or of two."""
    return filters == CHUNK // 2 or filters % CHUNK == 0


class GroupTiles(PixelTiles):
    """Tiles over patches of groups of few channels."""

    @classmethod
    def of(cls, problem: Convolution) -> "GroupTiles":
        """Return what is the same for all schedules."""
        return cls(problem, {})

    @property
    def channels(self) -> int:
        """Of a group."""
        return self.problem.c // self.problem.groups

    @property
    def filters(self) -> int:
        """Of a group."""
        return self.problem.k // self.problem.groups

    @property
    def chunks(self) -> int:
        """Of a group's reduction."""
        return -(-self.problem.filter[0] * self.problem.filter[1] * self.channels // CHUNK)

    @property
    def steps(self) -> int:
        """Of mma: pairs of chunks."""
        return -(-self.chunks // 2)

    @cached_property
    def warp_tiles(self) -> tuple[Floats, Floats]:
        """Tiles of 16 pixels, and of 8 filters, of a warp."""
        warp_n = self.columns["block_n"] // self.columns["warps_n"]
        return self.block_m / self.columns["warps_m"] / 16, (warp_n // 8).astype(np.float64)

    @cached_property
    def pixels(self) -> Floats:
        """Pixels of a patch."""
        rows, columns = (value_of(side, self.columns) for side in patch_sides(self.problem))
        pixels: Floats = (rows * columns).astype(np.float64)
        return pixels

    @cached_property
    def pixel_chunks(self) -> Floats:
        """Chunks of a pixel."""
        channels = self.columns["block_n"] // self.filters * self.channels
        chunks: Floats = np.ceil(channels / CHUNK)
        return chunks

    @cached_property
    def _pixel_bytes(self) -> Floats:
        """From a pixel of a patch to its neighbour: an odd number of chunks."""
        odd: Floats = self.pixel_chunks + 1 - self.pixel_chunks % 2
        return odd * _CHUNK_BYTES

    @cached_property
    def shared_bytes(self) -> Floats:
        """The patch, and the staging of each warp."""
        shared: Floats = self.pixels * self._pixel_bytes + self.staging_bytes
        return shared

    @cached_property
    def _parts(self) -> int:
        """Groups that share a tile of eight filters."""
        return max(1, CHUNK // self.filters)

    @cached_property
    def registers(self) -> Floats:
        """Accumulators, those of a run of tiles once more, all filters, two sets of fragments, the rest."""
        tiles_m, tiles_n = self.warp_tiles
        run = np.minimum(tiles_n, max(1, self.filters // CHUNK))
        sums = 4 * tiles_m * (tiles_n + run)
        registers: Floats = sums + 2 * self.steps * tiles_n + 10 * tiles_m + _OTHER_REGISTERS
        return registers

    @cached_property
    def fragment_loads(self) -> Floats:
        """Loads of shared memory of a warp: of each group's fragments, at once or a word at a time."""
        tiles_m, tiles_n = self.warp_tiles
        groups = np.maximum(tiles_n * CHUNK / self.filters, 1.0)
        loads: Floats = self.steps * tiles_m * groups * self._loads_of_fragment
        return loads

    @property
    def _loads_of_fragment(self) -> int:
        return 1 if self.channels % CHUNK == 0 else 4

    @cached_property
    def slots(self) -> Floats:
        """Issue slots of a thread: copies, filters, and the parts of tiles of several groups."""
        _, tiles_n = self.warp_tiles
        copies = np.ceil(self.pixels * self.pixel_chunks / self.threads) * _COPY_SLOTS
        filters = 2 * self.steps * tiles_n * (_FILTER_SLOTS + self._parts - 1)
        slots: Floats = _SLOTS + copies + filters
        return slots

    def transactions(self, transaction_bytes: int) -> Floats:
        """Count the global memory transactions that load a block's filters, and its patch."""
        row = self.chunks * CHUNK * _ELEMENT / transaction_bytes
        pixel = np.ceil(self.pixel_chunks * _CHUNK_BYTES / transaction_bytes)
        total: Floats = self.columns["block_n"] * row + self.pixels * pixel
        return total

    @cached_property
    def tile_flops(self) -> Floats:
        """Operations of a tile, zeros included."""
        flops: Floats = (
            2.0 * self.block_m * self.columns["block_n"] * self.steps * 2 * CHUNK * self._parts
        )
        return flops

    def accesses(self, tile_q: int) -> tuple[SharedAccess, ...]:
        """Return the loads of a warp's fragments, of one schedule.

        Args:
            tile_q: Its columns of pixels.
        """
        stride, pitch = self.problem.stride[1], int(self._pixel_bytes[0])
        row = (tile_q - 1) * stride + (self.problem.filter[1] - 1) * self.problem.dilation[1] + 1
        below = row * self.problem.stride[0]
        pixel = [(n % tile_q * stride + n // tile_q * below) * pitch for n in range(_FRAGMENT_ROWS)]
        count = int(self.fragment_loads[0])
        if self._loads_of_fragment == 1:
            lanes = tuple(pixel[lane % 16] + lane // 16 * _CHUNK_BYTES for lane in range(32))
            return (SharedAccess(lanes, _CHUNK_BYTES, count),)
        step = self.problem.dilation[1] * pitch
        words = tuple(pixel[lane // 4] + lane % 4 // 2 * step + lane % 2 * 4 for lane in range(32))
        return (SharedAccess(words, 4, count),)
