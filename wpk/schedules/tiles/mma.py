"""What the tensor-core templates share: their schedule, its limits, its cost (see tile_mma.cuh)."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wpk.dtypes import DType, Precision
from wpk.performance import Columns, Floats, SharedAccess, tensor_peak
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.matrix_template import TileSchedule
from wpk.schedules.split import split_axis, sum_registers
from wpk.schedules.tiles.matrix import TileCosts, up_to
from wpk.schedules.views.matrix import MatrixSizes
from wpk.targets import Target

_WARP = 32
_THREADS = f"({_WARP} * warps_m * warps_n)"
_MAX_ACCUMULATORS = 128
_SPLIT_ACCUMULATORS = 64  # of fp32: the sums and the parts of a step take the others' place
_SPLIT_SLOTS = 3  # of a number: a conversion, at half the rate, and a subtraction
_UNPACK_SLOTS = 4  # of a word of four 8-bit floats: two conversions, at half the rate
_MAX_COPIES = 16
_MAX_GATHERED_BYTES = 128
_MOMENT_REGISTERS = 12  # of rows that are normalised, beside those of each tile; as the others
_OTHER_REGISTERS = 20  # addresses and counters; read, as the next two, from ptxas reports
_POSITION_A, _POSITION_B = 3, 2

_GROUP_BYTES = 16


def most_together(precision: Precision) -> int:
    """Return the elements that a thread puts into a tile at once: what it gathers together may not be more."""
    return _GROUP_BYTES // precision.storage.bytes


@dataclass(frozen=True)
class MmaSchedule(TileSchedule):
    """The tile of a block as warps compute it, and the pipeline that feeds them.

    Attributes:
        warps_m: Warps along the rows; each has ``block_m / warps_m`` of them.
        warps_n: Warps along the columns.
        stages: Stages of the pipeline; ``stages - 1`` are in flight (prefetching).
        split: Blocks that share the reduction of a tile.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    warps_m: int
    warps_n: int
    stages: int
    split: int = 1
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps_m * self.warps_n * _WARP


@dataclass(frozen=True)
class MmaTiles:
    """How operands reach the tiles of a product, and what schedules of them take.

    Attributes:
        precision: Precision of the products.
        copy_bytes_a: Bytes of an asynchronous copy of the rows' operand, 0 where it is gathered.
        copy_bytes_b: The same for the columns' operand.
        gathered_bytes_a: Bytes of an element of the rows' operand as it is gathered, unconverted.
        gathered_bytes_b: The same for the columns' operand.
        b_across: The columns' operand is copied as it lies, contiguous across the reduction.
        fragment_slots: Issue slots of a warp that looks at a fragment of its rows besides multiplying it.
    """

    precision: Precision
    copy_bytes_a: int
    copy_bytes_b: int
    gathered_bytes_a: int
    gathered_bytes_b: int
    b_across: bool = False
    fragment_slots: float = 0.0

    @property
    def element_bytes(self) -> int:
        """Bytes of an operand's element in shared memory."""
        return self.precision.storage.bytes

    @property
    def is_split(self) -> bool:
        """Whether operands are fp32, split into two tf32 numbers each (split_fp32.cuh)."""
        return self.precision is Precision.FP32

    def loaders(self) -> list["_Loader"]:
        """Return the loaders that keep something in registers."""
        a = _Loader("block_m", self.copy_bytes_a, self.gathered_bytes_a, _POSITION_A)
        b = _Loader("block_n", self.copy_bytes_b, self.gathered_bytes_b, _POSITION_B)
        return [a] if self.b_across else [a, b]

    def shared_accesses(self, schedule: MmaSchedule) -> tuple[SharedAccess, SharedAccess]:
        """Return the ldmatrix instructions of a step: A's and B's, as the first warp makes them."""
        block = schedule.block_m, schedule.block_n, schedule.block_k
        warps = schedule.warps_m, schedule.warps_n
        return _matrix_loads(block, warps, self.element_bytes, self.b_across)

    def access_keys(self, columns: Columns) -> Columns:
        """Return what the costs of these loads depend on."""
        own = ("block_m", "block_n", "block_k", "warps_m", "warps_n")
        return {name: columns[name] for name in own}

    @property
    def access_context(self) -> Hashable:
        """What they depend on besides."""
        return self.element_bytes, self.b_across

    def axes(self, sizes: MatrixSizes, target: Target) -> dict[str, tuple[int, ...]]:
        """Return the values to try for a product of these sizes; tiles far beyond it are left out."""
        block_k = tuple(row_bytes // self.element_bytes for row_bytes in (32, 64, 128))
        return {
            "block_m": up_to((16, 32, 64, 128, 256), sizes.rows),
            "block_n": up_to((16, 32, 64, 128, 256), sizes.columns),
            "block_k": block_k,
            "warps_m": (1, 2, 4, 8),
            "warps_n": (1, 2, 4),
            "stages": (2, 3, 4, 5),
            "split": split_axis(sizes.reduction, block_k[0]),
        }

    def limits(self) -> Sequence[Limit]:
        """Return what tile_mma.cuh and its loaders can compute."""
        element = self.element_bytes
        most = _SPLIT_ACCUMULATORS if self.is_split else _MAX_ACCUMULATORS
        return (
            Limit("block_m % (16 * warps_m) == 0", "a warp has whole tiles of 16 rows"),
            Limit("block_n % (16 * warps_n) == 0", "a warp has whole pairs of tiles of 8 columns"),
            Limit("(block_n & (block_n - 1)) == 0", "columns are a power of two"),
            Limit(
                f"block_k * {element} in (32, 64, 128)", "a row of a tile is 32, 64 or 128 bytes"
            ),
            Limit(
                f"block_m * block_n <= {most} * {_THREADS}",
                f"a thread has at most {most} accumulators",
            ),
            Limit("stages >= 2", "the ring has at least two tiles"),
            *(limit for loader in self.loaders() for limit in _loader_limits(loader, element)),
        )

    def costs(self, columns: Columns) -> TileCosts:
        """Return what the models take into account."""
        return TileCosts(
            unit=self.precision,
            threads=threads(columns),
            shared_bytes=self.shared_bytes(columns),
            registers=self.registers(columns),
            loads=self._loads(columns),
            stages=columns["stages"].astype(np.float64),
            slots=self._conversion_slots(columns) + self._moment_slots(columns),
        )

    def shared_bytes(self, columns: Columns) -> Floats:
        """Count the bytes of the pipeline, or of the epilogue's staging (16 padded rows a warp) where larger."""
        pipeline = (
            columns["stages"] * (columns["block_m"] + columns["block_n"]) * columns["block_k"]
        ) * float(self.element_bytes)
        row_floats = columns["block_n"] // columns["warps_n"] + 8
        staging = columns["warps_m"] * columns["warps_n"] * 16 * row_floats * 4.0
        larger: Floats = np.maximum(pipeline, staging)
        return larger

    def registers(self, columns: Columns) -> Floats:
        """Count the accumulators, two sets of fragments, what the loaders hold, and the rest; or a split's sum.

        Of fp32, accumulators twice, and a third set: the parts of one; of 8-bit floats half as many as they unpack to.
        """
        warp_m = columns["block_m"] // columns["warps_m"]
        warp_n = columns["block_n"] // columns["warps_n"]
        sets = 3 if self.is_split or self.precision.is_fp8 else 2
        sums = 2 if self.is_split else 1
        fragments = sets * (warp_m / 4 + warp_n / 4)
        held = sum((self._held_registers(columns, loader) for loader in self.loaders()), 0.0)
        moments = _MOMENT_REGISTERS + warp_m / 4 if self.fragment_slots else 0.0
        product = sums * accumulators(columns) + fragments + held + _OTHER_REGISTERS + moments
        return np.maximum(product, sum_registers(accumulators(columns), threads(columns), columns))

    def _held_registers(self, columns: Columns, loader: "_Loader") -> Floats:
        """A position for each copy, or the values that are under way."""
        elements = columns[loader.side] * columns["block_k"] / threads(columns)
        if loader.copy_bytes:
            copies = np.ceil(elements * self.element_bytes / loader.copy_bytes)
            return copies * loader.position_registers
        return elements * loader.gathered_bytes / 4 + 8

    def _conversion_slots(self, columns: Columns) -> Floats | float:
        """Splitting, or unpacking, what a matrix load brings; after a split, adding a step's sums to the others."""
        if self.precision.is_fp8:
            unpacked: Floats = self._loads(columns) * 4 * _UNPACK_SLOTS
            return unpacked
        if not self.is_split:
            return 0.0
        split = self._loads(columns) * 4 * _SPLIT_SLOTS
        slots: Floats = split + self._mma_steps(columns) * accumulators(columns)
        return slots

    def _moment_slots(self, columns: Columns) -> Floats:
        """Those of the fragments of a warp's rows in a step."""
        tiles_m = columns["block_m"] // columns["warps_m"] // 16
        return self.fragment_slots * self._mma_steps(columns) * tiles_m

    def _loads(self, columns: Columns) -> Floats:
        """Matrix loads (ldmatrix) of a thread in one step."""
        tiles_m = columns["block_m"] // columns["warps_m"] // 16
        pairs_n = columns["block_n"] // columns["warps_n"] // 16
        return self._mma_steps(columns) * (tiles_m + pairs_n)

    def _mma_steps(self, columns: Columns) -> Floats:
        return (columns["block_k"] * self.element_bytes // 32).astype(np.float64)


@dataclass(frozen=True)
class _Loader:
    side: str
    copy_bytes: int
    gathered_bytes: int
    position_registers: int


def threads(columns: Columns) -> Floats:
    """Count the threads of a block."""
    count: Floats = value_of(_THREADS, columns).astype(np.float64)
    return count


def accumulators(columns: Columns) -> Floats:
    """Count the accumulators of a thread."""
    return columns["block_m"] * columns["block_n"] / threads(columns)


def _loader_limits(loader: _Loader, element: int) -> Sequence[Limit]:
    """What a thread can gather, or copy, of a tile."""
    tile = f"{loader.side} * block_k"
    if not loader.copy_bytes:
        group = _GROUP_BYTES // element  # elements that go into shared memory together
        gathered = f"ceil_div({tile}, {group} * {_THREADS}) * {group * loader.gathered_bytes}"
        return (
            Limit(
                f"{gathered} <= {_MAX_GATHERED_BYTES}",
                f"a thread gathers at most {_MAX_GATHERED_BYTES} bytes of {loader.side} a step",
            ),
        )
    return (
        Limit(
            f"{tile} * {element} <= {_MAX_COPIES * loader.copy_bytes} * {_THREADS}",
            f"a thread copies at most {_MAX_COPIES} pieces of {loader.side} a step",
        ),
        Limit(
            f"{_THREADS} * {loader.copy_bytes} % (block_k * {element}) == 0",
            f"threads copy whole rows of {loader.side}",
        ),
    )


def needs(dtype: DType, precision: Precision, target: Target) -> str | None:
    """Say why tensor cores cannot serve an operand of this type at this precision; None if they can."""
    if precision is Precision.FP64:
        return "products of fp64 are those of the ordinary cores (gemm_simt)"
    peak = tensor_peak(precision, target)
    if peak is None:
        return f"{target.name} has no tensor cores for {precision.value}"
    if precision is Precision.FP32 and peak <= target.peak_ordinary:
        return f"three products of tf32 take longer on {target.name} than one of the ordinary cores"
    if not target.has_async_copy:
        return f"{target.name} has no asynchronous copies (sm_80 and later have)"
    if precision is Precision.INT8 and not dtype.is_byte:
        return f"an operand is {dtype.value}; products of bytes take bytes"
    if precision.is_fp8 and dtype is not precision.storage:
        return f"an operand is {dtype.value}; both are {precision.value}"
    if not dtype.multiplies:
        return f"an operand is {dtype.value}; products take floating point and bytes"
    return None


@lru_cache(maxsize=1 << 15)  # problems share tiles
def _matrix_loads(
    block: tuple[int, int, int], warps: tuple[int, int], element_bytes: int, depth_major: bool
) -> tuple[SharedAccess, SharedAccess]:
    """The ldmatrix instructions of a step: A's and B's, as the first warp makes them.

    An ldmatrix reads, in each of four phases, 16 bytes for each of eight lanes.
    """
    (block_m, block_n, block_k), (warps_m, warps_n) = block, warps
    steps = block_k * element_bytes // 32
    row_bytes = block_k * element_bytes
    tiles_m = block_m // warps_m // 16
    pairs_n = block_n // warps_n // 16
    lanes = range(_WARP)
    a = tuple(_swizzled(lane % 16, lane // 16, row_bytes) for lane in lanes)
    if depth_major:
        wide = block_n * element_bytes
        b = tuple(_swizzled(lane % 16, lane // 16, wide) for lane in lanes)
    else:
        b = tuple(_swizzled(lane % 8 + lane // 16 * 8, lane // 8 % 2, row_bytes) for lane in lanes)
    return SharedAccess(a, 16, tiles_m * steps), SharedAccess(b, 16, pairs_n * steps)


def _swizzled(row: int, chunk: int, row_bytes: int) -> int:
    """Byte offset of a 16-byte chunk in a tile (SwizzledTile of tile_shared.cuh)."""
    chunks = row_bytes // 16
    rows_a_line = max(1, 8 // chunks)
    pattern = row // rows_a_line & (min(chunks, 8) - 1)
    return row * row_bytes + (chunk ^ pattern) * 16
