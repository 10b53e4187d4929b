"""Examples of tensor copies and of blocks that write into each other's shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from support.hopper.example import POISON, Array, Example, integers, tensor_map
from support.hopper.layouts import swizzled
from wpk.execution import BoundArgument, Pointer, TensorMap
from wpk.launch import Im2col


def _box_of(x: Array, box: tuple[int, ...], first: tuple[int, ...]) -> Array:
    """The box at ``first`` (both innermost first), with zeros outside of ``x``."""
    margin = [(b, b) for b in box[::-1]]
    start = [f + b for f, b in zip(first[::-1], box[::-1], strict=True)]
    padded = np.pad(x, margin)
    return padded[tuple(slice(s, s + b) for s, b in zip(start, box[::-1], strict=True))]


def boxes() -> Iterator[Example]:
    """Boxes of one to five dimensions, partly outside of the tensor."""
    cases: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, type[np.generic]]] = [
        ((1000,), (64,), (-8,), 0, np.uint16),
        ((40, 96), (64, 16), (40, 30), 128, np.uint16),
        ((40, 96), (64, 16), (-8, -3), 128, np.uint16),
        ((40, 96), (32, 12), (80, 2), 64, np.uint16),
        ((40, 48), (8, 16), (4, 30), 32, np.float32),
        ((9, 10, 64), (32, 5, 3), (16, 7, -1), 128, np.float32),
        ((3, 7, 9, 64), (64, 4, 3, 2), (0, -1, 5, 2), 128, np.uint16),
        ((2, 3, 4, 5, 48), (32, 3, 2, 2, 2), (32, 3, -1, 2, 1), 0, np.uint8),
    ]
    for shape, box, first, swizzle, dtype in cases:
        x = integers(shape, dtype, 1)
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
            return (tensor_map(inputs[0], x, box, swizzle), Pointer(output), size, *first)

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


def roundings() -> Iterator[Example]:
    """fp32 that arrives as tf32: numbers between two of tf32, and halfway between (ties)."""
    rng = np.random.default_rng(7)
    words = rng.integers(0x00800000, 0x7F000000, (9, 32)).astype(np.uint32)
    words[:, ::2] |= np.uint32(0x80000000)
    between = np.where(words & 0x1FFF == 0x1000, words + 1, words).astype(np.uint32)
    between[0, :4] = 0, 0x80000000, 0x7F800000, 0xFF800000  # zeros and infinities stay
    ties = (words & ~np.uint32(0x1FFF) | np.uint32(0x1000)).astype(np.uint32)
    for name, x in (("fp32 arrives as tf32", between), ("ties to tf32 go to even", ties)):
        even = (x + 0xFFF + (x >> 13 & 1)) & ~np.uint32(0x1FFF)
        nearest = np.where(x & 0x7F800000 == 0x7F800000, x, even)
        dense = np.zeros((12, 32), np.uint32)
        dense[:9] = nearest
        yield Example(
            name,
            "tensor_copies",
            "copy_box_2",
            (x,),
            swizzled(dense.reshape(-1).view(np.uint8), 128),
            lambda inputs, output, x=x: (  # type: ignore[misc]
                replace(tensor_map(inputs[0], x, (32, 12), 128), to_tf32=True),
                Pointer(output),
                12 * 128,
                *(0, 0),
            ),
            shared_bytes=12 * 128 + 16,
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


def _taken(
    x: Array,
    windows: Sequence[tuple[int, ...]],
    box: tuple[int, int],
    channel: int,
    taps: tuple[int, ...],
) -> NDArray[np.uint8]:
    """The bytes that a copy takes, beginning at the first window; not swizzled."""
    rows = np.zeros((box[1], box[0]), np.uint16)
    for row, (image, *place) in enumerate(windows[: box[1]]):
        at = [p + tap for p, tap in zip(place, taps[::-1], strict=True)]
        if all(0 <= a < extent for a, extent in zip(at, x.shape[1:-1], strict=True)):
            rows[row] = x[(image, *at)][channel : channel + box[0]]
    return rows.reshape(-1).view(np.uint8)


def _walking(address: int, x: Array, walk: Im2col, box: tuple[int, int], swizzle: int) -> TensorMap:
    return replace(tensor_map(address, x, box, swizzle), im2col=walk)


def pixels() -> Iterator[Example]:
    """Pixels of images of one to three dimensions."""
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
        x = integers(shape, np.uint16, 2)
        windows = _windows(x, walk)[number:]
        expected = swizzled(_taken(x, windows, box, channel, taps), swizzle)
        first = (channel, *windows[0][::-1])

        def arguments(
            inputs: Sequence[int],
            output: int,
            x: Array = x,
            walk: Im2col = walk,
            box: tuple[int, int] = box,
            numbers: tuple[int, ...] = (*first, *taps),
            swizzle: int = swizzle,
        ) -> tuple[BoundArgument, ...]:
            map_ = _walking(inputs[0], x, walk, box, swizzle)
            return (map_, Pointer(output), 2 * prod(box), *numbers)

        yield Example(
            f"{box[1]} pixels of {shape[::-1]} from {first}, taps {taps}, {walk.steps} apart",
            "tensor_copies",
            f"copy_pixels_{len(shape)}",
            (x,),
            expected,
            arguments,
            shared_bytes=expected.size + 16,
        )
    yield _pixels_to_blocks()


def _pixels_to_blocks() -> Example:
    x = integers((2, 7, 9, 64), np.uint16, 6)
    walk, box, taps = Im2col((-1, -1), (-1, -1), (1, 1)), (64, 16), (1, 2)
    windows = _windows(x, walk)
    parts = [swizzled(_taken(x, windows[at:], box, 0, taps), 128) for at in (20, 21)]
    _, h, w = windows[20]
    return Example(
        "both blocks copy their pixels to both",
        "tensor_copies",
        "copy_pixels_to_blocks",
        (x,),
        np.concatenate(parts * 2),
        lambda inputs, output: (
            _walking(inputs[0], x, walk, box, 128),
            Pointer(output),
            2 * prod(box),
            *(w, h, 0, *taps),
        ),
        grid=(2, 1, 1),
        cluster=(2, 1, 1),
        shared_bytes=4 * prod(box) + 16,
    )


def others() -> Iterator[Example]:
    """Copies to several blocks, back to memory, and without a map."""
    blocks, rows = 4, 8
    x = integers((2 * blocks * rows, 64), np.uint16, 3)
    whole = [swizzled(half.reshape(-1).view(np.uint8), 128) for half in (x[:32], x[32:])]
    size = rows * 128
    yield Example(
        "every block copies its box to all",
        "tensor_copies",
        "copy_to_blocks",
        (x,),
        np.stack([whole[0]] * blocks + [whole[1]] * blocks),
        lambda inputs, output: (
            tensor_map(inputs[0], x, (64, rows), 128),
            Pointer(output),
            size,
            rows,
        ),
        grid=(2 * blocks, 1, 1),
        cluster=(blocks, 1, 1),
        shared_bytes=blocks * size + 16,
    )
    box = integers((16, 32), np.float32, 4)
    y = np.full((40, 56), np.nan, np.float32)
    y.view(np.uint8)[:] = POISON
    y[30:40, 40:56] = box[:10, :16]
    yield Example(
        "a box is stored, as far as it lies in the tensor",
        "tensor_copies",
        "store_box",
        (swizzled(box.reshape(-1).view(np.uint8), 128),),
        y.view(np.uint8),
        lambda inputs, output: (
            tensor_map(output, y, (32, 16), 128),
            Pointer(inputs[0]),
            box.nbytes,
            40,
            30,
        ),
        shared_bytes=box.nbytes,
    )
    data = integers((4096,), np.uint8, 5)
    yield Example(
        "bytes are copied without a map",
        "tensor_copies",
        "copy_bulk",
        (data,),
        data,
        lambda inputs, output: (Pointer(inputs[0]), Pointer(output), data.size),
        shared_bytes=data.size + 16,
    )


def sums() -> Iterator[Example]:
    """Every way of a cluster's blocks to add what each has."""
    ways = ("loads", "stores", "async_stores", "copies", "adding")
    for way, blocks in zip(ways, (8, 4, 3, 8, 2), strict=True):
        x = integers((2, blocks, 256), np.float32, blocks)
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
