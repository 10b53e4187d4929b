"""Examples of convolutions whose pixels the tensor-copy unit finds (im2col mode)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from support.hopper.example import Example, tensor_map
from wpk.execution import BoundArgument, Pointer
from wpk.launch import Im2col

_TILE = 64


def convolutions() -> Iterator[Example]:
    """Several images, sizes that tiles do not divide, strides, filters of 1 to 5."""
    # images, channels, filters, height and width of the input, size, stride, padding
    for shape in (
        (1, 64, 64, 7, 7, 3, 1, 1),
        (3, 128, 72, 9, 6, 3, 2, 1),
        (2, 64, 136, 8, 11, 1, 2, 0),
        (2, 64, 40, 10, 9, 5, 1, 2),
    ):
        yield _convolution(*shape)


def _convolution(
    images: int, channels: int, filters: int, h: int, w: int, size: int, stride: int, pad: int
) -> Example:
    rng = np.random.default_rng(h * w)
    x = rng.integers(-3, 4, (images, h, w, channels)).astype(np.float16)
    weights = rng.integers(-3, 4, (filters, size, size, channels)).astype(np.float16)
    y = _reference(x, weights, stride, pad)
    height, width = y.shape[1:3]
    corner = pad - (size - 1)
    walk = Im2col((-pad, -pad), (corner, corner), (stride, stride))

    def arguments(inputs: Sequence[int], output: int) -> tuple[BoundArgument, ...]:
        pixels = replace(tensor_map(inputs[0], x, (_TILE, _TILE), 128), im2col=walk)
        rows = tensor_map(inputs[1], weights.reshape(filters, -1), (_TILE, _TILE), 128)
        numbers = (images, channels, filters, height, width, size, stride, pad)
        return (pixels, rows, *numbers, Pointer(output))

    return Example(
        f"convolution {size}x{size}/{stride} of {images}x{h}x{w}x{channels} to {filters}",
        "conv_im2col",
        "conv_im2col",
        (x, weights),
        y,
        arguments,
        grid=(-(-filters // _TILE), -(-images * height * width // _TILE), 1),
        threads=128,
        shared_bytes=4 * 2 * _TILE * _TILE * 2 + 4 * 8,
    )


def _reference(
    x: NDArray[np.float16], weights: NDArray[np.float16], stride: int, pad: int
) -> NDArray[np.float32]:
    size = weights.shape[1]
    padded = np.pad(x.astype(np.float32), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = sliding_window_view(padded, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    return np.ascontiguousarray(np.einsum("nhwcrs,krsc->nhwk", windows, weights.astype(np.float32)))
