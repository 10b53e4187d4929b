"""Examples of products of warpgroups: every way that tiles can lie, and whole products in clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from support.hopper.example import Array, Example, tensor_map
from support.hopper.layouts import Tile, across_k, along_k
from wpk.dtypes import DType
from wpk.execution import BoundArgument, Pointer


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
    constants = (
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
        constants=tuple((old, new) for old, new in constants if old != new),
    )


_ELEMENTS = {DType.FP16: "Half", DType.BF16: "Bfloat16", DType.FP32: "Tf32"}


def products() -> Iterator[Example]:
    """Widths, types, layouts; A in shared memory and in registers."""
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
            maps = (tensor_map(i, x, (64, 64), 128) for i, x in zip(inputs, (a, b), strict=True))
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


def shared_gemms() -> Iterator[Example]:
    """Whole products; two blocks copy rows of A for each other."""
    for m, n, k in ((64, 128, 64), (100, 200, 520), (130, 60, 200)):
        a = np.random.default_rng(m).integers(-4, 5, (m, k)).astype(np.float16)
        b = np.random.default_rng(n).integers(-4, 5, (n, k)).astype(np.float16)
        c = a.astype(np.float32) @ b.astype(np.float32).T

        def arguments(
            inputs: Sequence[int], output: int, a: Array = a, b: Array = b, c: Array = c
        ) -> tuple[BoundArgument, ...]:
            return (
                tensor_map(inputs[0], a, (64, 32), 128),
                tensor_map(inputs[1], b, (64, 64), 128),
                tensor_map(output, c, (32, 64), 128),
                a.shape[1],
            )

        yield Example(
            f"gemm {m}x{n}x{k}, A copied to both blocks",
            "gemm_multicast",
            "gemm_multicast",
            (a, b),
            c,
            arguments,
            grid=(-(-n // 128) * 2, -(-m // 64), 1),
            threads=160,
            shared_bytes=3 * 2 * 64 * 64 * 2 + 3 * 16,
            cluster=(2, 1, 1),
        )
