"""Launches with clusters, early launch and tensor maps, and what they must give: on any device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.faults.planter import drop
from wpk.build import load_nvrtc
from wpk.device import MemoryRange
from wpk.device.rotation import moved
from wpk.execution import BoundArgument, BoundLaunch, Device, KernelImage, Pointer, TensorMap
from wpk.kernel_source import KernelSource
from wpk.launch import EARLY_LAUNCH, Im2col
from wpk.tensor_maps import reach

THREADS = 128

TEXT = Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")
ENTRIES = ("shifted_sum", "load_box", "load_pixels", "from_neighbour")

_BARRIER_BYTES = 8
_POISON = 0xFF


def image(entry: str, text: str = TEXT) -> KernelImage:
    """A kernel of launch_kernels.cu, for both kinds of device."""
    return compiled(KernelSource(entry, text))


@cache
def compiled(source: KernelSource) -> KernelImage:
    """A kernel for both kinds of device."""
    return KernelImage(source.digest, source, load_nvrtc().compile(source, "sm_90a").cubin)


def place(device: Device, array: NDArray[np.generic]) -> int:
    """The address of a copy of an array."""
    address = device.allocate(array.nbytes)
    device.write(address, np.frombuffer(array.tobytes(), np.uint8))
    return address


def take(device: Device, address: int, like: NDArray[np.generic]) -> NDArray[np.generic]:
    """What lies at an address, as an array of another's type and shape."""
    return device.read(address, like.nbytes).view(like.dtype).reshape(like.shape)


def _bound(
    kernel: KernelImage,
    grid: tuple[int, int, int],
    arguments: tuple[BoundArgument, ...],
    *,
    cluster: tuple[int, int, int] = (1, 1, 1),
    shared_bytes: int = 0,
    attributes: tuple[str, ...] = (),
) -> BoundLaunch:
    digest, entry, block = kernel.digest, kernel.source.entry, (THREADS, 1, 1)
    return BoundLaunch(digest, entry, grid, block, cluster, shared_bytes, arguments, attributes)


@dataclass(frozen=True)
class Chain:
    """Launches of which each reads what the one in front wrote, and writes over what that one read.

    Attributes:
        launches: All of them; the result lies where it began.
        begin: What lies at the address before.
        address: Of the values.
    """

    launches: tuple[BoundLaunch, ...]
    begin: NDArray[np.float32]
    address: int

    def after(self, times: int) -> NDArray[np.float32]:
        """What lies at the address after all were launched so often; exact."""
        steps = times * len(self.launches)
        return np.roll(self.begin, -steps * _SHIFT) + np.float32(steps)


_SHIFT = 257


def chain(device: Device, blocks: int, length: int, *, waiting: bool = True) -> Chain:
    """An even number of launches, all but the first early; without waiting they break the rules."""
    assert length % 2 == 0
    kernel = image("shifted_sum", TEXT if waiting else drop("previous_awaited")(TEXT))
    count = blocks * THREADS - 3
    values = np.arange(count, dtype=np.float32)
    device.load(kernel)
    here, there = place(device, values), place(device, np.full_like(values, np.nan))
    launches = []
    for step in range(length):
        x, y = (here, there) if step % 2 == 0 else (there, here)
        arguments = (Pointer(x), count, _SHIFT, Pointer(y))
        early = (EARLY_LAUNCH,) if step else ()
        launches.append(_bound(kernel, (blocks, 1, 1), arguments, attributes=early))
    return Chain(tuple(launches), values, here)


@dataclass(frozen=True)
class Single:
    """One launch.

    Attributes:
        launch: The launch.
        address: Where its result will be.
        expected: The result.
    """

    launch: BoundLaunch
    address: int
    expected: NDArray[np.generic]


MATRIX = (100, 72)
"""Rows and columns of the matrix that boxes are taken from; rows lie 80 elements apart."""

BOX = (16, 64)
"""Rows and columns."""


def box(device: Device, swizzle: int, row: int, column: int) -> Single:
    """The box at a place, which may hang over the matrix's edges, where it is zero."""
    rows, columns = MATRIX
    width = min(BOX[1], swizzle // 2) if swizzle else BOX[1]
    memory = np.arange(1, rows * 80 + 1, dtype=np.uint16).reshape(rows, 80)
    padded = np.zeros((3 * rows, 3 * columns), np.uint16)
    padded[rows : 2 * rows, columns : 2 * columns] = memory[:, :columns]
    seen = padded[rows + row :, columns + column :][: BOX[0], :width]
    lies = swizzled(seen.tobytes(), swizzle)
    kernel = image("load_box")
    device.load(kernel)
    result = place(device, np.full(lies.size, _POISON, np.uint8))
    tensor = TensorMap(place(device, memory), 2, (columns, rows), (160,), (width, BOX[0]), swizzle)
    arguments = (column, row, lies.size, tensor, Pointer(result))
    shared = lies.size + _BARRIER_BYTES
    return Single(_bound(kernel, (1, 1, 1), arguments, shared_bytes=shared), result, lies)


def swizzled(data: bytes, swizzle: int) -> NDArray[np.uint8]:
    """Bytes as they lie with a swizzle: PTX ISA, "Tensor swizzling modes".

    Of the address, the bits from 4 on are exclusive-ored with as many bits from 7 on.
    """
    chunks = np.frombuffer(data, np.uint8).reshape(-1, 16)
    places = np.arange(len(chunks))
    mask = max(swizzle // 16, 1) - 1
    lies = np.empty_like(chunks)
    lies[places ^ (places >> 3 & mask)] = chunks
    return lies.reshape(-1)


IMAGES, HEIGHT, WIDTH, CHANNELS = 2, 7, 9, 16
PIXELS = 32


def pixels(device: Device, steps: tuple[int, int], tap: tuple[int, int]) -> Single:
    """A filter of 3 x 3 with padding 1 over NHWC: what one tap reads for the first output pixels.

    Args:
        device: Where.
        steps: Strides of the convolution along W and H.
        tap: Place in the window along W and H.
    """
    x = np.arange(1, IMAGES * HEIGHT * WIDTH * CHANNELS + 1, dtype=np.uint16)
    x = x.reshape(IMAGES, HEIGHT, WIDTH, CHANNELS)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = padded[:, tap[1] :, tap[0] :][:, :HEIGHT, :WIDTH][:, :: steps[1], :: steps[0]]
    expected = taps.reshape(-1, CHANNELS)[:PIXELS]
    kernel = image("load_pixels")
    device.load(kernel)
    result = place(device, np.full_like(expected, 2**16 - 1))
    strides = tuple(CHANNELS * 2 * prod((WIDTH, HEIGHT)[:n]) for n in range(3))
    mode = Im2col((-1, -1), (-1, -1), steps)
    shape = (CHANNELS, WIDTH, HEIGHT, IMAGES)
    tensor = TensorMap(place(device, x), 2, shape, strides, (CHANNELS, PIXELS), 0, mode)
    arguments = (-1, -1, *tap, expected.nbytes, tensor, Pointer(result))
    shared = expected.nbytes + _BARRIER_BYTES
    launch = _bound(kernel, (1, 1, 1), arguments, shared_bytes=shared)
    return Single(launch, result, expected)


def neighbours(device: Device, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> Single:
    """Blocks that exchange what they read with the next one of their cluster, x before y before z."""
    x = np.arange(prod(grid) * THREADS, dtype=np.float32)
    expected = np.empty_like(x.reshape(-1, THREADS))
    for block in range(prod(grid)):
        expected[block] = x.reshape(-1, THREADS)[_next(block, grid, cluster)]
    kernel = image("from_neighbour")
    device.load(kernel)
    result = place(device, np.full_like(x, np.nan))
    arguments = (Pointer(place(device, x)), Pointer(result))
    launch = _bound(kernel, grid, arguments, cluster=cluster, shared_bytes=THREADS * 4)
    return Single(launch, result, expected.reshape(-1))


def _next(block: int, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> int:
    """Number in the grid of the block that follows one in its cluster, and the first the last."""
    at = np.unravel_index(block, grid[::-1])[::-1]
    inside = [int(a) % c for a, c in zip(at, cluster, strict=True)]
    rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
    place = np.unravel_index((rank + 1) % prod(cluster), cluster[::-1])[::-1]
    there = [int(a) - i + int(p) for a, i, p in zip(at, inside, place, strict=True)]
    return there[0] + grid[0] * (there[1] + grid[1] * there[2])


def moved_away(device: Device, single: Single) -> Single:
    """The launch of `box` on copies of its memory, with zeros where the tensor lay."""
    (tensor,) = (a for a in single.launch.arguments if isinstance(a, TensorMap))
    size = reach(tensor)
    copy = place(device, device.read(tensor.address, size))
    result = place(device, np.full_like(single.expected, _POISON))
    device.write(tensor.address, np.zeros(size, np.uint8))
    places = {
        MemoryRange(tensor.address, size): copy,
        MemoryRange(single.address, single.expected.nbytes): result,
    }
    (launch,) = moved([single.launch], places)
    assert isinstance(launch, BoundLaunch)
    return Single(launch, result, single.expected)
