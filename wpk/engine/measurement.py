"""What a plan says about how its choices were measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """What was measured of a choice.

    Attributes:
        median_seconds: Of the samples.
        low_seconds: The median lies above this, with a probability of 95 %.
        high_seconds: And below this.
        samples: How many.
        regime: ``warm`` (operands in L2) or ``cold``.
        trials: Schedules tried for the problem.
        failed: How many of them did not run, or gave wrong numbers.
        stop: Why its search ended.
    """

    median_seconds: float
    low_seconds: float
    high_seconds: float
    samples: int
    regime: str
    trials: int
    failed: int
    stop: str

    @property
    def noise(self) -> float:
        """Half the band of the median, relative to it."""
        return (self.high_seconds - self.low_seconds) / (2 * self.median_seconds)


@dataclass(frozen=True)
class EngineMeasurement:
    """The whole engine, one inference after another.

    Attributes:
        median_seconds: Of one inference of this plan.
        low_seconds: The median lies above this, with a probability of 95 %.
        high_seconds: And below this.
        static_seconds: Median of the plan that the models alone chose, measured in turns with it.
        tuned: Whether the measured choices were kept; otherwise the models' engine was faster.
    """

    median_seconds: float
    low_seconds: float
    high_seconds: float
    static_seconds: float
    tuned: bool
