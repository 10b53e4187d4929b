"""From the outcome of tuning a problem to what a plan keeps of it: small, and enough to understand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from wpk.device import noise_band
from wpk.execution import Configuration
from wpk.libraries import CUDNN
from wpk.plans.measurement import GENERATED, Contestant, Curve, Measurement, Tally
from wpk.plans.plan import LibraryChoice, Step
from wpk.search.model_search import Found
from wpk.search.tune_record import Tried, Tuned
from wpk.trial import Regime, Status


def with_measurement(step: Step, found: Found) -> Step:
    """The step with what was measured of its choice; as it is where nothing was."""
    tuned = found.tuned.get(step.operator.problem)
    if tuned is None or found.regime is None:
        return step
    choice = step.choice
    if isinstance(choice, LibraryChoice):
        measured = measurement_of(tuned, found.regime, choice.library, choice.configuration)
    else:
        measured = measurement_of(tuned, found.regime, choice.template, choice.schedule)
    return replace(step, evidence=replace(step.evidence, measurement=measured))


def measurement_of(
    tuned: Tuned, regime: Regime, maker: str, configuration: Configuration
) -> Measurement | None:
    """What was measured of a problem whose operators execute one of its candidates.

    Args:
        tuned: The outcome of tuning.
        regime: What the caches held.
        maker: Template or library of the candidate that is executed.
        configuration: Its schedule.

    Returns:
        The evidence; None where that candidate has no time.
    """
    contestants = _contestants(tuned)
    named = {(each.maker, each.configuration): each for each in contestants}
    chosen = named.get((maker, configuration)) or _searched(tuned, maker, configuration)
    if chosen is None:
        return None
    return Measurement(
        chosen=chosen,
        others=tuple(each for each in contestants if each is not chosen),
        regime=regime.value,
        tallies=_tallies((*tuned.tried, *tuned.library)),
        known=tuned.known,
        stop=tuned.stop.value,
        refusals=tuned.refusals,
        lookups=tuned.lookups,
        curves=_curves(tuned.tried),
    )


def _searched(tuned: Tuned, maker: str, configuration: Configuration) -> Contestant | None:
    """A candidate that was no finalist, as the search saw it; None where it did not run."""
    for each in (*tuned.tried, *tuned.library):
        ran = each.trial.status is Status.OK
        if ran and (each.template, each.trial.schedule) == (maker, configuration):
            return _contestant(each, side_by_side=False)
    return None


def _is_library(tried: Tried) -> bool:
    return tried.template == CUDNN


def _contestants(tuned: Tuned) -> list[Contestant]:
    """The finalists, and the best of a family that has none among them; the fastest first."""
    ran = [each for each in tuned.finalists if each.trial.status is Status.OK]
    elsewhere = {
        (e.template, e.trial.schedule): e.trial.cost for e in tuned.elsewhere if e.trial.seconds
    }
    found = [
        replace(
            _contestant(each, side_by_side=tuned.compared),
            elsewhere_seconds=elsewhere.get((each.template, each.trial.schedule)),
        )
        for each in ran
    ]
    for library in (False, True):
        if not any(each.is_library is library for each in found):
            tried = tuned.library if library else tuned.tried
            best = min(tried, key=lambda each: each.trial.cost, default=None)
            if best is not None and best.trial.status is Status.OK:
                found.append(_contestant(best, side_by_side=False))
    return sorted(found, key=lambda each: each.median_seconds)


def _contestant(tried: Tried, *, side_by_side: bool) -> Contestant:
    low, high = noise_band(tried.trial.seconds)
    return Contestant(
        maker=tried.template,
        version=tried.version,
        configuration=tried.trial.schedule,
        is_library=_is_library(tried),
        median_seconds=tried.trial.cost,
        low_seconds=low,
        high_seconds=high,
        samples=len(tried.trial.seconds),
        side_by_side=side_by_side,
    )


def _tallies(tried: Sequence[Tried]) -> tuple[Tally, ...]:
    families: dict[str, Counter[str]] = {}
    for each in tried:
        family = each.template if _is_library(each) else GENERATED
        families.setdefault(family, Counter())[each.trial.status.value] += 1
    return tuple(Tally(name, dict(counts)) for name, counts in families.items())


def _curves(tried: Sequence[Tried]) -> tuple[Curve, ...]:
    points: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for number, each in enumerate(tried, start=1):
        curve = points.setdefault((each.template, each.searcher), [])
        cost = each.trial.cost
        if each.trial.status is Status.OK and (not curve or cost < curve[-1][1]):
            curve.append((number, cost))
    return tuple(
        Curve(maker, searcher, tuple(curve)) for (maker, searcher), curve in points.items() if curve
    )
