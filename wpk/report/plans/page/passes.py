"""What each graph pass did, and what it left alone and why."""

from wpk.plan import PassSummary, RefusalSummary
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.page.bars import bar, piece
from wpk.report.plans.page.markup import Html, section, table_head, tag


def passes_section(facts: ReportFacts) -> Html:
    """Return the passes that rewrote or refused something, then the names of the others."""
    busy = [each for each in facts.passes if each.rewritten or each.refusals or each.skipped]
    idle = [each.name for each in facts.passes if each not in busy]
    most = max((each.rewritten for each in busy), default=1)
    rows = [_row(each, max(most, 1)) for each in busy]
    nothing = tag(
        "details",
        tag("summary", f"{len(idle)} passes found nothing to do"),
        tag("p", ", ".join(idle), class_="names"),
    )
    words = "To find out whether a pass is to blame for something, leave it out: --skip-pass NAME."
    return section(
        "passes",
        "Graph passes",
        tag("p", words, class_="legend"),
        tag("table", table_head(("Pass", "Rewrites", "")), tag("tbody", *rows), class_="passes")
        if rows
        else "",
        nothing if idle else "",
    )


def _row(each: PassSummary, most: int) -> Html:
    number = "skipped on request" if each.skipped else str(each.rewritten)
    count = tag(
        "td",
        bar(piece("estimate", 100 * each.rewritten / most)),
        tag("span", number, class_="time"),
    )
    return tag("tr", tag("th", each.name, scope="row"), count, tag("td", _left(each.refusals)))


def _left(refusals: tuple[RefusalSummary, ...]) -> Html | str:
    """Nodes that were left alone, together where the reason is the same."""
    if not refusals:
        return ""
    by_reason: dict[str, list[str]] = {}
    for refusal in refusals:
        by_reason.setdefault(refusal.reason, []).append(refusal.node)
    items = [
        tag("li", tag("span", reason), tag("small", ", ".join(nodes)))
        for reason, nodes in by_reason.items()
    ]
    summary = tag("summary", f"left {len(refusals)} alone")
    return tag("details", summary, tag("ul", *items))
