"""Small kernels that use what sm_90 has, each with the numbers that it must give exactly.

The emulator and a GPU execute the same examples. What is expected is computed here from the documents
(PTX ISA: tensors, swizzling modes, matrix descriptors; CUDA driver API: im2col), by neither of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from layouts import Tile, across_k, along_k, swizzled
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.execution import BoundArgument, BoundLaunch, Device, KernelImage, Pointer, TensorMap
from wpk.kernel_source import KernelSource
from wpk.launch import Im2col

KERNELS = Path(__file__).parents[1] / "emulator" / "kernels"

Array = NDArray[np.generic]
Edits = tuple[tuple[str, str], ...]

_POISON = 0xFF


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
        edits: Constants of the source, and what stands in their place.
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
    edits: Edits = ()

    def source(self, edits: Edits = ()) -> KernelSource:
        """The unit; each edit, of the example or given here, replaces text that is there once."""
        text = (KERNELS / f"{self.file}.cu").read_text(encoding="utf-8")
        for old, new in (*self.edits, *edits):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return KernelSource(self.entry, text)

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
    device.write(addresses[-1], np.full(sizes[-1], _POISON, np.uint8))
    arguments = example.arguments(addresses[:-1], addresses[-1])
    block = (example.threads, 1, 1)
    shape = (example.grid, block, example.cluster, example.shared_bytes)
    device.launch(BoundLaunch(image.digest, example.entry, *shape, arguments, ()))
    written = device.read(addresses[-1], sizes[-1])
    for address in addresses:
        device.free(address)
    result: Array = written.view(example.expected.dtype).reshape(example.expected.shape)
    return result


def examples() -> list[Example]:
    """All of them."""
    return [*_boxes(), *_pixels(), *_copies(), *_sums(), *_products(), *gemms()]


def _tensor(address: int, x: Array, box: tuple[int, ...], swizzle: int) -> TensorMap:
    """A map over an array whose dimensions are given outermost first."""
    strides = tuple(x.strides[-2::-1]) if x.ndim > 1 else ()
    return TensorMap(address, x.itemsize, x.shape[::-1], strides, box, swizzle)


def _integers(shape: tuple[int, ...], dtype: type[np.generic], seed: int) -> Array:
    return np.random.default_rng(seed).integers(1, 100, shape).astype(dtype)


def _box_of(x: Array, box: tuple[int, ...], first: tuple[int, ...]) -> Array:
    """The box at ``first`` (both innermost first), with zeros outside of ``x``."""
    margin = [(b, b) for b in box[::-1]]
    start = [f + b for f, b in zip(first[::-1], box[::-1], strict=True)]
    padded = np.pad(x, margin)
    return padded[tuple(slice(s, s + b) for s, b in zip(start, box[::-1], strict=True))]


def _boxes() -> Iterator[Example]:
    cases: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, type[np.generic]]] = [
        ((1000,), (64,), (-4,), 0, np.uint16),
        ((40, 96), (64, 16), (40, 30), 128, np.uint16),
        ((40, 96), (64, 16), (-8, -3), 128, np.uint16),
        ((40, 96), (32, 12), (80, 2), 64, np.uint16),
        ((40, 48), (8, 16), (4, 30), 32, np.float32),
        ((9, 10, 64), (32, 5, 3), (16, 7, -1), 128, np.float32),
        ((3, 7, 9, 64), (64, 4, 3, 2), (0, -1, 5, 2), 128, np.uint16),
        ((2, 3, 4, 5, 32), (16, 3, 2, 2, 2), (24, 3, -1, 2, 1), 0, np.uint8),
    ]
    for shape, box, first, swizzle, dtype in cases:
        x = _integers(shape, dtype, 1)
        dense = np.ascontiguousarray(_box_of(x, box, first))
        expected = swizzled(dense.reshape(-1).view(np.uint8), swizzle)

        def arguments(
            inputs: Sequence[int],
            output: int,
            x: Array = x,
            box: tuple[int, ...] = box,
            first: tuple[int, ...] = first,
            swizzle: int = swizzle,
            size: int = expected.size,
        ) -> tuple[BoundArgument, ...]:
            return (_tensor(inputs[0], x, box, swizzle), Pointer(output), size, *first)

        name = f"box of {box} at {first} of {shape[::-1]}, swizzle {swizzle}"
        yield Example(
            name,
            "tensor_copies",
            f"copy_box_{len(box)}",
            (x,),
            expected,
            arguments,
            shared_bytes=expected.size + 16,
        )


def _windows(x: Array, walk: Im2col) -> list[tuple[int, ...]]:
    """Where windows begin, in the order of the copy: image, (D,) (H,) W; W fastest."""
    extents = x.shape[1:-1][::-1]
    spatial = [
        range(low, extent + up, step)
        for low, up, step, extent in zip(walk.lower, walk.upper, walk.steps, extents, strict=True)
    ]
    ranges = [range(x.shape[0]), *spatial[::-1]]
    grid = np.meshgrid(*ranges, indexing="ij")
    return list(zip(*(axis.reshape(-1).tolist() for axis in grid), strict=True))


def _pixels() -> Iterator[Example]:
    # Tensor (outermost first), walk, box (channels, pixels), number of the first window, first channel,
    # taps (W first), swizzle.
    cases: list[tuple[tuple[int, ...], Im2col, tuple[int, int], int, int, tuple[int, ...], int]] = [
        ((2, 14, 32), Im2col((-1,), (-1,), (1,)), (32, 16), 5, 0, (2,), 64),
        ((2, 7, 9, 64), Im2col((-1, -1), (-1, -1), (1, 1)), (64, 48), 3, 0, (0, 0), 128),
        ((2, 7, 9, 64), Im2col((-1, -1), (-1, -1), (1, 1)), (64, 48), 100, 0, (2, 1), 128),
        ((3, 8, 10, 64), Im2col((-3, -2), (-3, -4), (2, 2)), (32, 40), 17, 32, (6, 5), 64),
        (
            (2, 3, 5, 6, 16),
            Im2col((-1, 0, -1), (-1, -1, 0), (1, 2, 1)),
            (16, 32),
            7,
            0,
            (1, 1, 0),
            32,
        ),
    ]
    for shape, walk, box, number, channel, taps, swizzle in cases:
        x = _integers(shape, np.uint16, 2)
        windows = _windows(x, walk)
        rows = np.zeros((box[1], box[0]), np.uint16)
        for row, (image, *place) in enumerate(windows[number : number + box[1]]):
            at = [p + tap for p, tap in zip(place, taps[::-1], strict=True)]
            if all(0 <= a < extent for a, extent in zip(at, shape[1:-1], strict=True)):
                rows[row] = x[(image, *at)][channel : channel + box[0]]
        expected = swizzled(rows.reshape(-1).view(np.uint8), swizzle)
        first = (channel, *windows[number][::-1])

        def arguments(
            inputs: Sequence[int],
            output: int,
            x: Array = x,
            walk: Im2col = walk,
            box: tuple[int, int] = box,
            numbers: tuple[int, ...] = (*first, *taps),
            swizzle: int = swizzle,
        ) -> tuple[BoundArgument, ...]:
            plain = _tensor(inputs[0], x, box, swizzle)
            tensor = TensorMap(
                plain.address, plain.element_bytes, plain.shape, plain.strides, box, swizzle, walk
            )
            return (tensor, Pointer(output), 2 * prod(box), *numbers)

        yield Example(
            f"{box[1]} pixels of {shape[::-1]} from {first}, taps {taps}, {walk.steps} apart",
            "tensor_copies",
            f"copy_pixels_{len(shape)}",
            (x,),
            expected,
            arguments,
            shared_bytes=expected.size + 16,
        )


def _copies() -> Iterator[Example]:
    blocks, rows = 4, 8
    x = _integers((2 * blocks * rows, 64), np.uint16, 3)
    whole = [swizzled(half.reshape(-1).view(np.uint8), 128) for half in (x[:32], x[32:])]
    size = rows * 128
    yield Example(
        "every block copies its box to all",
        "tensor_copies",
        "copy_to_blocks",
        (x,),
        np.stack([whole[0]] * blocks + [whole[1]] * blocks),
        lambda inputs, output: (
            _tensor(inputs[0], x, (64, rows), 128),
            Pointer(output),
            size,
            rows,
        ),
        grid=(2 * blocks, 1, 1),
        cluster=(blocks, 1, 1),
        shared_bytes=blocks * size + 16,
    )
    box = _integers((16, 32), np.float32, 4)
    y = np.full((40, 56), np.nan, np.float32)
    y.view(np.uint8)[:] = _POISON
    y[30:40, 40:56] = box[:10, :16]
    yield Example(
        "a box is stored, as far as it lies in the tensor",
        "tensor_copies",
        "store_box",
        (swizzled(box.reshape(-1).view(np.uint8), 128),),
        y.view(np.uint8),
        lambda inputs, output: (
            _tensor(output, y, (32, 16), 128),
            Pointer(inputs[0]),
            box.nbytes,
            40,
            30,
        ),
        shared_bytes=box.nbytes,
    )
    data = _integers((4096,), np.uint8, 5)
    yield Example(
        "bytes are copied without a map",
        "tensor_copies",
        "copy_bulk",
        (data,),
        data,
        lambda inputs, output: (Pointer(inputs[0]), Pointer(output), data.size),
        shared_bytes=data.size + 16,
    )


def _sums() -> Iterator[Example]:
    ways = ("loads", "stores", "async_stores", "copies", "adding")
    for way, blocks in zip(ways, (8, 4, 3, 8, 2), strict=True):
        x = _integers((2, blocks, 256), np.float32, blocks)
        yield Example(
            f"a cluster of {blocks} adds by {way}",
            "cluster_sums",
            f"sum_by_{way}",
            (x,),
            x.sum(axis=1, dtype=np.float32),
            lambda inputs, output: (Pointer(inputs[0]), Pointer(output)),
            grid=(2 * blocks, 1, 1),
            cluster=(blocks, 1, 1),
            shared_bytes=(blocks + 1) * 1024 + 32,
        )


def _product(
    dtype: DType, a: str, b: str, columns: int, k: int, from_registers: bool = False
) -> Example:
    """A product of tiles that lie as ``a`` and ``b`` say: ``k`` or ``mn``, and the swizzle."""
    major_a, swizzle_a = a.split()
    major_b, swizzle_b = b.split()
    rng = np.random.default_rng(columns)
    left = rng.integers(-8, 9, (64, k)).astype(dtype.numpy)
    right = rng.integers(-8, 9, (columns, k)).astype(dtype.numpy)
    lay = {"k": along_k, "mn": across_k}
    tile_a: Tile = lay[major_a](left, int(swizzle_a))
    tile_b: Tile = lay[major_b](right, int(swizzle_b))
    first = np.ascontiguousarray(left).view(np.uint8).reshape(-1) if from_registers else tile_a.data
    numbers = (
        first.size,
        tile_b.data.size,
        k * left.itemsize // 32,
        *tile_a.offsets,
        *tile_b.offsets,
    )
    edits = (
        ("using Element = wpk::Half", f"using Element = wpk::{_ELEMENTS[dtype]}"),
        (
            "kColumns = 64, kSwizzleA = 128, kSwizzleB = 128",
            f"kColumns = {columns}, kSwizzleA = {swizzle_a}, kSwizzleB = {swizzle_b}",
        ),
        (
            "kMajorA = wpk::Major::k, kMajorB = wpk::Major::k",
            f"kMajorA = wpk::Major::{major_a}, kMajorB = wpk::Major::{major_b}",
        ),
        ("kFromRegisters = false", f"kFromRegisters = {'true' if from_registers else 'false'}"),
    )
    source = "registers" if from_registers else a
    return Example(
        f"{_ELEMENTS[dtype]} 64x{columns}x{k}, A {source}, B {b}",
        "wgmma_product",
        "wgmma_product",
        (first, tile_b.data),
        left.astype(np.float32) @ right.astype(np.float32).T,
        lambda inputs, output: (*map(Pointer, inputs), *numbers, Pointer(output)),
        threads=128,
        shared_bytes=first.size + tile_b.data.size + 16,
        edits=tuple((old, new) for old, new in edits if old != new),
    )


_ELEMENTS = {DType.FP16: "Half", DType.BF16: "Bfloat16", DType.FP32: "Tf32"}


def _products() -> Iterator[Example]:
    half, bfloat, single = DType.FP16, DType.BF16, DType.FP32
    yield _product(half, "k 128", "k 128", 8, 64)
    yield _product(half, "k 64", "k 128", 72, 32)
    yield _product(bfloat, "k 128", "k 32", 96, 16)
    yield _product(half, "k 32", "k 64", 256, 16)
    yield _product(bfloat, "k 0", "k 0", 136, 32)
    yield _product(half, "mn 128", "mn 128", 192, 32)
    yield _product(bfloat, "mn 64", "mn 64", 32, 32)
    yield _product(half, "mn 32", "mn 32", 48, 32)
    yield _product(half, "mn 0", "mn 0", 24, 32)
    yield _product(half, "k 128", "mn 128", 64, 64)
    yield _product(single, "k 128", "k 128", 40, 32)
    yield _product(single, "k 64", "k 0", 128, 16)
    yield _product(half, "k 128", "k 128", 160, 64, from_registers=True)
    yield _product(bfloat, "k 128", "mn 64", 64, 32, from_registers=True)
    yield _product(single, "k 128", "k 32", 16, 8, from_registers=True)


def gemms() -> Iterator[Example]:
    """Whole products, their K range shared by the blocks of a cluster."""
    for m, n, k, split in (
        (64, 64, 64, 1),
        (196, 128, 520, 2),
        (100, 72, 1000, 4),
        (65, 136, 200, 8),
    ):
        a = np.random.default_rng(m).integers(-4, 5, (m, k)).astype(np.float16)
        b = np.random.default_rng(n).integers(-4, 5, (n, k)).astype(np.float16)

        def arguments(
            inputs: Sequence[int], output: int, a: Array = a, b: Array = b
        ) -> tuple[BoundArgument, ...]:
            maps = (_tensor(i, x, (64, 64), 128) for i, x in zip(inputs, (a, b), strict=True))
            return (*maps, a.shape[0], b.shape[0], a.shape[1], Pointer(output))

        yield Example(
            f"gemm {m}x{n}x{k} in clusters of {split}",
            "gemm_cluster",
            "gemm_cluster",
            (a, b),
            a.astype(np.float32) @ b.astype(np.float32).T,
            arguments,
            grid=(-(-n // 64), -(-m // 64), split),
            threads=128,
            shared_bytes=3 * 2 * 64 * 64 * 2 + 3 * 8,
            cluster=(1, 1, split),
        )
