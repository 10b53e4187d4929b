"""What must hold within the measurements of a plan: whoever reads them divides by their times."""

from collections.abc import Iterable
from math import inf

from wpk.plan.fields import wrong
from wpk.plan.forms import FormSearch
from wpk.plan.measurement import Contestant, EngineMeasurement, EngineVariant, Measurement
from wpk.plan.plan import Plan


def check_measurements(plan: Plan) -> None:
    """Check that times are times, that bands hold their medians, and that names refer to something.

    Raises:
        PlanError: Naming the field.
    """
    for index, step in enumerate(plan.steps):
        path, evidence = f"plan.steps[{index}].evidence", step.evidence
        # A time among neighbours is a difference of two clocks' readings, and may be nothing.
        if evidence.in_engine_seconds is not None and not 0 <= evidence.in_engine_seconds < inf:
            raise wrong(f"{path}.in_engine_seconds", f"{evidence.in_engine_seconds!r} is no time")
        if evidence.measurement is not None:
            _check_operator(evidence.measurement, f"{path}.measurement")
    if plan.measurement is not None:
        operators = {step.operator.name for step in plan.steps}
        _check_engine(plan.measurement, operators, "plan.measurement")
    if plan.forms is not None:
        _check_forms(plan.forms, plan.provenance.changed_sites, "plan.forms")


def _check_operator(measured: Measurement, path: str) -> None:
    _check_band(measured.chosen, f"{path}.chosen")
    for index, other in enumerate(measured.others):
        _check_band(other, f"{path}.others[{index}]")
    for index, tally in enumerate(measured.tallies):
        if any(count < 0 for count in tally.statuses.values()):
            raise wrong(f"{path}.tallies[{index}].statuses", "counts less than nothing")
    for index, curve in enumerate(measured.curves):
        where = f"{path}.curves[{index}].points"
        _check_seconds([seconds for _, seconds in curve.points], where)
        trials = [trial for trial, _ in curve.points]
        if trials != sorted(set(trials)) or any(trial < 1 for trial in trials):
            raise wrong(where, "trials do not rise from 1")


def _check_engine(measured: EngineMeasurement, operators: set[str], path: str) -> None:
    for index, variant in enumerate(measured.variants):
        _check_band(variant, f"{path}.variants[{index}]")
    if measured.variant(measured.chosen) is None:
        raise wrong(f"{path}.chosen", f"{measured.chosen!r} is none of the variants")
    for index, name in enumerate(measured.undone):
        if name not in operators:
            raise wrong(f"{path}.undone[{index}]", f"the plan has no operator {name!r}")


def _check_forms(search: FormSearch, changed: tuple[str, ...], path: str) -> None:
    if search.chosen != changed:
        raise wrong(f"{path}.chosen", f"{list(search.chosen)}, the plan's form is {list(changed)}")
    if search.partitions < 1:
        raise wrong(
            f"{path}.partitions", f"{search.partitions} were compared, the usual one is one"
        )
    if search.begun is not None:
        sums = (search.begun.estimate, search.begun.passes_estimate)
        _check_seconds(sums, f"{path}.begun")
        if search.begun.looked_at < 0:
            raise wrong(f"{path}.begun.looked_at", "counts less than nothing")
    for index, form in enumerate(search.tried):
        where = f"{path}.tried[{index}]"
        if form.places < 0:
            raise wrong(f"{where}.places", "counts less than nothing")
        sides = (form.predicted_usual, form.predicted, form.measured_usual, form.measured)
        # A side is nothing where all of its operators are also on the other one.
        if any(side is not None and not 0 <= side < inf for side in sides):
            raise wrong(where, f"{sides!r} are not all times")


def _check_band(timed: Contestant | EngineVariant, path: str) -> None:
    band = (timed.low_seconds, timed.median_seconds, timed.high_seconds)
    _check_seconds(band, f"{path}.median_seconds")
    if sorted(band) != [*band]:
        raise wrong(f"{path}.median_seconds", f"{band[1]!r} lies outside of its band")


def _check_seconds(seconds: Iterable[float], path: str) -> None:
    for each in seconds:
        if not 0 < each < inf:
            raise wrong(path, f"{each!r} is no time")
