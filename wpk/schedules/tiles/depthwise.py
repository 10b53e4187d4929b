"""What a thread of depthwise.cuh holds, loads and waits for: the numbers of the header's DepthwiseTile."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.performance import Columns, Floats
from wpk.problems import Convolution

TILE_WORDS, TILE_PRODUCTS, TILE_LOADS = 120, 1152, 160
"""Most of a thread that holds the whole filter: registers of sums, weights and inputs, of which an SM then
holds 16 warps; products and loads, which are unrolled (kernels compile in less than 1.5 s)."""

_AHEAD_WORDS = 32  # of input rows that are loaded ahead of their products
_WORD = 4
_OTHER_REGISTERS = 12  # addresses, predicates, the epilogue's operands
_LOAD_SLOTS = 2.0  # issue slots of a load, with its zeros and its share of addresses


@dataclass(frozen=True)
class DepthwiseTile:
    """One entry a schedule.

    Attributes:
        is_held: Whether the filter is held whole, as tiles of several rows need it.
        registers: Estimated registers.
        loads: Inputs that are loaded, each ``vector`` channels of a pixel.
        slots: Issue slots besides the products: loads, and conversions of what is not fp32.
        steps: Input rows, one after the other.
        stages: Input rows that are under way at once.
    """

    is_held: NDArray[np.bool_]
    registers: Floats
    loads: Floats
    slots: Floats
    steps: Floats
    stages: Floats

    @classmethod
    def of(cls, problem: Convolution, columns: Columns) -> "DepthwiseTile":
        """Return the tiles of schedules' ``vector``, ``pixels`` and ``rows``."""
        vector, pixels, rows = (
            columns[name].astype(float) for name in ("vector", "pixels", "rows")
        )
        size, taps = problem.x.dtype.bytes, problem.filter[0] * problem.filter[1]
        words = np.ceil(vector * size / _WORD)  # of the inputs, or weights, of a pixel
        height, width = (_Axis.of(problem, axis) for axis in (0, 1))
        sums = height.pending(rows) * pixels * vector
        weights = taps * np.where(rows > 1, vector, words)
        row = width.used(pixels) * words
        spare = np.minimum(_AHEAD_WORDS, TILE_WORDS - sums - weights - row)
        ahead = np.minimum(height.span(rows) - 1, np.maximum(1, spare // row))
        held = sums + weights + (1 + ahead) * row
        loads = height.used(rows) * width.used(pixels)
        is_held = (held <= TILE_WORDS) & (rows * pixels * taps * vector <= TILE_PRODUCTS)
        is_held &= (loads <= TILE_LOADS) & (vector * size >= _WORD) & (not problem.transposed)
        walked = vector * (pixels + problem.filter[1]) + row
        steps = np.where(is_held, height.used(rows), float(problem.filter[0]))
        each = _LOAD_SLOTS + np.where(size < _WORD, vector, 0.0)
        return cls(
            is_held=is_held,
            registers=np.where(is_held, held, walked) + _OTHER_REGISTERS,
            loads=loads,
            slots=(loads + taps) * each,
            steps=steps,
            stages=np.where(is_held, np.minimum(steps, 1 + ahead), 1.0),
        )


@dataclass(frozen=True)
class _Axis:
    """window.cuh's WindowAxis, for any number of neighbouring outputs."""

    filter: int
    stride: int
    dilation: int

    @classmethod
    def of(cls, problem: Convolution, axis: int) -> "_Axis":
        return cls(problem.filter[axis], problem.stride[axis], problem.dilation[axis])

    def span(self, outputs: Floats) -> Floats:
        count: Floats = (outputs - 1) * self.stride + (self.filter - 1) * self.dilation + 1
        return count

    def pending(self, outputs: Floats) -> Floats:
        reach = (self.filter - 1) * self.dilation + self.stride
        return np.minimum(outputs, reach // self.stride)

    def used(self, outputs: Floats) -> Floats:
        return _of_each(outputs, self._used)

    def _used(self, outputs: int) -> int:
        return len(
            {
                output * self.stride + tap * self.dilation
                for output in range(outputs)
                for tap in range(self.filter)
            }
        )


def _of_each(values: Floats, function: Callable[[int], int]) -> Floats:
    """The function of each entry, asked once for each that differs."""
    different, places = np.unique(values, return_inverse=True)
    results: Floats = np.array([function(int(v)) for v in different], float)[places]
    return results
