"""What was measured of a whole plan, in words and in rows that every form of the report shows."""

from collections.abc import Sequence

from wpk.plan import Curve, EngineMeasurement, Measurement
from wpk.problems.signs import DASH, TIMES
from wpk.report.plans.contest import (
    candidate_words,
    contest_sentences,
    microseconds,
    ratio_words,
    roles,
    tally_words,
    time_words,
)
from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.forms import FORMS, form_rows, form_sentences

_MOST_POINTS = 6

TitledRows = tuple[str, tuple[str, ...], list[list[str]]]
"""Title, columns and rows."""

VARIANTS = ("engine", "median µs", "over library", "library steps", "generated steps", "")
"""Columns of `variant_rows`."""


def estimate_cell(operator: OperatorFacts) -> str:
    """Return an estimate in microseconds; a dash for a library's implementation, which nothing predicts."""
    return DASH if operator.estimate_us is None else f"{operator.estimate_us:.2f}"


def estimate_words(facts: ReportFacts) -> str:
    """Say that the sum of estimates is no measurement, and what it leaves out."""
    if not facts.library_steps:
        return "predicted, not measured"
    return f"predicted, not measured, without the {facts.library_steps} library steps"


def chain_words(facts: ReportFacts) -> str:
    """Say how many operators follow each other if others run beside them; the text begins with a semicolon."""
    parallel = facts.chain < len(facts.operators)
    return (
        f"; at most {facts.chain} wait for each other, the others run beside them"
        if parallel
        else ""
    )


def measured_cell(operator: OperatorFacts) -> str:
    """Return a time in microseconds, ``7.12 ±0.3%``; empty where nothing was measured."""
    measured = operator.measurement
    return "" if measured is None else time_words(measured)


def measured_sum(facts: ReportFacts) -> tuple[str, str]:
    """Return the sum over the operators that were measured, and what it is the sum of, in words."""
    measured = [each for _, each in facts.measured_operators]
    regimes = " and ".join(sorted({each.regime for each in measured}))
    total = sum(each.median_seconds for each in measured) * 1e6
    count = f"{len(measured)} of {len(facts.operators)} operators"
    return f"{total:.2f} µs", f"{count}, each alone, {regimes}"


def throughput(facts: ReportFacts) -> tuple[str, str]:
    """Return inferences in a second, one after another, and what they are reckoned from."""
    seconds, source = (facts.estimate_us or 0.0) * 1e-6, "estimate: operators one after another"
    if facts.measurement is not None:
        seconds, source = facts.measurement.median_seconds, "measured whole engine"
    if seconds <= 0:
        return DASH, "unknown"
    return f"{1 / seconds:,.0f}/s", f"inferences one after another, by the {source}"


def measured_lines(facts: ReportFacts) -> list[str]:
    """Return sentences on the operators and on the whole engine; none where nothing was measured."""
    lines = []
    if facts.measured_operators:
        lines.append("measured {}: {}.".format(*measured_sum(facts)))
    if facts.measurement is not None:
        lines.append("whole engine measured {}: {}.".format(*measured_engine(facts.measurement)))
        lines += undone_sentences(facts.measurement)
        lines += phase_sentences(facts.measurement)
    lines += form_sentences(facts.forms)
    if facts.contest is not None:
        lines += contest_sentences(facts.contest)
    return lines


def measured_engine(measured: EngineMeasurement) -> tuple[str, str]:
    """Return the whole engine's time, and what it was compared with, in words."""
    others = [each for each in measured.variants if each.name != measured.chosen]
    words = ", ".join(f"{each.name} {each.median_seconds * 1e6:.2f} µs" for each in others)
    kept = f"±{measured.plan.noise:.1%}, {measured.chosen} was chosen"
    kept += f"; side by side: {words}" if words else ""
    return f"{measured.median_seconds * 1e6:.2f} µs", kept


def undone_sentences(measured: EngineMeasurement) -> list[str]:
    """Say which substitutions did not pay; nothing where all did."""
    if not measured.undone:
        return []
    names = ", ".join(measured.undone)
    return [f"Substitutions undone because they did not pay in the engine, weakest first: {names}."]


LONG_PHASE = 0.05
"""The part of a run from which on a phase is named."""


def phase_sentences(measured: EngineMeasurement) -> list[str]:
    """Say how long making the plan took, and its phases, the longest first; nothing where that is not known."""
    total = sum(measured.phases.values())
    if not total:
        return []
    longest = sorted(measured.phases.items(), key=lambda phase: -phase[1])
    named = [(name, seconds) for name, seconds in longest if seconds >= LONG_PHASE * total]
    rest = total - sum(seconds for _, seconds in named)
    words = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in named)
    return [f"Made in {total:.1f} s: {words}, others {rest:.1f} s."]


def variant_rows(measured: EngineMeasurement) -> list[list[str]]:
    """Return a row for each whole engine."""
    library = measured.variant("library")
    return [
        [
            each.name,
            time_words(each),
            DASH if library is None or library is each else ratio_words(each.speedup_over(library)),
            str(each.library_steps),
            str(each.generated_steps),
            "chosen" if each.name == measured.chosen else "",
        ]
        for each in measured.variants
    ]


def distance_words(operator: OperatorFacts) -> str:
    """Return how many times the bound an operator's time is, or a dash where there is no bound."""
    if operator.bound_us <= 0:
        return DASH
    return f"{operator.time_us / operator.bound_us:.1f}"


def over_library_words(operator: OperatorFacts) -> str:
    """Return the choice's speedup over the library's best; the library's name where it won."""
    if not operator.launches:
        return operator.candidate.family
    return DASH if operator.over_library is None else ratio_words(operator.over_library)


def measured_tables(facts: ReportFacts) -> list[TitledRows]:
    """Return title, columns and rows of everything that was measured; nothing without measuring."""
    problems = [(p.work, p.measurement) for p in facts.problems if p.measurement is not None]
    tables = [
        (
            "Whole engines",
            VARIANTS,
            [] if facts.measurement is None else variant_rows(facts.measurement),
        ),
        ("Forms", FORMS, form_rows(facts.forms)),
        (
            "Candidates side by side",
            ("operator", "role", "candidate", "median µs", "speedup of the choice"),
            [row for each in facts.measured_operators for row in _candidate_rows(*each)],
        ),
        (
            "Outcomes",
            ("operator", "alone µs", "in engine µs", f"{TIMES} bound", "over library", "why"),
            [_outcome_row(*each) for each in facts.measured_operators],
        ),
        *_search_tables(problems),
    ]
    return [table for table in tables if table[2]]


def _candidate_rows(operator: OperatorFacts, measured: Measurement) -> list[list[str]]:
    """Return a row for each candidate that is worth showing."""
    chosen = measured.chosen
    return [
        [
            operator.name,
            role,
            candidate_words(each),
            time_words(each),
            DASH if each is chosen else ratio_words(chosen.speedup_over(each)),
        ]
        for role, each in roles(measured)
    ]


def _outcome_row(operator: OperatorFacts, measured: Measurement) -> list[str]:
    return [
        operator.name,
        time_words(measured),
        microseconds(operator.in_engine_seconds),
        distance_words(operator),
        over_library_words(operator),
        operator.why,
    ]


def _search_tables(
    problems: Sequence[tuple[str, Measurement]],
) -> list[TitledRows]:
    """Return how the search of each problem went, and what was known before it."""
    return [
        (
            "Searches",
            ("problem", "trials", "known", "stopped"),
            [[work, tally_words(each), str(each.known), each.stop] for work, each in problems],
        ),
        (
            "Best so far",
            ("problem", "searched by", "best so far in µs @ trial"),
            [
                [work, curve_name(curve), curve_words(curve)]
                for work, each in problems
                for curve in each.curves
            ],
        ),
        (
            "Known before",
            ("problem", "tuning store"),
            [[work, line] for work, each in problems for line in each.lookups],
        ),
    ]


def curve_name(curve: Curve) -> str:
    """Return who searched and with what: ``conv_mma, genetic``."""
    return f"{curve.maker}, {curve.searcher}" if curve.searcher else curve.maker


def curve_words(curve: Curve) -> str:
    """Return the best after so many trials: ``20.10 @1 → 9.80 @5``.

    The middle of long curves is left out.
    """
    points = [f"{seconds * 1e6:.2f} @{trial}" for trial, seconds in curve.points]
    if len(points) > _MOST_POINTS:
        half = _MOST_POINTS // 2
        points = [*points[:half], "…", *points[-half:]]
    return " → ".join(points)


def measured_sentence(measured: Measurement) -> str:
    """Say how the choice of one operator was measured."""
    return (
        f"Measured {measured.median_seconds * 1e6:.3f} µs (median of {measured.chosen.samples} "
        f"samples, ±{measured.noise:.1%}, {measured.regime}): {measured.trials} candidates were "
        f"tried, of which {measured.failed} failed; stopped: {measured.stop}."
    )
