"""Time replays on a GPU the way a deployed engine would see them.

A sample is a replay between two events, divided by the repetitions in it. What precedes it on the
stream, another replay (warm) or filling memory larger than L2 (cold), sets the caches and keeps the GPU
busy while the CPU submits the sample, so no gap of submission is measured. Subjects take turns, each
round beginning with the next one; rounds go on until the noise band of every median is narrow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from statistics import median
from typing import Protocol

from wpk.execution import Replay
from wpk.trial import Regime

QUANTILE = 1.96
"""Of the normal distribution: the noise band holds the median with a probability of 95 %."""


class Clock(Protocol):
    """What measures: `wpk.device.cuda.CudaDevice`."""

    def seconds(self, replay: Replay) -> float:
        """Time of a replay between two events on the GPU."""


@dataclass(frozen=True)
class Subject:
    """What is timed.

    Attributes:
        replay: A number of repetitions.
        repetitions: How many.
        prepare: Started before each sample, and not timed: sets the caches.
        regime: What the caches hold then.
    """

    replay: Replay
    repetitions: int
    prepare: Callable[[], None]
    regime: Regime


@dataclass(frozen=True)
class Patience:
    """When to stop sampling.

    Attributes:
        least: Samples taken in any case.
        most: Samples at most.
        noise: Half the noise band, relative to the median, that suffices.
        seconds: Time on the GPU after which no further round begins.
    """

    least: int = 11
    most: int = 101
    noise: float = 0.005
    seconds: float = 1.0


@dataclass(frozen=True)
class Timing:
    """The outcome for one subject.

    Attributes:
        seconds: Every sample: time of one repetition.
        regime: What the caches held.
    """

    seconds: tuple[float, ...]
    regime: Regime

    @property
    def median(self) -> float:
        """Seconds of one repetition."""
        return median(self.seconds)

    @property
    def band(self) -> tuple[float, float]:
        """Between these lies the median, see `noise_band`."""
        return noise_band(self.seconds)

    @property
    def noise(self) -> float:
        """Half the band, relative to the median."""
        low, high = self.band
        return (high - low) / (2 * self.median)


def noise_band(seconds: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median, from order statistics: no distribution is assumed.

    The number of samples under the median is binomial, so the ranks ``n/2 ± 1.96 sqrt(n)/2`` bound it
    (Conover, Practical Nonparametric Statistics, section 3.2). Too few samples give their extremes.
    """
    ordered, count = sorted(seconds), len(seconds)
    reach = QUANTILE * sqrt(count) / 2
    low = max(0, ceil(count / 2 - reach) - 1)
    return ordered[low], ordered[count - 1 - low]


def quantile(seconds: Sequence[float], part: float) -> float:
    """The smallest sample that so large a part of all samples does not exceed."""
    return sorted(seconds)[max(0, ceil(part * len(seconds)) - 1)]


def time_side_by_side(
    clock: Clock, subjects: Sequence[Subject], patience: Patience
) -> list[Timing]:
    """Time subjects in turns; the first round is a warm-up.

    Raises:
        LaunchError: A kernel failed.
    """
    samples: list[list[float]] = [[] for _ in subjects]
    for subject in subjects:
        _sample(clock, subject)
    spent = 0.0
    for turn in range(patience.most):
        order = [(turn + place) % len(subjects) for place in range(len(subjects))]
        for index in order:
            seconds = _sample(clock, subjects[index])
            spent += seconds
            samples[index].append(seconds / subjects[index].repetitions)
        if turn + 1 >= patience.least:
            worst = max((_timing(s, x).noise for s, x in zip(subjects, samples, strict=True)))
            if worst <= patience.noise or spent > patience.seconds:
                break
    return [_timing(s, x) for s, x in zip(subjects, samples, strict=True)]


def repetitions_for(
    seconds: float, wanted: float, least: int, most: int, enough: float = inf
) -> int:
    """How often to repeat what takes ``seconds`` for a sample of about ``wanted`` seconds.

    Args:
        seconds: One repetition.
        wanted: A sample.
        least: Repetitions, unless fewer take ``enough`` seconds.
        most: Repetitions.
        enough: Seconds after which a sample has no edges worth hiding.
    """
    if seconds <= 0 or wanted > most * seconds:
        return most
    return min(max(least, ceil(wanted / seconds)), max(1, ceil(min(enough / seconds, most))))


def _sample(clock: Clock, subject: Subject) -> float:
    subject.prepare()
    return clock.seconds(subject.replay)


def _timing(subject: Subject, seconds: Sequence[float]) -> Timing:
    return Timing(tuple(seconds), subject.regime)
