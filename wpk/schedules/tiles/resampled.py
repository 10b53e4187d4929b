"""What a run of outputs reads along a resampled axis: the numbers of resampled_axis.cuh."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from wpk.performance import Floats
from wpk.problems import NearestMode, Resize, ResizeCoordinates, ResizeMode

_MAX_RATIO = 256
"""The largest whole number of outputs a sample for which patterns are looked for."""


@dataclass(frozen=True)
class ResampledAxis:
    """One axis of a problem.

    Attributes:
        coordinates: Where outputs lie.
        nearest: How positions are rounded; None where samples are interpolated.
        samples: Of the input.
        outputs: Of the output.
        ratio: Outputs a sample where that is a whole number, else 0.
    """

    coordinates: ResizeCoordinates
    nearest: NearestMode | None
    samples: int
    outputs: int
    ratio: int

    @classmethod
    def of(cls, problem: Resize, axis: int) -> Self:
        """Return the rows (0) or the columns (1) of a problem."""
        scale = problem.scale[axis]
        return cls(
            problem.coordinates,
            problem.nearest if problem.mode is ResizeMode.NEAREST else None,
            (problem.h, problem.w)[axis],
            (problem.p, problem.q)[axis],
            int(scale) if scale == int(scale) and 1 <= scale <= _MAX_RATIO else 0,
        )

    @property
    def is_regular(self) -> bool:
        """Whether an output's position moves by a whole part of a sample."""
        single = (
            self.coordinates is ResizeCoordinates.PYTORCH_HALF_PIXEL and self.outputs == 1
        ) or self.coordinates is ResizeCoordinates.ALIGN_CORNERS
        return self.ratio > 0 and not single

    @property
    def read(self) -> int:
        """Samples that an output is made of."""
        return 2 if self.nearest is None else 1

    def is_known(self, count: int) -> bool:
        """Say whether runs of ``count`` outputs share samples (isWhole or isOne of ResampledRun)."""
        return self.is_regular and (count % self.ratio == 0 or self._is_one(count))

    def slots(self, count: int) -> int:
        """Return the samples that a run of ``count`` outputs loads."""
        if self.is_regular and count % self.ratio == 0:
            return self._sample(count - 1) - self._sample(0) + self.read
        return self.read if self.is_known(count) else self.read * count

    def each(self, counts: Floats) -> Floats:
        """Return the slots of runs of so many outputs each."""
        table = np.array([0, *(self.slots(count) for count in range(1, int(counts.max()) + 1))])
        slots: Floats = table[counts.astype(int)].astype(float)
        return slots

    def positions(self, counts: Floats) -> Floats:
        """Return how many places of a run are computed from the number of the output."""
        table = [0] + [
            1 if self.is_known(count) else count for count in range(1, int(counts.max()) + 1)
        ]
        computed: Floats = np.array(table)[counts.astype(int)].astype(float)
        return computed

    def under(self, outputs: Floats) -> Floats:
        """Return the samples under ``outputs`` neighbouring outputs."""
        span = np.ceil(outputs * (self.samples / self.outputs)) + (self.read - 1)
        under: Floats = np.minimum(np.minimum(self.samples, span), self.read * outputs)
        return under

    def _is_one(self, count: int) -> bool:
        return self.ratio % count == 0 and all(
            self._sample(first) == self._sample(first + count - 1)
            for first in range(0, self.ratio, count)
        )

    def _sample(self, output: int) -> int:
        ratio = self.ratio
        centre = 0 if self.coordinates is ResizeCoordinates.ASYMMETRIC else 1 - ratio
        rounding = {
            NearestMode.ROUND_PREFER_FLOOR: ratio - 1,
            NearestMode.ROUND_PREFER_CEIL: ratio,
            NearestMode.CEIL: 2 * ratio - 1,
        }
        lifted = 0 if self.nearest is None else rounding.get(self.nearest, 0)
        return (2 * output + centre + lifted) // (2 * ratio)
