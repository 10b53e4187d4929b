"""Tiles of output pixels over patches of several groups: what they hold and take (tile_groups.cuh)."""

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.performance import GATHER_SLOTS, Floats, SharedAccess
from wpk.problems import Convolution
from wpk.schedules.group_fragments import bundle_groups, row_chunks
from wpk.schedules.limit import value_of
from wpk.schedules.matrix_epilogue import passed_bytes, stores_by_columns
from wpk.schedules.tiles.pixels import PixelTiles, patch_sides

CHUNK = 8
"""Elements of the reduction in half a step of mma, and channels that a copy brings."""

STRIP = 8
"""Columns of pixels that a warp walks down, two such strips at once."""

BANDS = f"max(1, {2 * STRIP} * warps_m // tile_q)"
"""Strips of a tile below each other, as limits have them."""

_CHUNK_BYTES = 16
_TILE = 8  # filters
_STEP_ROWS = 2 * STRIP
_OTHER_REGISTERS, _TILE_REGISTERS = 12, 14
"""Of addresses, and of what each tile of filters takes on its way to memory; read from ptxas reports."""

_BLOCK_SLOTS, _TILE_SLOTS, _STEP_SLOTS = 100.0, 100.0, 45.0
"""Issue slots of a thread besides those below; all of them are counted in nvdisasm's listings."""

_COPY_SLOTS, _FILTER_SLOTS, _NAN_SLOTS = 14.0, 2.0, 1.25
"""Those of a copy of 16 bytes, of 16 bytes of filters, and of a sum that may be no number."""

_STORE_SLOTS = {"columns": 6.0, "eights": 9.0, "fours": 31.0}
"""Of a thread's four sums of a tile of filters, beside what is computed of them: by columns in registers
(column_epilogue.cuh), or by rows in vectors of so many (tile_store.cuh)."""

_LINE_BYTES, _PORT_BYTES = 128, 128
_VECTOR_LINES = 4  # of memory, that a warp's load of 16 bytes a lane touches
_CHAIN_CYCLES, _TILE_CYCLES, _PRODUCT_CYCLES, _NAN_CYCLES = 200.0, 100.0, 33.0, 60.0
"""What a step down the strips takes one after another: fragments, staging and the store; sums of each tile of eight filters on
their way there; a product that waits for the one before (arXiv 2402.13499); a vote. From latencies but for the second, which is
chosen by ranks in 60 kernels of three problems, measured on an H200 (tests/replay/h200)."""


def keeps_apart(count: int) -> bool:
    """Return whether eights of so many channels, or filters, are of one group or of two whole ones."""
    return count == CHUNK // 2 or count % CHUNK == 0


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
        return bundle_groups(self.problem) > 1

    @property
    def bundle_filters(self) -> int:
        """Of a group, or of the two of a bundle."""
        return self.filters * bundle_groups(self.problem)

    @property
    def row_chunks(self) -> int:
        """Chunks of a bundle under a row of the filter."""
        return row_chunks(self.problem)

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
        """All filters, the sums of rows that are under way, the rest."""
        of_tile = self.held_and_sums + _TILE_REGISTERS
        registers: Floats = of_tile * self.tiles_n + _OTHER_REGISTERS
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
    def copies(self) -> Floats:
        """Chunks of a patch that a thread asks for."""
        copies: Floats = np.ceil(self.pixels / (self.threads // self.pixel_chunks))
        return copies

    @property
    def _filter_vectors(self) -> Floats:
        """Vectors of filters that a thread loads."""
        return self.tiles_n * -(-self.held // 4)

    @cached_property
    def block_slots(self) -> Floats:
        """Issue slots of a thread for all tiles of its block."""
        slots: Floats = _BLOCK_SLOTS + self._filter_vectors * _FILTER_SLOTS
        return slots

    @cached_property
    def _by_columns(self) -> NDArray[np.bool_]:
        """Whether epilogues are computed in registers: `ColumnEpilogue` of column_epilogue.cuh."""
        of_several = replace(self.problem, groups=1)  # a block's filters are those of several
        return stores_by_columns(of_several) & np.isin(self.tiles_n, (1, 2, 4, 8))

    @cached_property
    def tile_slots(self) -> Floats:
        """Issue slots of a thread for each tile: copies, and what becomes of the sums of each step."""
        wide = np.where(self.tiles_n % 2 == 0, _STORE_SLOTS["eights"], _STORE_SLOTS["fours"])
        stored = np.where(self._by_columns, _STORE_SLOTS["columns"], wide)
        sums = self.tiles_n * (stored + 4 * _NAN_SLOTS * self.is_mixed)
        # What comes to shared memory is counted as gathered (`wpk.performance.rates`), which takes more: in tiles of many
        # copies and few sums more than all of this.
        copies = self.copies * (_COPY_SLOTS - GATHER_SLOTS * 32 * _CHUNK_BYTES / _LINE_BYTES)
        slots: Floats = np.maximum(_TILE_SLOTS + copies + self.steps * (_STEP_SLOTS + sums), 0.0)
        return slots

    @cached_property
    def block_port_cycles(self) -> Floats:
        """Cycles of the port of L1 and shared memory for a block's filters: a line each."""
        cycles: Floats = self.threads / 32 * self._filter_vectors * _VECTOR_LINES
        return cycles

    @cached_property
    def tile_port_cycles(self) -> Floats:
        """The same for each tile, fragments aside: 128 bytes of shared memory, or a line of memory, a cycle.

        Fitted to version 2 of this template, measured on an H100 (docs/decisions/0089-strips-of-groups.md).
        """
        pixel = self.pixel_chunks * _CHUNK_BYTES
        copies = self.pixels * (pixel / _PORT_BYTES + np.ceil(pixel / _LINE_BYTES))
        staged = 4 * self.tiles_n * np.where(self._by_columns, 1.0, 2.0)
        lines = np.ceil(self.tiles_n * _TILE * self.problem.y.dtype.bytes / _LINE_BYTES)
        passed = passed_bytes(self.problem) / self.problem.y.dtype.bytes
        step = staged + _STEP_ROWS * lines * passed
        cycles: Floats = copies + self.threads / 32 * self.steps * step
        return cycles

    @cached_property
    def chain_cycles(self) -> Floats:
        """Cycles that a warp takes for a tile, however little it computes."""
        products = (-(-self.row_chunks // 2)) * (1 if self.is_carried else self.problem.filter[0])
        sums = _TILE_CYCLES * self.tiles_n + _NAN_CYCLES * self.is_mixed
        step = _CHAIN_CYCLES + _PRODUCT_CYCLES * products + sums
        cycles: Floats = self.steps * step
        return cycles

    def transactions(self, transaction_bytes: int) -> tuple[Floats, Floats]:
        """Count the global memory transactions that load a block's filters, and a patch."""
        pixel = np.ceil(self.pixel_chunks * _CHUNK_BYTES / transaction_bytes)
        vectors = self._filter_vectors * self.columns["warps_n"]
        filters: Floats = vectors * 32 * _CHUNK_BYTES / transaction_bytes
        return filters, self._inside * pixel

    @cached_property
    def _inside(self) -> Floats:
        """Pixels of a patch that lie in the image, on average: others are zeros that nobody loads."""
        inside = np.ones_like(self.pixels)
        problem = self.problem
        axes = (("tile_p", problem.p, problem.h), ("tile_q", problem.q, problem.w))
        for axis, (name, outputs, size) in enumerate(axes):
            stride, span = problem.stride[axis], problem.dilation[axis] * (problem.filter[axis] - 1)
            of_tile = {}
            for tile in np.unique(self.columns[name]):
                begin = np.arange(0, outputs, tile) * stride - problem.pad[axis]
                end = np.minimum(begin + (tile - 1) * stride + span + 1, size)
                of_tile[int(tile)] = np.maximum(end - np.maximum(begin, 0), 0).mean()
            inside = inside * np.array([of_tile[int(tile)] for tile in self.columns[name]])
        return inside

    @cached_property
    def stored(self) -> Floats:
        """Elements of the output that a tile has on average: tiles reach over the image's edge."""
        pixels = self.problem.p * self.problem.q / self.tiles_of_image
        stored: Floats = pixels * self.columns["block_n"]
        return stored

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
