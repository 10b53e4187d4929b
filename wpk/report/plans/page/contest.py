"""Inside an operator: the candidates side by side, and why the choice won or lost."""

from wpk.candidate import GENERATED
from wpk.plan import Contestant, Measurement
from wpk.problems.signs import DASH
from wpk.report.plans.contest import (
    candidate_words,
    microseconds,
    ratio_words,
    roles,
    tally_words,
    time_words,
)
from wpk.report.plans.facts import OperatorFacts
from wpk.report.plans.measured import distance_words, measured_sentence
from wpk.report.plans.page.bars import noise_bar
from wpk.report.plans.page.markup import Html, joined, table_head, tag
from wpk.trial import Regime


def contest_part(operator: OperatorFacts, measured: Measurement) -> Html:
    """Return the candidates of one operator with their times."""
    shown = roles(measured)
    slowest = max(each.high_seconds for _, each in shown)
    rows = [_row(role, each, measured.chosen, slowest) for role, each in shown]
    regime = Regime(measured.regime)
    other = Regime.COLD if regime is Regime.WARM else Regime.WARM
    times = (f"{each.capitalize()} µs" for each in (regime, other))
    head = table_head(("", "Candidate", *times, "Speedup of the choice"))
    where = f"Alone {microseconds(measured.median_seconds)} µs"
    if operator.in_engine_seconds is not None:
        where += f", in the engine {microseconds(operator.in_engine_seconds)} µs"
    where += f"; {distance_words(operator)} times the bound."
    trials = f"Trials: {tally_words(measured)}; {measured.known} of them known before."
    link = tag("a", "How the search went", href=f"#problem-{operator.problem}")
    return joined(
        [
            tag("h3", "Measured side by side"),
            tag("p", f"{operator.why[:1].upper()}{operator.why[1:]}."),
            tag("table", head, tag("tbody", *rows), class_="contest"),
            tag("p", f"{where} {measured_sentence(measured)} {trials} ", link),
            *(tag("p", f"Tuning store: {line}", class_="names") for line in measured.lookups),
        ]
    )


def _row(role: str, each: Contestant, chosen: Contestant, slowest: float) -> Html:
    apart = "" if each.side_by_side else " (as the search saw it)"
    speedup = DASH if each is chosen else ratio_words(chosen.speedup_over(each))
    shade = "estimate" if each.candidate.family == GENERATED else "library"
    return tag(
        "tr",
        tag("th", role, scope="row"),
        tag("td", candidate_words(each)),
        tag("td", noise_bar(each, slowest, shade), time_words(each), apart),
        tag("td", microseconds(each.elsewhere_seconds)),
        tag("td", speedup),
    )
