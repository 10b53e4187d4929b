"""The whole engine beside its variants, and generated kernels beside the library's."""

from wpk.plan import EngineMeasurement, EngineVariant, FormSearch
from wpk.report.plans.contest import contest_sentences
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.forms import FORMS, form_rows, form_sentences
from wpk.report.plans.measured import VARIANTS, undone_sentences, variant_rows
from wpk.report.plans.page.bars import noise_bar
from wpk.report.plans.page.markup import Html, joined, section, table_head, tag


def measured_section(facts: ReportFacts) -> Html:
    """Return whole engines side by side, and what the operators' contests come to."""
    words = [] if facts.contest is None else contest_sentences(facts.contest)
    if facts.contest is None and facts.measured_operators:
        words = ["No library had a correct candidate for any operator that was measured."]
    parts = [] if facts.measurement is None else [_engines(facts.measurement)]
    parts += [_forms(facts.forms)] if facts.forms is not None else []
    return section("measured", "Measured", *parts, *(tag("p", each) for each in words))


def _forms(search: FormSearch) -> Html:
    rows = [tag("tr", *(tag("td", cell) for cell in cells)) for cells in form_rows(search)]
    head = table_head(label.capitalize() for label in FORMS)
    table = [tag("table", head, tag("tbody", *rows), class_="forms")] if rows else []
    return joined([*(tag("p", each) for each in form_sentences(search)), *table])


def _engines(measured: EngineMeasurement) -> Html:
    slowest = max(each.high_seconds for each in measured.variants)
    rows = [
        _row(each, cells, slowest)
        for each, cells in zip(measured.variants, variant_rows(measured), strict=True)
    ]
    head = table_head(label.capitalize() for label in VARIANTS)
    legend = (
        "Whole engines in turns, one inference after another. The dark mark at the end of a bar is "
        "the noise band of its median."
    )
    return joined(
        [
            tag("p", legend, class_="legend"),
            tag("table", head, tag("tbody", *rows), class_="engines"),
            *(tag("p", sentence) for sentence in undone_sentences(measured)),
        ]
    )


def _row(each: EngineVariant, cells: list[str], slowest: float) -> Html:
    name, time, *rest, chosen = cells
    mark = tag("small", chosen, class_="mark") if chosen else ""
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", noise_bar(each, slowest, "estimate"), tag("span", time, class_="time")),
        *(
            tag("td", cell, data_label=label.capitalize())
            for label, cell in zip(VARIANTS[2:], rest, strict=False)
        ),
        tag("td", mark),
    )
