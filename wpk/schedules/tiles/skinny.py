"""What gemm_skinny's schedules are of, and what they take (see skinny_operands.cuh and skinny_sums.cuh).

The bound of such a product is the bytes of ``b`` over the bandwidth of what holds them. Reaching it takes enough of
them in flight: bandwidth times latency, on an H100 3.35e12 B/s * 0.7e-6 s / 132 SMs = 18 KB an SM.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wpk.dtypes import DType
from wpk.performance import Columns, Floats, Work, matmul_flops, row_transactions
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.split import split_axis, sum_registers
from wpk.schedules.views.matrix import MatrixSizes
from wpk.targets import Target

_WARP = 32
_ACCESS_BYTES = 16
_MOST_SUMS, _MOST_VECTORS, _MOST_OUTPUTS = 64, 16, 4
_OTHER_REGISTERS = 30  # addresses, counters, the epilogue's operands; read from ptxas reports
_MANY = f"a thread has at most {_MOST_VECTORS} vectors of b in flight"
_THREADS = "(threads_n * threads_k)"


@dataclass(frozen=True)
class SkinnyTiles:
    """How operands reach a thread, and what schedules take.

    Attributes:
        a_bytes: Bytes of an element of ``a``.
        b_bytes: The same of ``b``.
        across: Whether ``b`` lies across the reduction, along its columns.
        vector: Neighbours of ``b`` in one access.
        a_vector: Neighbours of ``a`` along the reduction in one access.
        numbers: What sums are kept in; of bytes, integers of as many bytes.
        converted: Operands whose elements are converted to be multiplied.
    """

    a_bytes: int
    b_bytes: int
    across: bool
    vector: int
    a_vector: int
    numbers: DType
    converted: int

    @property
    def step(self) -> str:
        """Elements of the reduction that a block takes in a step, over the parameters."""
        return f"(threads_k * depth * {1 if self.across else self.vector})"

    def axes(self, sizes: MatrixSizes) -> dict[str, tuple[int, ...]]:
        """Return the values to try; rows far beyond the product's, and threads without elements, are left out.

        Ties fall to what comes first: many threads along the reduction, whose vectors lie in one piece of memory.
        """
        rows = 1 << (sizes.rows - 1).bit_length()
        vectors = -(-sizes.reduction // (1 if self.across else self.vector))
        threads_k = (2, 4, 8, 16, 32, 64) if self.across else (4, 8, 16, 32, 64, 128, 256)
        useful = [k for i, k in enumerate(threads_k) if i < 2 or k < 2 * vectors]
        return {
            "block_m": (rows, rows // 2) if rows > 1 else (1,),
            "thread_n": (self.vector,) if self.across else (1, 2, 4, 8),
            "threads_k": tuple(reversed(useful)),
            "threads_n": (1, 2, 4, 8, 16, 32, 64, 128),
            "depth": (1, 2, 4, 8, 16) if self.across else (1, 2, 4, 8),
            "prefetch": (0, 1),
            "split": split_axis(sizes.reduction, 8 if self.across else 8 * self.vector),
        }

    def limits(self) -> Sequence[Limit]:
        """Return what the header can compute."""
        columns = (
            Limit(
                f"thread_n == {self.vector}",
                f"a thread has the {self.vector} columns that it loads together",
            )
            if self.across
            else Limit(_in_flight("depth * thread_n"), _MANY)
        )
        return (
            columns,
            *(
                Limit(f"{each} >= 1 and ({each} & ({each} - 1)) == 0", f"{each} is a power of two")
                for each in ("block_m", "thread_n", "threads_k", "threads_n", "depth")
            ),
            Limit(_in_flight("depth"), _MANY),
            Limit(f"32 <= {_THREADS} <= 1024", "a block has 32 to 1024 threads"),
            Limit(f"{_THREADS} % 32 == 0", "a block has whole warps"),
            Limit(f"block_m * thread_n <= {_MOST_SUMS}", f"a thread has at most {_MOST_SUMS} sums"),
            Limit(
                f"block_m * thread_n <= {_MOST_OUTPUTS} * threads_k",
                f"a thread stores at most {_MOST_OUTPUTS} elements",
            ),
        )

    def block_n(self, columns: Columns) -> Floats:
        """Count the columns of a block."""
        count: Floats = (columns["threads_n"] * columns["thread_n"]).astype(np.float64)
        return count

    def outputs(self, columns: Columns) -> Floats:
        """Count the elements that a thread stores."""
        count: Floats = np.ceil(columns["block_m"] * columns["thread_n"] / columns["threads_k"])
        return count

    def shared_bytes(self, columns: Columns) -> Floats:
        """Count the bytes of the sums that threads, or warps where lanes add theirs first, meet with."""
        tile = columns["block_m"] * self.block_n(columns)
        return self._slices(columns) * tile * float(self.numbers.bytes)

    def registers(self, columns: Columns) -> Floats:
        """Count the sums, the operands of a step, twice with prefetching, a's numbers, and the rest; or a split's sum."""
        words = self.numbers.bytes // 4
        sums = columns["block_m"] * columns["thread_n"] * words
        operands = (self._vectors(columns) * self.vector * self.b_bytes) / 4.0
        operands = operands + columns["block_m"] * self._elements(columns) * self.a_bytes / 4.0
        converted = 2.0 * columns["block_m"]
        product = sums + converted + operands * (1 + columns["prefetch"]) + _OTHER_REGISTERS
        meeting = sum_registers(self.outputs(columns) * words, threads(columns), columns)
        larger: Floats = np.maximum(product, meeting)
        return larger

    def work(
        self, columns: Columns, outputs: Floats, reduction: int, store_bytes: int, target: Target
    ) -> Work:
        """Return what schedules make the GPU do.

        Args:
            columns: The schedules.
            outputs: Tiles of all products.
            reduction: Elements of it.
            store_bytes: Of an element of the output.
            target: The GPU.
        """
        block_m, block_n = columns["block_m"].astype(np.float64), self.block_n(columns)
        parts, lanes = columns["split"].astype(np.float64), threads(columns)
        depth: Floats = value_of(self.step, columns).astype(np.float64)
        steps = np.ceil(np.ceil(reduction / depth) / parts)
        taken = reduction / parts  # of the last step, what lies beyond the end is not asked for
        run, count = (block_n, taken) if self.across else (taken, block_n)
        transactions = row_transactions(count, run, target.transaction_bytes / self.b_bytes)
        transactions += row_transactions(block_m, taken, target.transaction_bytes / self.a_bytes)
        elements = self._elements(columns)
        loads_a = block_m * elements / min(self.a_vector, _ACCESS_BYTES // self.a_bytes)
        conversions = (columns["thread_n"] + block_m) * elements * (self.converted / 2)
        meeting = self._slices(columns) * self.outputs(columns)
        block_flops = matmul_flops(block_m, depth * steps, block_n)
        partial = np.where(parts > 1, self.outputs(columns) * lanes * self.numbers.bytes, 0.0)
        return Work(
            unit=None,
            element_bytes=self.b_bytes,
            blocks=outputs * parts,
            threads=lanes,
            shared_bytes=self.shared_bytes(columns),
            registers=self.registers(columns),
            block_flops=block_flops,
            thread_flops=block_flops / lanes,
            block_transactions=transactions,
            thread_loads=steps * loads_a + meeting,
            store_bytes=block_m * block_n * float(store_bytes) / parts + partial,
            steps=steps,
            stages=columns["prefetch"].astype(np.float64) + 1.0,
            combined_bytes=parts * partial,
            early=columns["early"] == 1,
            thread_slots=steps * conversions,
            numbers=self.numbers,
            straight=True,
        )

    def _vectors(self, columns: Columns) -> Floats:
        """Vectors of ``b`` that a thread takes in a step."""
        columns_of_it = 1.0 if self.across else columns["thread_n"]
        return np.asarray(columns["depth"] * columns_of_it, np.float64)

    def _elements(self, columns: Columns) -> Floats:
        """Elements of the reduction that a thread takes in a step."""
        return np.asarray(columns["depth"] * (1 if self.across else self.vector), np.float64)

    def _slices(self, columns: Columns) -> Floats:
        """Parts of the reduction that meet in shared memory."""
        lanes = 1 if self.across else np.minimum(columns["threads_k"], _WARP)
        return np.asarray(columns["threads_k"] // lanes, np.float64)


def threads(columns: Columns) -> Floats:
    """Count the threads of a block."""
    count: Floats = value_of(_THREADS, columns).astype(np.float64)
    return count


def _in_flight(vectors: str) -> str:
    """The condition that so many vectors of a step, and with prefetching of the next, are not too many."""
    return f"{vectors} * (1 + prefetch) <= {_MOST_VECTORS}"
