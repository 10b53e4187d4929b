"""Random inputs of exported graphs."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporters.architecture import Given


def draw_arrays(
    inputs: tuple[Given, ...], sizes: dict[str, int], seed: int
) -> dict[str, NDArray[Any]]:
    """Draw what the inputs may be: normal numbers, integers below a limit, and masks.

    A mask has ones in front and zeros behind, as sentences of different lengths have them.
    """
    return {each.name: _draw(each, each.sizes(sizes), seed) for each in inputs}


def _draw(given: Given, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    generator = np.random.default_rng([zlib.crc32(given.name.encode()), seed])
    if given.below == 2:
        lengths = generator.integers(1, shape[-1] + 1, (*shape[:-1], 1))
        return (np.arange(shape[-1]) < lengths).astype(np.int64)
    if given.below:
        return generator.integers(0, given.below, shape)
    return generator.normal(0, 1, shape).astype(np.float32)
