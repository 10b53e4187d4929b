"""Tiles of output pixels over patches of an image: what they hold and take (tile_patch.cuh)."""

from functools import cached_property

import numpy as np

from wpk.dtypes import Precision
from wpk.performance import Floats, row_transactions
from wpk.problems import Convolution
from wpk.schedules.limit import value_of
from wpk.schedules.packings import (
    CHANNELS,
    CHUNK_BYTES,
    chunks_a_row,
    product_steps,
    taps_a_chunk,
)
from wpk.schedules.tiles.pixels import PixelTiles, patch_sides

# Addresses and counters; places of a held pixel; what splitting fp32 takes. Read from ptxas reports.
_OTHER_REGISTERS, _PLACE_REGISTERS, _SPLIT_REGISTERS = 32, 5, 20


def patch_pixels(problem: Convolution) -> tuple[str, str]:
    """Return the rows and columns of the patch under a tile, a cut chunk's pixels included, as limits have them."""
    element = problem.precision.storage.bytes
    taps = chunks_a_row(problem, element) * taps_a_chunk(element)
    return patch_sides(problem)[0], f"((tile_q - 1) * {problem.stride[1]} + {taps})"


class PatchTiles(PixelTiles):
    """Tiles over patches of at most four channels."""

    @cached_property
    def steps(self) -> int:
        """Steps of a tensor core: pairs of chunks of 16 bytes."""
        return product_steps(self.problem, self._element)

    @cached_property
    def accumulators(self) -> Floats:
        """Accumulators of a thread."""
        return self.block_m * self.columns["block_n"] / self.threads

    @cached_property
    def pixels(self) -> tuple[Floats, Floats]:
        """Rows and columns of the patch under a tile, a cut chunk's pixels included."""
        rows, columns = (value_of(side, self.columns) for side in patch_pixels(self.problem))
        return rows.astype(np.float64), columns.astype(np.float64)

    @cached_property
    def held_values(self) -> Floats:
        """Values of a patch that a thread has in its registers on their way."""
        rows, columns = self.pixels
        held: Floats = np.ceil(rows * columns / self.threads) * self.problem.c
        return held

    @cached_property
    def row_chunks(self) -> Floats:
        """Chunks of a patch's row in shared memory."""
        taps, stride = taps_a_chunk(self._element), self.problem.stride[1]
        step = taps if stride % taps == 0 else 1
        apart = stride // step
        last = (chunks_a_row(self.problem, self._element) - 1) * (taps // step)
        positions = (self.columns["tile_q"] - 1) * apart + last + 1
        chunks: Floats = apart * np.ceil(positions / apart)
        return chunks

    @cached_property
    def shared_bytes(self) -> Floats:
        """Filters with a chunk between them, the patch, and the staging of each warp."""
        filters = self.columns["block_n"] * (2 * self.steps + 1) * CHUNK_BYTES
        patch = self.pixels[0] * self.row_chunks * CHUNK_BYTES
        shared: Floats = filters + patch + self.staging_bytes
        return shared

    @cached_property
    def registers(self) -> Floats:
        """Accumulators, two sets of fragments, the next patch, the rest.

        Of fp32, accumulators twice, and a third set: the parts of one.
        """
        is_split = self.problem.precision is Precision.FP32
        sets, sums = (3, 2) if is_split else (2, 1)
        warp_m = self.block_m / self.columns["warps_m"]
        warp_n = self.columns["block_n"] / self.columns["warps_n"]
        held = self.held_values * (1 + _PLACE_REGISTERS / self.problem.c)
        product = sums * self.accumulators + sets * (warp_m / 4 + warp_n / 4)
        product = product + np.where(self.columns["tiles"] > 1, held, 0.0)
        other = _OTHER_REGISTERS + (_SPLIT_REGISTERS if is_split else 0)
        registers: Floats = np.maximum(product, self.held_values) + other
        return registers

    @cached_property
    def matrix_loads(self) -> Floats:
        """Instructions ``ldmatrix`` of a warp for a tile."""
        tiles_m = self.block_m / self.columns["warps_m"] / 16
        pairs_n = self.columns["block_n"] / self.columns["warps_n"] / 16
        loads: Floats = self.steps * (tiles_m + pairs_n)
        return loads

    def transactions(self, transaction_bytes: int) -> tuple[Floats, Floats]:
        """Count the global memory transactions that load a block's filters, and a patch."""
        row = 2.0 * self.steps * CHUNK_BYTES / transaction_bytes
        rows, columns = self.pixels
        size, (_, c, _, w) = self.problem.x.dtype.bytes, self.problem.x.strides
        planes = 1 if c == 1 else self.problem.c
        patch = row_transactions(planes * rows, columns * w * size, transaction_bytes)
        return self.columns["block_n"] * np.ceil(row), patch

    @cached_property
    def tile_flops(self) -> Floats:
        """Operations of a tile, padding included."""
        elements = self.steps * 2 * taps_a_chunk(self._element) * CHANNELS
        flops: Floats = 2.0 * self.block_m * self.columns["block_n"] * elements
        return flops

    @property
    def _element(self) -> int:
        return self.problem.precision.storage.bytes
