"""Dense layouts of constant operands that libraries read, by name.

A name lists the logical axes, outermost in memory first: filters are (k, c / groups, r, s), or (c,
k / groups, r, s) where they are transposed; matrices are (k, n).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LAYOUTS: dict[str, tuple[int, ...]] = {
    "kcrs": (0, 1, 2, 3),
    "krsc": (0, 2, 3, 1),
    "kn": (0, 1),
    "nk": (1, 0),
}
"""Logical axes in the order of memory."""


def lay_out(name: str, array: Array) -> Array:
    """Return the array as a library reads it, contiguous.

    Raises:
        KeyError: No layout has this name.
    """
    return np.ascontiguousarray(array.transpose(LAYOUTS[name]))


def layout_strides(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Count the elements between neighbours along each logical axis of an array of this shape.

    Raises:
        KeyError: No layout has this name.
    """
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(LAYOUTS[name]):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)
