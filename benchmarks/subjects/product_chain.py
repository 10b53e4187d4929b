"""A chain of products of few rows, from k to n features and back, in memory: kernels of any template can compute it.

    x -> relu(x W0) -> relu(. W1) -> relu(. W2) -> ...

as in decoders (up and down) and squeeze-excites. Every product has a matrix of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subjects.problems import matmul
from subjects.scratch import scratch
from wpk.candidate import Candidate
from wpk.execution import BoundLaunch, Device
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.problems import Matmul
from wpk.schedules import packings
from wpk.search.models.static_search import Finalist

Half = NDArray[np.float16]

WAYS = (0, 1)
"""There, and back: a product's place in the chain, modulo 2."""


@dataclass(frozen=True)
class Sizes:
    """Rows, features that are summed, and features that come of it; products there and back."""

    m: int
    k: int
    n: int
    pairs: int

    @property
    def products(self) -> int:
        """Of the whole chain."""
        return 2 * self.pairs

    @property
    def bytes(self) -> int:
        """Of all matrices."""
        return self.products * 2 * self.k * self.n

    def problem(self, way: int) -> Matmul:
        """A product of the chain."""
        n, k = (self.n, self.k) if way == 0 else (self.k, self.n)
        return matmul(self.m, n, k, relu=True)

    def weights(self) -> list[Half]:
        """The matrices, each (inputs, outputs): what passes a ReLU behind them keeps its size."""
        generator = np.random.default_rng(0)
        return [
            ((generator.random((k, n), np.float32) - 0.5) * (24 / k) ** 0.5).astype(np.float16)
            for k, n in [(self.k, self.n), (self.n, self.k)] * self.pairs
        ]

    def input(self) -> Half:
        """What the first product reads."""
        return drawn((self.m, self.k))


def drawn(shape: tuple[int, ...]) -> Half:
    """Numbers of a normal distribution, the same at every call."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float16)


def in_float64(x: Half, weights: Sequence[Half]) -> NDArray[np.float64]:
    """What the chain gives, in float64."""
    y = x.astype(np.float64)
    for weight in weights:
        y = np.maximum(y @ weight.astype(np.float64), 0.0)
    return y


class ProductChain:
    """The memory of a chain, and its launches."""

    def __init__(self, device: Device, sizes: Sizes, weights: Sequence[Half]) -> None:
        """Place the input; matrices are placed when a kernel first reads them, as it reads them."""
        self._device, self._sizes, self._weights = device, sizes, weights
        self._x = self._placed(sizes.input())
        self._between = [self._placed(drawn((sizes.m, f))) for f in (sizes.n, sizes.k)]
        self._matrices: dict[tuple[str, int], list[int]] = {}
        self._scratch: dict[tuple[Candidate, int], tuple[int, int]] = {}

    def launches(self, kernels: Mapping[int, Finalist]) -> list[BoundLaunch]:
        """The chain; or the products of one way alone, where only that has a kernel.

        Args:
            kernels: By way.
        """
        return [
            launch
            for place in range(self._sizes.products)
            if place % 2 in kernels
            for launch in self._product(place, kernels[place % 2])
        ]

    def output(self) -> Half:
        """What the last product has written."""
        sizes = self._sizes
        data = self._device.read(self._between[1], 2 * sizes.m * sizes.k)
        return data.view(np.float16).reshape(sizes.m, sizes.k)

    def _product(self, place: int, kernel: Finalist) -> Iterator[BoundLaunch]:
        way = place % 2
        source = self._between[1 - way] if place else self._x
        inputs = source, self._matrices_of(kernel, way)[place // 2]
        operands = StepAddresses(
            inputs, (2, 2), (self._between[way],), *self._scratch_of(kernel, way)
        )
        for launch in kernel.launches:
            yield bind_launch(launch, operands, {})

    def _matrices_of(self, kernel: Finalist, way: int) -> list[int]:
        """Addresses of the matrices of a way, as a kernel reads them."""
        problem = self._sizes.problem(way)
        packing = kernel.template.packing(problem, kernel.prediction.schedule)
        assert packing is not None, "the matrices are constants"
        key = packing, way
        if key not in self._matrices:
            mine = self._weights[way::2]
            self._matrices[key] = [self._placed(packings.pack(packing, w, problem)) for w in mine]
        return self._matrices[key]

    def _scratch_of(self, kernel: Finalist, way: int) -> tuple[int, int]:
        """A workspace and counters, which every product of a kernel uses in its turn."""
        key = kernel.candidate, way
        if key not in self._scratch:
            self._scratch[key] = scratch(self._device, kernel.launches)
        return self._scratch[key]

    def _placed(self, values: Half) -> int:
        address = self._device.allocate(values.nbytes)
        self._device.write(address, np.ascontiguousarray(values).view(np.uint8))
        return address
