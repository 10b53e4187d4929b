"""What was measured, in words."""

from wpk.engine.measurement import EngineMeasurement, Measurement
from wpk.report.facts import OperatorFacts, ReportFacts


def any_measured(facts: ReportFacts) -> bool:
    """Whether any choice was measured."""
    return any(operator.measurement is not None for operator in facts.operators)


def measured_cell(operator: OperatorFacts) -> str:
    """``7.12 ±0.3%`` in microseconds; empty where nothing was measured."""
    measured = operator.measurement
    if measured is None:
        return ""
    return f"{measured.median_seconds * 1e6:.2f} ±{measured.noise:.1%}"


def measured_sum(facts: ReportFacts) -> tuple[str, str]:
    """The sum over the operators that were measured, and what it is the sum of, in words."""
    measured = [o.measurement for o in facts.operators if o.measurement is not None]
    regimes = " and ".join(sorted({each.regime for each in measured}))
    total = sum(each.median_seconds for each in measured) * 1e6
    count = f"{len(measured)} of {len(facts.operators)} operators"
    return f"{total:.2f} µs", f"{count}, each alone, {regimes}"


def measured_lines(facts: ReportFacts) -> list[str]:
    """The sum over the operators, and the whole engine; nothing where nothing was measured."""
    lines = []
    if any_measured(facts):
        lines.append("measured {}: {}".format(*measured_sum(facts)))
    if facts.measurement is not None:
        lines.append("whole engine measured {}: {}".format(*measured_engine(facts.measurement)))
    return lines


def measured_engine(measured: EngineMeasurement) -> tuple[str, str]:
    """The whole engine's time, and what it is compared with, in words."""
    others = [each for each in measured.variants if each.name != measured.chosen]
    words = ", ".join(f"{each.name} {each.median_seconds * 1e6:.2f} µs" for each in others)
    kept = f"{measured.chosen} was chosen; side by side: {words}" if words else measured.chosen
    return f"{measured.median_seconds * 1e6:.2f} µs ±{measured.plan.noise:.1%}", kept


def measured_sentence(measured: Measurement) -> str:
    """How the choice of one operator was measured."""
    return (
        f"Measured {measured.median_seconds * 1e6:.3f} µs (median of {measured.chosen.samples} samples, "
        f"±{measured.noise:.1%}, {measured.regime}): the fastest of {measured.trials} schedules "
        f"tried, of which {measured.failed} failed; stopped: {measured.stop}."
    )
