"""Tiles of output pixels over patches of several groups: what they hold and take (tile_groups.cuh)."""

from functools import cached_property

import numpy as np

from wpk.performance import Floats, SharedAccess
from wpk.problems import Convolution
from wpk.schedules.limit import value_of
from wpk.schedules.tiles.pixels import PixelTiles, patch_sides

CHUNK = 8
"""Elements of the reduction in half a step of mma, and channels that a copy brings."""

STRIP = 8
"""Columns of pixels that a warp walks down, two such strips at once."""

BANDS = f"max(1, {2 * STRIP} * warps_m // tile_q)"
"""Strips of a tile below each other, as limits have them."""

_ELEMENT, _CHUNK_BYTES = 2, 16
_TILE = 8  # filters
_STEP_ROWS = 2 * STRIP
_OTHER_REGISTERS = 44  # addresses, places of copies; read from ptxas reports
_BLOCK_SLOTS, _COPY_SLOTS, _FILTER_SLOTS = 130.0, 14.0, 1.5
"""Issue slots of a thread, of its copy of a chunk (its pixel, its bounds), and of a word of a filter."""

_STEP_SLOTS, _VECTOR_SLOTS, _NAN_SLOTS = 40.0, 20.0, 1.0
"""Of a step down the strips, of a vector that it stores, and of a sum that may be no number."""


def few_channels(channels: int) -> bool:
    """Return whether chunks are of one group, or of two whole ones."""
    return channels == CHUNK // 2 or channels % CHUNK == 0


def few_filters(filters: int) -> bool:
    """Return whether tiles of eight filters are of one group, or of two whole ones."""
    return filters == _TILE // 2 or filters % _TILE == 0


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
    def is_mixed(self) -> bool:
        """Whether groups come in bundles of two, which share a chunk or a tile."""
        return self.channels % CHUNK != 0 or self.filters % _TILE != 0

    @property
    def bundle_filters(self) -> int:
        """Of a group, or of the two of a bundle."""
        return self.filters * (1 + self.is_mixed)

    @property
    def row_chunks(self) -> int:
        """Chunks of a bundle under a row of the filter."""
        return self.problem.filter[1] * (1 + self.is_mixed) * self.channels // CHUNK

    @property
    def held(self) -> int:
        """Words of a tile of eight filters that a thread holds."""
        return self.problem.filter[0] * self.row_chunks

    @property
    def is_carried(self) -> bool:
        """Whether a row of the patch is loaded once for all output rows that it is under."""
        return self.problem.stride[0] == 1 and self.problem.dilation[0] == 1

    @property
    def live(self) -> int:
        """Output rows whose sums a warp has at once."""
        return self.problem.filter[0] if self.is_carried else 1

    @property
    def held_and_sums(self) -> int:
        """The same, and the sums of rows that are under way."""
        return self.held + 4 * self.live

    @cached_property
    def tiles_n(self) -> Floats:
        """Tiles of eight filters of a warp."""
        tiles: Floats = (self.columns["block_n"] // self.columns["warps_n"] / _TILE).astype(
            np.float64
        )
        return tiles

    @cached_property
    def steps(self) -> Floats:
        """Steps of a warp down its strips, each of sixteen pixels."""
        steps: Floats = self.block_m / self.columns["warps_m"] / _STEP_ROWS
        return steps

    @cached_property
    def _walks(self) -> Floats:
        """Pairs of strips of a warp."""
        walks: Floats = self.steps * value_of(BANDS, self.columns) / self.columns["tile_p"]
        return walks

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
        """The patch, a second one where a block has several tiles, and the staging of each warp."""
        patches = np.where(self.columns["tiles"] > 1, 2.0, 1.0)
        shared: Floats = patches * self.pixels * self._pixel_bytes + self.staging_bytes
        return shared

    @cached_property
    def staging_bytes(self) -> Floats:
        """See `PixelTiles.staging_bytes`; rows begin eight banks apart."""
        columns = self.columns["block_n"] // self.columns["warps_n"]
        row = columns + np.where(columns % 16 == 0, 8, 16)
        staging: Floats = self.threads / 32 * _STEP_ROWS * row * 4
        return staging

    @cached_property
    def registers(self) -> Floats:
        """All filters, the sums of rows that are under way, fragments of a row of the patch, the rest."""
        row = 2.0 * self.row_chunks * (1 + self.row_chunks % 2)
        sums = 4 * self.live * self.tiles_n
        registers: Floats = self.held * self.tiles_n + sums + row + _OTHER_REGISTERS
        return registers

    @cached_property
    def fragment_loads(self) -> Floats:
        """Loads of shared memory of a warp for a tile: of each row of the patch, or of each row under each tap."""
        rows, _ = self.problem.filter
        times = self.steps + (rows - 1) * self._walks if self.is_carried else self.steps * rows
        bundles = np.maximum(self.tiles_n * _TILE / self.bundle_filters, 1.0)
        left = np.where(bundles % 2 == 0, 0.5, 1.0) * (self.row_chunks % 2)
        loads: Floats = times * bundles * (self.row_chunks // 2 + left)
        return loads

    @cached_property
    def products(self) -> Floats:
        """Instructions of a warp for a tile that multiply, halves of a step included."""
        rows, _ = self.problem.filter
        products: Floats = self.steps * self.tiles_n * rows * -(-self.row_chunks // 2)
        return products

    @cached_property
    def copies(self) -> Floats:
        """Chunks of a patch that a thread asks for."""
        copies: Floats = np.ceil(self.pixels / (self.threads // self.pixel_chunks))
        return copies

    @cached_property
    def block_slots(self) -> Floats:
        """Issue slots of a thread for all tiles of its block."""
        slots: Floats = _BLOCK_SLOTS + self.held * self.tiles_n * _FILTER_SLOTS
        return slots

    @cached_property
    def tile_slots(self) -> Floats:
        """Issue slots of a thread for each tile: copies, products, what becomes of the sums of each step."""
        copies = self.copies * _COPY_SLOTS
        vectors = self.tiles_n / 2 * _VECTOR_SLOTS
        sums = self.tiles_n * 4 * _NAN_SLOTS * self.is_mixed
        slots: Floats = copies + self.products + self.steps * (_STEP_SLOTS + vectors + sums)
        return slots

    def transactions(self, transaction_bytes: int) -> tuple[Floats, Floats]:
        """Count the global memory transactions that load a block's filters, and a patch."""
        taps = self.problem.filter[0] * self.problem.filter[1]
        row = -(-taps * self.channels // CHUNK) * CHUNK * _ELEMENT / transaction_bytes
        pixel = np.ceil(self.pixel_chunks * _CHUNK_BYTES / transaction_bytes)
        filters: Floats = self.columns["block_n"] * row
        return filters, self.pixels * pixel

    @cached_property
    def tile_flops(self) -> Floats:
        """Operations of a tile, zeros included."""
        reduction = self.problem.filter[0] * self.row_chunks * CHUNK
        flops: Floats = 2.0 * self.block_m * self.columns["block_n"] * reduction
        return flops

    def accesses(self, tile_q: int) -> tuple[SharedAccess, ...]:
        """Return the loads of a warp's fragments, of one schedule.

        Args:
            tile_q: Its columns of pixels.
        """
        stride, pitch = self.problem.stride, int(self._pixel_bytes[0])
        row = (tile_q - 1) * stride[1] + (self.problem.filter[1] - 1) * self.problem.dilation[1] + 1
        walk = int(self.columns["tile_p"][0] // value_of(BANDS, self.columns)[0])
        below = 0 if tile_q > STRIP else walk * stride[0] * row  # from a strip to the next
        beside = STRIP * stride[1] if tile_q > STRIP else 0
        lanes = tuple(
            (lane % 8 * stride[1] + lane // 8 % 2 * (below + beside)) * pitch
            + lane // 16 * _CHUNK_BYTES
            for lane in range(32)
        )
        return (SharedAccess(lanes, _CHUNK_BYTES, int(np.ceil(self.fragment_loads[0]))),)
