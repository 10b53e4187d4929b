"""Which pixel of an image every element of a window meets, at every position of the window."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def window_pixels(
    image: Sequence[int],
    window: Sequence[int],
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> NDArray[np.int64]:
    """Return the flat pixel, or -1 outside the image, of shape (elements, positions).

    Args:
        image: Sizes of its axes.
        window: Sizes of the window's axes.
        strides: Pixels between two positions, along each axis.
        dilations: Pixels between two elements, along each axis.
        pads: Pixels in front of all axes, then behind.
    """
    axes = len(image)
    flat, inside = np.zeros((1, 1), np.int64), np.ones((1, 1), bool)
    for axis, size in enumerate(image):
        reach = dilations[axis] * (window[axis] - 1) + 1
        steps = max((size + pads[axis] + pads[axes + axis] - reach) // strides[axis] + 1, 0)
        along = (
            np.arange(window[axis])[:, None] * dilations[axis]
            + np.arange(steps) * strides[axis]
            - pads[axis]
        )
        here = (along >= 0) & (along < size)
        pairs = (flat.shape[0] * window[axis], flat.shape[1] * steps)
        flat = (flat[:, None, :, None] * size + along[None, :, None, :]).reshape(pairs)
        inside = (inside[:, None, :, None] & here[None, :, None, :]).reshape(pairs)
    return np.where(inside, flat, -1)
