"""Who builds and measures engines, and what counts as noise.

Noise is the range of measurements that decide nothing: each engine is measured for its noise first,
and then again, in turns with its rival, for the decision. A range of several runs is wider than
their medians move, so that a difference beyond it is not due to luck.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeVar

from wpk.tensorrt.choosing.inspector import EngineInformation
from wpk.tensorrt.choosing.profile import Profile

Engine = TypeVar("Engine")
Built = TypeVar("Built", covariant=True)
Measured = TypeVar("Measured", contravariant=True)


class Builder(Protocol[Built]):
    """Builds engines of one network."""

    def build(self, replaced: frozenset[str]) -> Built:
        """The engine in which these operators are plugins.

        Raises:
            TensorRTError: TensorRT did not build it.
        """


class Clock(Protocol[Measured]):
    """Measures whole engines."""

    def latency(self, engine: Measured) -> float:
        """Seconds of a whole execution, without a profiler: the median of one run of several."""


class Profiler(Clock[Measured], Protocol[Measured]):
    """Inspects and measures engines on the GPU that they were built for."""

    def information(self, engine: Measured) -> EngineInformation:
        """What the inspector says of it."""

    def profile(self, engine: Measured) -> Profile:
        """Times of its layers, of one run of several executions."""


@dataclass(frozen=True)
class Effort:
    """How much is measured and built.

    Attributes:
        runs: Measurements of each engine for its noise, and again as many for each decision.
        rebuilds: Engines that are built at most after the groups were compared.
        trials: Engines that are built at most to compare the groups.
    """

    runs: int = 5
    rebuilds: int = 6
    trials: int = 6


def spread(samples: Sequence[float]) -> float:
    """The range of repeated measurements, in their unit."""
    return max(samples) - min(samples)


@dataclass(frozen=True)
class Duel:
    """Two engines, measured as wholes.

    Attributes:
        seconds: Of the challenger.
        rival: Of the other.
        noise: What the difference must exceed, from measurements of their own.
    """

    seconds: float
    rival: float
    noise: float

    @property
    def is_won(self) -> bool:
        """Whether the challenger is faster beyond noise."""
        return self.seconds + self.noise < self.rival


def duel(clock: Clock[Engine], challenger: Engine, rival: Engine, runs: int) -> Duel:
    """Measure two engines, in turns, so that clocks and neighbours change for both."""
    noise = max(
        spread([clock.latency(engine) for _ in range(runs)]) for engine in (challenger, rival)
    )
    turns = [(clock.latency(challenger), clock.latency(rival)) for _ in range(runs)]
    return Duel(median(a for a, _ in turns), median(b for _, b in turns), noise)
