"""What a plan says about how its choices were measured: every operator alone, and the whole engine."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wpk.candidate import GENERATED, Candidate


@dataclass(frozen=True)
class Ratio:
    """One time divided by another: above 1 where the second is faster.

    Attributes:
        median: Of the two medians.
        low: The least that the noise bands of both allow.
        high: And the most.
    """

    median: float
    low: float
    high: float

    @property
    def beyond_noise(self) -> bool:
        """Whether the bands tell the two apart."""
        return self.low > 1 or self.high < 1


class TimeBand:
    """A median and its noise band, in seconds."""

    median_seconds: float
    low_seconds: float
    high_seconds: float

    @property
    def noise(self) -> float:
        """Half the band of the median, relative to it."""
        return (self.high_seconds - self.low_seconds) / (2 * self.median_seconds)

    def speedup_over(self, other: "TimeBand") -> Ratio:
        """How many times as fast as another."""
        return Ratio(
            other.median_seconds / self.median_seconds,
            other.low_seconds / self.high_seconds,
            other.high_seconds / self.low_seconds,
        )


@dataclass(frozen=True)
class Contestant(TimeBand):
    """A candidate that ran correctly, with its time. Seconds.

    Attributes:
        candidate: What was timed.
        median_seconds: Of the samples.
        low_seconds: The median lies above this, with a probability of 95 %.
        high_seconds: And below this.
        samples: How many.
        side_by_side: Whether it was measured in turns with the other finalists, at the end; else
            its time is what the search saw.
        elsewhere_seconds: Median in the other regime of the caches; None where it was not measured
            there.
    """

    candidate: Candidate
    median_seconds: float
    low_seconds: float
    high_seconds: float
    samples: int
    side_by_side: bool
    elsewhere_seconds: float | None = None


@dataclass(frozen=True)
class Tally:
    """Trials of one family by how they ended.

    Attributes:
        family: `GENERATED`, or the library.
        statuses: Number of trials by `wpk.trial.Status`; none that is 0.
    """

    family: str
    statuses: dict[str, int]


@dataclass(frozen=True)
class Curve:
    """How the best of one way of searching came down.

    Attributes:
        maker: Template or library.
        searcher: Who proposed; empty where that is not known.
        points: Number of the trial among all of the problem, from 1, and the best up to then in
            seconds: improvements only.
    """

    maker: str
    searcher: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Measurement:
    """What was measured for one operator.

    Attributes:
        chosen: What the step executes.
        others: What it was compared with, the fastest first; also the best of a family of which
            nothing was compared.
        regime: ``warm`` (operands in L2) or ``cold``.
        tallies: Trials of every family that was tried.
        known: How many of all trials came from the tuning store.
        stop: Why the search ended.
        refusals: Why a library offers nothing.
        lookups: What the tuning store said, one a template.
        curves: The search, one a maker and searcher.
    """

    chosen: Contestant
    others: tuple[Contestant, ...]
    regime: str
    tallies: tuple[Tally, ...]
    known: int
    stop: str
    refusals: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()

    @property
    def is_generated(self) -> bool:
        """Whether the step executes a generated kernel."""
        return self.chosen.candidate.family == GENERATED

    @property
    def median_seconds(self) -> float:
        """Of the choice."""
        return self.chosen.median_seconds

    @property
    def noise(self) -> float:
        """Half the band of the choice's median, relative to it."""
        return self.chosen.noise

    @property
    def trials(self) -> int:
        """All candidates that were tried."""
        return sum(sum(tally.statuses.values()) for tally in self.tallies)

    @property
    def failed(self) -> int:
        """How many of them did not run, or gave wrong numbers."""
        return self.trials - sum(tally.statuses.get("ok", 0) for tally in self.tallies)

    @property
    def runner_up(self) -> Contestant | None:
        """The fastest of the others."""
        return _fastest(self.others)

    @property
    def library(self) -> Contestant | None:
        """The best of the libraries."""
        return _fastest(each for each in self._all if each.candidate.family != GENERATED)

    @property
    def libraries(self) -> dict[str, Contestant]:
        """The best of each library, by its name; the fastest first."""
        found: dict[str, Contestant] = {}
        for each in sorted(self._all, key=lambda each: each.median_seconds):
            if each.candidate.family != GENERATED:
                found.setdefault(each.candidate.family, each)
        return found

    @property
    def generated(self) -> Contestant | None:
        """The best generated kernel."""
        return _fastest(each for each in self._all if each.candidate.family == GENERATED)

    @property
    def _all(self) -> tuple[Contestant, ...]:
        return self.chosen, *self.others


def _fastest(contestants: Iterable[Contestant]) -> Contestant | None:
    return min(contestants, key=lambda each: each.median_seconds, default=None)


@dataclass(frozen=True)
class EngineVariant(TimeBand):
    """One whole engine, one inference after another, measured in turns with the other variants.

    Attributes:
        name: ``models`` (what the models alone chose), ``library`` (a library wherever it can),
            ``generated`` (no library), ``mixed`` (the fastest of each operator), or the like.
        median_seconds: Of one inference.
        low_seconds: The median lies above this, with a probability of 95 %.
        high_seconds: And below this.
        library_steps: Operators that a library computes.
        generated_steps: Operators that generated kernels compute.
    """

    name: str
    median_seconds: float
    low_seconds: float
    high_seconds: float
    library_steps: int
    generated_steps: int


@dataclass(frozen=True)
class EngineMeasurement:
    """The whole engine.

    Attributes:
        variants: All that were measured side by side, the chosen one among them.
        chosen: Name of the one that the plan is.
        undone: Operators whose substitution did not pay in the whole engine, the weakest first.
        phases: Seconds of wall clock that each phase of making the plan took before it was written, in the order in
            which they began.
    """

    variants: tuple[EngineVariant, ...]
    chosen: str
    undone: tuple[str, ...] = ()
    phases: dict[str, float] = field(default_factory=dict)

    def variant(self, name: str) -> EngineVariant | None:
        """The variant of a name; None where it was not measured."""
        return next((each for each in self.variants if each.name == name), None)

    @property
    def plan(self) -> EngineVariant:
        """The variant that the plan is.

        Raises:
            ValueError: None of the variants is called so.
        """
        found = self.variant(self.chosen)
        if found is None:
            raise ValueError(f"no variant {self.chosen!r} was measured")
        return found

    @property
    def median_seconds(self) -> float:
        """Of one inference of the plan."""
        return self.plan.median_seconds
