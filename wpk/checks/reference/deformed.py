"""The reference of DeformConv, of which onnx's own takes every element of every window by itself."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun


class DeformConv(OpRun):
    """Convolution of images whose windows read at ``place + offset``, between elements linearly, times a mask.

    Attributes as ONNX's DeformConv. What lies outside the image is 0.
    """

    def _run(
        self,
        x: Any,
        weight: Any,
        offset: Any,
        bias: Any = None,
        mask: Any = None,
        **attributes: Any,
    ) -> tuple[Any]:
        window, (rows, columns) = weight.shape[2:], offset.shape[2:]
        strides, steps, pads = (
            attributes.get(name) or [one] * 2
            for name, one in (("strides", 1), ("dilations", 1), ("pads", 0))
        )
        groups, parts = attributes.get("group") or 1, attributes.get("offset_group") or 1
        batch, taps = len(x), window[0] * window[1]
        pairs = offset.reshape(batch, parts, taps, 2, rows, columns)
        masks = 1.0 if mask is None else mask.reshape(batch, parts, taps, rows, columns)
        read = np.empty((batch, x.shape[1], taps, rows, columns), x.dtype)
        every, inside = x.shape[1] // parts, np.broadcast_to(masks, pairs[:, :, :, 0].shape)
        for sample, part, (tap, (i, j)) in product(
            range(batch), range(parts), enumerate(np.ndindex(*window))
        ):
            down = np.arange(rows)[:, None] * strides[0] - pads[0] + i * steps[0]
            right = np.arange(columns)[None, :] * strides[1] - pads[1] + j * steps[1]
            channels = slice(part * every, (part + 1) * every)
            found = _between(x[sample, channels], pairs[sample, part, tap], down, right)
            read[sample, channels, tap] = found * inside[sample, part, tap]
        grouped = read.reshape(batch, groups, -1, rows * columns)
        matrices = weight.reshape(groups, len(weight) // groups, -1)
        y = np.matmul(matrices, grouped).reshape(batch, len(weight), rows, columns)
        return (y if bias is None else y + bias.reshape(-1, 1, 1),)


def _between(
    image: NDArray[Any], offset: NDArray[Any], down: NDArray[Any], right: NDArray[Any]
) -> NDArray[Any]:
    """All channels at the places, of the four elements around each."""
    y, x = offset[0] + down, offset[1] + right
    top, left = np.floor(y), np.floor(x)
    found = np.zeros((len(image), *y.shape), image.dtype)
    for below, beside in np.ndindex(2, 2):
        row, column = top + below, left + beside
        weight = (1 - np.abs(y - row)) * (1 - np.abs(x - column))
        there = (row >= 0) & (row < image.shape[1]) & (column >= 0) & (column < image.shape[2])
        at = np.where(there, row, 0).astype(np.int64), np.where(there, column, 0).astype(np.int64)
        found += image[:, at[0], at[1]] * np.where(there, weight, 0)
    return found
