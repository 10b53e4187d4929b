"""A chain of products with shortcuts in memory: each result is the next product's residual, as in a residual network.

    y_i = relu(x_i W + bias + y_(i-1))

Every product has an input of its own, so that inputs and residuals come from global memory where L2 does not hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subjects.problems import convolution, matmul
from subjects.scratch import scratch
from wpk.dtypes import DType
from wpk.execution import BoundLaunch, Device
from wpk.launch import Launch
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.problems import Convolution, Matmul
from wpk.schedules import packings

Half = NDArray[np.float16]

PRODUCTS = 4
"""Of a chain."""

_ELEMENT_BYTES = (2, 2, 4, 2)  # of x, W, bias and residual


@dataclass(frozen=True)
class Sizes:
    """Images or rows: ``images`` of ``width`` x ``width`` pixels, or one of so many rows where ``images`` is 0."""

    images: int
    width: int
    k: int
    n: int

    @property
    def rows(self) -> int:
        """Of the product."""
        return self.images * self.width**2 if self.images else self.width

    @property
    def bytes(self) -> int:
        """That a product reads and writes: input, residual, output and matrix."""
        return 2 * (self.rows * (self.k + 2 * self.n) + self.k * self.n)

    def problem(self) -> Convolution | Matmul:
        """A product of the chain."""
        if not self.images:
            return matmul(self.rows, self.n, self.k, bias=DType.FP32, residual=True, relu=True)
        return convolution(
            *(self.k, self.n, self.width, 1),
            n=self.images,
            bias=DType.FP32,
            residual=True,
            relu=True,
        )


class ShortcutChain:
    """The memory of a chain, and its launches."""

    def __init__(self, device: Device, sizes: Sizes) -> None:
        """Draw and place inputs, the matrix, the bias and the first residual."""
        self._device, self.sizes = device, sizes
        rng = np.random.default_rng(0)
        of_matrix = (sizes.k, sizes.n)
        self._matrix = ((rng.random(of_matrix, np.float32) - 0.5) * (12 / sizes.k) ** 0.5).astype(
            np.float16
        )
        self._bias = rng.standard_normal(sizes.n).astype(np.float32)
        self._inputs = [self._drawn(rng, sizes.k) for _ in range(PRODUCTS)]
        self._first = self._drawn(rng, sizes.n)
        self._x = [self._placed(each) for each in self._inputs]
        self._y = [self._placed(self._first)]
        self._y += [device.allocate(self._first.nbytes) for _ in range(PRODUCTS)]
        self._placed_bias = self._placed(self._bias)
        self._matrices: dict[str, int] = {}

    def launches(self, packing: str, launches: Sequence[Launch]) -> list[BoundLaunch]:
        """The chain by a kernel.

        Args:
            packing: Of the matrix, as the kernel reads it.
            launches: Of one product.
        """
        matrix = self._matrix_as(packing)
        beside = scratch(self._device, launches)
        bound = []
        for place, x in enumerate(self._x):
            inputs = (x, matrix, self._placed_bias, self._y[place])
            operands = StepAddresses(inputs, _ELEMENT_BYTES, (self._y[place + 1],), *beside)
            bound += [bind_launch(each, operands, {}) for each in launches]
        return bound

    def clear(self) -> None:
        """Put NaN where the last result comes, so that no result of another kernel is taken for it."""
        self._device.fill(self._y[-1], self._first.nbytes, 0xFF)

    def worst_error(self, rows: int) -> float:
        """The largest error of some rows of the last result beside float64, of their root mean square."""
        sizes = self.sizes
        picked = np.random.default_rng(1).integers(0, sizes.rows, rows)
        matrix, bias = self._matrix.astype(np.float64), self._bias.astype(np.float64)
        right = self._first[picked].astype(np.float64)
        for x in self._inputs:
            right = np.maximum(x[picked].astype(np.float64) @ matrix + bias + right, 0.0)
        written = self._device.read(self._y[-1], self._first.nbytes).view(np.float16)
        error = np.abs(written.reshape(self._first.shape)[picked] - right)
        return float(error.max() / np.sqrt(np.mean(right**2)))

    def _drawn(self, rng: np.random.Generator, columns: int) -> Half:
        return (rng.random((self.sizes.rows, columns), np.float32) - 0.5).astype(np.float16)

    def _matrix_as(self, packing: str) -> int:
        if packing not in self._matrices:
            problem = self.sizes.problem()
            matrix = self._matrix
            if isinstance(problem, Convolution):
                matrix = np.ascontiguousarray(matrix.T).reshape(problem.k, problem.c, 1, 1)
            self._matrices[packing] = self._placed(packings.pack(packing, matrix, problem))
        return self._matrices[packing]

    def _placed(self, values: NDArray[np.generic]) -> int:
        address = self._device.allocate(values.nbytes)
        self._device.write(address, np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        return address
