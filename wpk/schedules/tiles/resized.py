"""What a thread of resize.cuh does for its tile of outputs, and what a block loads."""

from dataclasses import dataclass

import numpy as np

from wpk.performance import Columns, Floats
from wpk.problems import Resize, ResizeMode
from wpk.schedules.image import Image
from wpk.schedules.streaming import ceil_divide, narrow_access
from wpk.schedules.strided import SECTOR_BYTES
from wpk.schedules.tiles.resampled import ResampledAxis

_WORD = 4
_OTHER_SLOTS, _LOAD_SLOTS, _STORE_SLOTS = 28.0, 4.0, 1.2
_KNOWN_SLOTS, _PLACE_SLOTS, _WEIGHT_SLOTS = 7.0, 13.0, 11.0
"""Instructions of a thread for its place among all; of a load and of a store, with their addresses; for an axis along which
runs share samples, for each output of one along which they do not, and for the weights of either. Chosen by the machine code
of 56 schedules of seven problems for sm_90a, of which the sums are 0.85 to 1.25 times the instructions."""

_OTHER_REGISTERS = 20.0


@dataclass(frozen=True)
class ResizedTile:
    """What a thread does; one entry a schedule.

    Attributes:
        items: Tiles of an image.
        samples: Loads of ``vector`` samples.
        words: Registers of samples.
        registers: Estimated registers in all.
        flops: Operations.
        slots: Issue slots besides: places, accesses, conversions, and products that are no multiply-add.
    """

    items: Floats
    samples: Floats
    words: Floats
    registers: Floats
    flops: Floats
    slots: Floats

    @classmethod
    def of(cls, problem: Resize, columns: Columns) -> "ResizedTile":
        """Return the tiles of schedules' ``vector``, ``pixels`` and ``rows``."""
        image, linear = Image.of(problem), problem.mode is ResizeMode.LINEAR
        vector, pixels, rows = (
            columns[name].astype(float) for name in ("vector", "pixels", "rows")
        )
        height, width = (ResampledAxis.of(problem, axis) for axis in (0, 1))
        across, size = width.each(pixels), problem.x.dtype.bytes
        samples, outputs = height.each(rows) * across, rows * pixels
        words = np.ceil(samples * vector * size / _WORD)
        chunks = ceil_divide(problem.c + image.padding_c, vector)
        tiles = ceil_divide(problem.p, rows) * ceil_divide(problem.q + image.padding_q, pixels)
        # Two instructions an interpolation: a product, and a product that is added.
        interpolations = (rows * across + outputs) * vector if linear else 0.0 * outputs
        stored = np.minimum(
            vector if image.channels_fastest else pixels,
            max(1, problem.y.alignment // problem.y.dtype.bytes),
        )
        converted: Floats | float = 0.0
        if linear:
            halves = np.where(stored * problem.y.dtype.bytes < _WORD, 1.0, 0.5)  # packed in pairs
            converted = samples * vector * (size < _WORD) + outputs * vector * halves
        return cls(
            items=tiles * chunks,
            samples=samples,
            words=words,
            registers=_OTHER_REGISTERS + words / 2 + across * vector * linear,
            flops=2 * interpolations if linear else outputs,
            slots=_OTHER_SLOTS
            + _place_slots(height, rows)
            + _place_slots(width, pixels)
            + samples * _LOAD_SLOTS
            + outputs * vector / stored * _STORE_SLOTS
            + interpolations
            + converted,
        )


def _place_slots(axis: ResampledAxis, count: Floats) -> Floats:
    """What places and weights of a run of outputs take."""
    computed = axis.positions(count)
    each = _KNOWN_SLOTS if axis.is_regular else _PLACE_SLOTS
    each += _WEIGHT_SLOTS if axis.nearest is None else 0.0
    slots: Floats = computed * each + axis.each(count)
    return slots


def block_bytes(problem: Resize, columns: Columns) -> Floats:
    """What L2 sends for the samples under a block's tiles, which lie side by side along a row and down."""
    image = Image.of(problem)
    vector, pixels, rows = (columns[name].astype(float) for name in ("vector", "pixels", "rows"))
    height, width = (ResampledAxis.of(problem, axis) for axis in (0, 1))
    chunks = ceil_divide(problem.c + image.padding_c, vector)
    threads = columns["threads"].astype(float)
    channels = np.minimum(chunks, threads) if image.channels_fastest else np.ones_like(vector)
    across = np.maximum(1.0, np.floor(threads / channels))
    line = ceil_divide(problem.q + image.padding_q, pixels)
    down = ceil_divide(across, line)
    samples = width.under(np.minimum(across, line) * pixels) * height.under(down * rows)
    size = problem.x.dtype.bytes
    step = abs(problem.x.strides[1 if image.channels_fastest else 3]) * size
    bytes_each = max(size, min(step, SECTOR_BYTES))
    loaded: Floats = samples * channels * vector * bytes_each
    if image.channels_fastest:
        loaded = loaded * narrow_access(vector, size)
    return loaded
