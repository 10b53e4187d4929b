"""A small kernel with the numbers that it must give exactly, on any device that executes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.faults.planter import Edit, whole
from wpk.execution import BoundArgument, BoundLaunch, Device, KernelImage, TensorMap
from wpk.kernel_source import KernelSource

KERNELS = Path(__file__).parents[2] / "emulator" / "kernels"

Array = NDArray[np.generic]

POISON = 0xFF
"""Byte of what a kernel has not written."""


@dataclass(frozen=True)
class Example:
    """A kernel with its operands and its result.

    Attributes:
        name: What it shows.
        file: Of its source, in tests/emulator/kernels.
        entry: Its kernel.
        inputs: What it reads.
        expected: What it must write, to the bit.
        arguments: From the addresses of inputs and output.
        grid: Blocks.
        threads: Of a block.
        shared_bytes: Of a block.
        cluster: Blocks of a cluster.
        constants: Of the source, and what stands in their place.
    """

    name: str
    file: str
    entry: str
    inputs: tuple[Array, ...]
    expected: Array
    arguments: Callable[[Sequence[int], int], tuple[BoundArgument, ...]]
    grid: tuple[int, int, int] = (1, 1, 1)
    threads: int = 64
    shared_bytes: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    constants: tuple[tuple[str, str], ...] = ()

    def source(self, edit: Edit = whole) -> KernelSource:
        """The unit, with the example's constants in it, after an edit."""
        text = (KERNELS / f"{self.file}.cu").read_text(encoding="utf-8")
        for old, new in self.constants:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return KernelSource(self.entry, edit(text))

    def __str__(self) -> str:
        """Its name."""
        return self.name


def run(example: Example, device: Device, image: KernelImage) -> Array:
    """What the kernel writes on a device; bytes that it does not write are 0xff."""
    device.load(image)
    sizes = [array.nbytes for array in (*example.inputs, example.expected)]
    addresses = [device.allocate(size) for size in sizes]
    for array, address in zip(example.inputs, addresses, strict=False):
        device.write(address, array.reshape(-1).view(np.uint8))
    device.write(addresses[-1], np.full(sizes[-1], POISON, np.uint8))
    arguments = example.arguments(addresses[:-1], addresses[-1])
    block = (example.threads, 1, 1)
    shape = (example.grid, block, example.cluster, example.shared_bytes)
    device.launch(BoundLaunch(image.digest, example.entry, *shape, arguments, ()))
    written = device.read(addresses[-1], sizes[-1])
    for address in addresses:
        device.free(address)
    result: Array = written.view(example.expected.dtype).reshape(example.expected.shape)
    return result


def tensor_map(address: int, x: Array, box: tuple[int, ...], swizzle: int) -> TensorMap:
    """A map over an array whose dimensions are given outermost first."""
    strides = tuple(x.strides[-2::-1]) if x.ndim > 1 else ()
    return TensorMap(address, x.itemsize, x.shape[::-1], strides, box, swizzle)


def integers(shape: tuple[int, ...], dtype: type[np.generic], seed: int) -> Array:
    """Small ones, none of them zero: what is missing shows."""
    return np.random.default_rng(seed).integers(1, 100, shape).astype(dtype)
