"""Strided views of arrays, of all element types."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray


def strided(
    flat: NDArray[np.generic], shape: Sequence[int], strides: Sequence[int]
) -> NDArray[np.generic]:
    """See an array's elements in another shape.

    NumPy's own function takes no array of `ml_dtypes`' E5M2, so it is given the bits.

    Args:
        flat: The elements, one after the other; nothing is copied.
        shape: Extents of the view.
        strides: Bytes from one element to the next along each axis.
    """
    bits = flat.view(np.dtype(f"u{flat.itemsize}"))
    return as_strided(bits, tuple(shape), tuple(strides)).view(flat.dtype)
