"""How each problem's space was narrowed, as a funnel and in numbers."""

from math import log10

from wpk.plan import Funnel
from wpk.report.plans.facts import ProblemFacts, ReportFacts
from wpk.report.plans.page.curves import search_curves
from wpk.report.plans.page.marks import kind_class
from wpk.report.plans.page.markup import Html, section, stretched, tag

_STAGES = ("space", "legal", "kept", "compiled")


def search_section(facts: ReportFacts) -> Html:
    """Return a funnel for every template that was asked, and the reasons of those that were not."""
    cards = [_card(number, problem) for number, problem in enumerate(facts.problems)]
    words = (
        f"{len(facts.problems)} distinct problems. Of each template's space the legal schedules "
        "are scored; the score keeps the promising ones, an estimate ranks them, and the best are "
        "compiled. Heights are logarithmic."
    )
    if facts.measured_operators:
        words += (
            " Curves show the best time so far against the number of schedules tried, one for each "
            "template and searcher."
        )
    style = "cards measured" if facts.measured_operators else "cards"
    deck = tag("div", *cards, class_=style)
    summary = tag("summary", f"{len(cards)} problems, and how the space of each was narrowed")
    folded = tag("details", summary, deck, open=bool(facts.measured_operators))
    return section("search", "Search", tag("p", words, class_="legend"), folded)


def _card(number: int, problem: ProblemFacts) -> Html:
    asked = [funnel for funnel in problem.funnels if not funnel.refusal]
    refused = [funnel for funnel in problem.funnels if funnel.refusal]
    count, names = len(problem.operators), ", ".join(problem.operators)
    return tag(
        "article",
        tag("h3", problem.work, class_=kind_class(problem.kind)),
        tag("p", names if count == 1 else f"{count} operators: {names}", class_="names"),
        *(_funnel(funnel, funnel.template in problem.chosen) for funnel in asked),
        _refusals(refused),
        search_curves(problem.measurement, problem.bound_us, number)
        if problem.measurement is not None
        else "",
        id=f"problem-{number}",
    )


def _funnel(funnel: Funnel, chosen: bool) -> Html:
    counts = (funnel.space, funnel.legal, funnel.kept, funnel.compiled)
    steps = [
        tag("li", tag("b", f"{count:,}"), tag("small", stage))
        for count, stage in zip(counts, _STAGES, strict=True)
    ]
    mark = tag("small", "chosen", class_="mark") if chosen else ""
    return tag(
        "div",
        tag("p", tag("code", funnel.template), " ", mark),
        _picture(counts),
        tag("ol", *steps),
        class_="funnel",
    )


def _picture(counts: tuple[int, ...]) -> Html:
    """Four heights, joined: the logarithm of each count, one of them the full height."""
    top = log10(max(counts[0], 1) + 1)
    heights = [22 * log10(count + 1) / top for count in counts]
    xs = [12.5, 37.5, 62.5, 87.5]
    upper = [(x, 24 - h) for x, h in zip(xs, heights, strict=True)]
    lower = [(x, 24 + h) for x, h in zip(xs, heights, strict=True)]
    points = [(0.0, upper[0][1]), *upper, (100.0, upper[-1][1])]
    points += [(100.0, lower[-1][1]), *reversed(lower), (0.0, lower[0][1])]
    outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + "Z"
    return stretched([tag("path", d=outline)], 100, 48)


def _refusals(refused: list[Funnel]) -> Html | str:
    if not refused:
        return ""
    items = [tag("li", tag("code", f.template), f": {f.refusal}") for f in refused]
    words = f"{len(refused)} templates refused" if len(refused) > 1 else "1 template refused"
    return tag("details", tag("summary", words), tag("ul", *items))
