"""What the templates of the ordinary cores share: schedule, limits, cost (see tile_simt.cuh)."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.performance import Columns, Floats, SharedAccess
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.matrix_template import TileSchedule
from wpk.schedules.split import split_axis, sum_registers
from wpk.schedules.tiles.matrix import TileCosts, up_to
from wpk.schedules.views.matrix import MatrixSizes
from wpk.targets import Target

_WARP = 32
_MAX_ACCUMULATORS = 64
_MAX_GATHERED_BYTES = 128
_OTHER_REGISTERS = 30  # addresses and counters, read from ptxas reports of both templates
_ACCESS_BYTES = 16  # of the widest
_BANKS_BYTES = 128  # of a word in each bank: what lies so far apart lies in the same
_BLOCK_K = (8, 16, 32)
_THREADS_M, _THREADS_N = "(block_m // thread_m)", "(block_n // thread_n)"
_THREADS = f"({_THREADS_M} * {_THREADS_N})"
_LANES_N = f"min({_THREADS_N}, 8)"


@dataclass(frozen=True)
class SimtSchedule(TileSchedule):
    """Tiles of a block and of a thread, and how shared memory holds them.

    DeepCuts' parameters in this form: block and thread tiles of N, H, W are folded into rows
    (output pixels), those of K are columns; C_input is ``block_k``; FORMAT_shared is ``row_major``
    with ``padding``.

    Attributes:
        thread_m: Rows of a thread.
        thread_n: Columns of a thread.
        row_major: 1: the rows' tile lies pixel by pixel; 0: channel by channel, as the columns'.
        padding: Numbers after each line of the tiles.
        prefetch: 1: the next tile is loaded during the computation.
        split: Blocks that share the reduction of a tile.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    thread_m: int
    thread_n: int
    row_major: int
    padding: int
    prefetch: int
    split: int = 1
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block_m // self.thread_m * (self.block_n // self.thread_n)

    @property
    def store_width(self) -> int:
        """Neighbouring columns that a thread stores together."""
        return min(self.thread_n, 4)


@dataclass(frozen=True)
class SimtTiles:
    """How operands reach the tiles of a product, and what schedules of them take.

    Attributes:
        a_vector: Neighbours along the reduction that one access to the rows' operand moves.
        a_bytes: Bytes of its elements in memory.
        b_vector: The same for the columns' operand.
        b_bytes: Bytes of its elements in memory.
        numbers: What is multiplied, fp32 or fp64: tiles hold it whatever the types in memory.
    """

    a_vector: int
    a_bytes: int
    b_vector: int
    b_bytes: int
    numbers: DType = DType.FP32

    def shared_accesses(self, schedule: SimtSchedule) -> tuple[SharedAccess, SharedAccess]:
        """Return the loads of a step, of the rows' and of the columns' tile, as the first warp makes them."""
        block = schedule.block_m, schedule.block_n, schedule.block_k
        thread = schedule.thread_m, schedule.thread_n
        rows = schedule.row_major, schedule.padding
        return _shared_accesses(block, thread, rows, self.numbers.bytes)

    def access_keys(self, columns: Columns) -> Columns:
        """Return what the costs of these loads depend on: of where the columns' tile begins, the bank."""
        own = ("block_k", "thread_m", "thread_n", "row_major", "padding")
        return {
            **{name: columns[name] for name in own},
            "lanes_n": value_of(_LANES_N, columns),
            "begins": _row_values(columns) * self.numbers.bytes % _BANKS_BYTES,
        }

    @property
    def access_context(self) -> Hashable:
        """What they depend on besides."""
        return self.numbers.bytes

    def axes(self, sizes: MatrixSizes, target: Target) -> dict[str, tuple[int, ...]]:
        """Return the values to try for a product of these sizes; tiles far beyond it are left out.

        Ties between estimates fall to what comes first: padding, which spares conflicts between stores
        that the models do not count (on an H200 it was the faster in 70 to 99 % of otherwise equal pairs).
        """
        return {
            "block_m": up_to((8, 16, 32, 64, 128), sizes.rows),
            "block_n": up_to((8, 16, 32, 64, 128), sizes.columns),
            "block_k": _BLOCK_K,
            "thread_m": (1, 2, 4, 8),
            "thread_n": (1, 2, 4, 8),
            "row_major": (0, 1),
            "padding": (4, 0),
            "prefetch": (0, 1),
            "split": split_axis(sizes.reduction, _BLOCK_K[0]),
        }

    def limits(self) -> Sequence[Limit]:
        """Return what tile_simt.cuh and its loaders can compute."""
        return (
            Limit(
                "block_m % thread_m == 0 and block_n % thread_n == 0",
                "threads tile the block",
            ),
            Limit(f"32 <= {_THREADS} <= 1024", "a block has 32 to 1024 threads"),
            Limit(f"{_THREADS} % 32 == 0", "a block has whole warps"),
            Limit(
                f"{_THREADS_N} % {_LANES_N} == 0 and {_THREADS_M} % (32 // {_LANES_N}) == 0",
                "warps of 8 columns of threads (or all, if fewer) tile the block",
            ),
            Limit(f"32 % {_LANES_N} == 0", "a warp has a power of two of columns of threads"),
            *(
                Limit(f"{side} < 3 or {side} % 4 == 0", f"{side} is 1, 2 or a multiple of 4")
                for side in ("thread_m", "thread_n")
            ),
            Limit(
                f"thread_m * thread_n <= {_MAX_ACCUMULATORS // self._words}",
                f"a thread has at most {_MAX_ACCUMULATORS // self._words} accumulators",
            ),
            Limit("block_k == 4 or block_k % 8 == 0", "a step is 4 elements, or a multiple of 8"),
            Limit("padding % 4 == 0", "lines stay aligned to 16 bytes"),
            *(_gather_limit(*side) for side in self._sides()),
        )

    def costs(self, columns: Columns) -> TileCosts:
        """Return what the models take into account."""
        return TileCosts(
            unit=None,
            threads=threads(columns),
            shared_bytes=shared_bytes(columns, self.numbers.bytes),
            registers=self.registers(columns),
            loads=_loads(columns, self.numbers.bytes),
            stages=columns["prefetch"].astype(np.float64) + 1.0,
            numbers=self.numbers,
        )

    def registers(self, columns: Columns) -> Floats:
        """Count the accumulators, operands of a step, values under way, and the rest; or a split's sum."""
        thread_m, thread_n = columns["thread_m"], columns["thread_n"]
        words, run = self._words, _ACCESS_BYTES // self.numbers.bytes
        operands = thread_m * np.where(columns["row_major"] == 1, run, 2) + thread_n * 2
        held = sum(
            (columns[side] * columns["block_k"] / threads(columns) * (size / 4 + 1 / vector))
            for side, vector, size in self._sides()
        )
        product = (thread_m * thread_n + operands) * words + held + float(_OTHER_REGISTERS)
        accumulators = (thread_m * thread_n * words).astype(np.float64)
        return np.maximum(product, sum_registers(accumulators, threads(columns), columns))

    @property
    def _words(self) -> int:
        """Registers of a number."""
        return self.numbers.bytes // 4

    def _sides(self) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
        return (
            ("block_m", self.a_vector, self.a_bytes),
            ("block_n", self.b_vector, self.b_bytes),
        )


def threads(columns: Columns) -> Floats:
    """Count the threads of a block."""
    count: Floats = value_of(_THREADS, columns).astype(np.float64)
    return count


def shared_bytes(columns: Columns, number_bytes: int) -> Floats:
    """Count the bytes of both tiles with their padding, twice with prefetching."""
    tiles = _row_values(columns) + (columns["block_n"] + columns["padding"]) * columns["block_k"]
    total: Floats = (tiles * (1 + columns["prefetch"]) * number_bytes).astype(np.float64)
    return total


def _row_values(columns: Columns) -> NDArray[np.int64]:
    """Numbers of the rows' tile, in front of the columns'."""
    block_m, block_k, padding = (columns[name] for name in ("block_m", "block_k", "padding"))
    by_pixel, by_channel = (block_k + padding) * block_m, (block_m + padding) * block_k
    return np.where(columns["row_major"] == 1, by_pixel, by_channel)


def _gather_limit(side: str, vector: int, size: int) -> Limit:
    """What a thread can hold of what GatherLoader brings."""
    return Limit(
        f"ceil_div({side} * block_k, {vector} * {_THREADS}) * {vector * size}"
        f" <= {_MAX_GATHERED_BYTES}",
        f"a thread loads at most {_MAX_GATHERED_BYTES} bytes of {side} a step",
    )


def _loads(columns: Columns, number_bytes: int) -> Floats:
    """Shared memory loads of a thread in one step."""
    thread_m, thread_n = columns["thread_m"], columns["thread_n"]
    run = _ACCESS_BYTES // number_bytes
    runs_m = np.where(columns["row_major"] == 1, thread_m / run, np.ceil(thread_m / run))
    total: Floats = columns["block_k"] * (runs_m + np.ceil(thread_n / run))
    return total


@lru_cache(maxsize=1 << 15)  # problems share tiles
def _shared_accesses(
    block: tuple[int, int, int], thread: tuple[int, int], rows: tuple[int, int], size: int
) -> tuple[SharedAccess, SharedAccess]:
    (block_m, block_n, block_k), (thread_m, thread_n), (row_major, padding) = block, thread, rows
    threads_n = block_n // thread_n
    lanes_n = min(threads_n, 8)
    places = [(lane // lanes_n, lane % lanes_n) for lane in range(_WARP)]
    run = _ACCESS_BYTES // size
    run_m = min(thread_m, run)
    if row_major:
        pitch = (block_k + padding) * size
        count = thread_m * block_k // run
        a = SharedAccess(tuple(m * pitch for m, _ in places), _ACCESS_BYTES, count)
        values = (block_k + padding) * block_m
    else:
        count = thread_m // run_m * block_k
        a = SharedAccess(tuple(m * run_m * size for m, _ in places), run_m * size, count)
        values = (block_m + padding) * block_k
    run_n = min(thread_n, run)
    b = tuple((values + n * run_n) * size for _, n in places)
    return a, SharedAccess(b, run_n * size, thread_n // run_n * block_k)
