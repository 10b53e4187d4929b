"""What is inside an operator: its nodes, its choice with every number explained, checks, launches, CUDA."""

import html

from wpk.report.plans.facts import LaunchFacts, OperatorFacts, ReportFacts
from wpk.report.plans.page.contest import contest_part
from wpk.report.plans.page.marks import check_items, source_mark
from wpk.report.plans.page.markup import Html, joined, tag
from wpk.report.plans.schedule_words import explained
from wpk.report.text import visible_lines


def inside(facts: ReportFacts, operator: OperatorFacts) -> Html:
    nodes = [tag("li", name, class_="chip") for name in operator.nodes]
    measured = operator.measurement
    same = facts.problems[operator.problem].operators
    shared = f" Same problem as {len(same) - 1} other operators." if len(same) > 1 else ""
    return tag(
        "div",
        tag("h3", "ONNX nodes"),
        tag("ul", *nodes, class_="chips") if nodes else tag("p", "None."),
        tag("p", operator.note) if operator.note else "",
        tag("h3", "Reads and writes"),
        tag("p", f"{', '.join(operator.inputs)} → {', '.join(operator.outputs)}", class_="names"),
        tag("h3", "Choice"),
        tag("p", _choice_words(operator) + shared),
        _parameters(operator),
        contest_part(operator, measured) if measured is not None else "",
        tag("h3", "Checks"),
        check_items(operator.checks),
        tag("h3", "Launches"),
        *(
            [_launch(facts, launch) for launch in operator.launches]
            or [tag("p", f"{operator.title} chooses its kernels itself.")]
        ),
    )


def _parameters(operator: OperatorFacts) -> Html | str:
    """Every number of the schedule, and what it means."""
    rows = [
        tag(
            "tr", tag("th", tag("code", name), scope="row"), tag("td", str(value)), tag("td", words)
        )
        for name, value, words in explained(operator.candidate)
    ]
    return tag("table", tag("tbody", *rows), class_="parameters") if rows else ""


def _choice_words(operator: OperatorFacts) -> str:
    estimate = operator.estimate_us or 0.0
    headroom = estimate / operator.bound_us if operator.bound_us > 0 else 0.0
    score = "" if operator.score is None else f" Score {operator.score:.3f}."
    words = (
        f"{operator.title}, {operator.schedule}.{score} The bound is "
        f"{operator.bound_us:.3f} µs, limited by {operator.bound_by}"
    )
    return words + (f"; the estimate is {headroom:.1f} times that." if headroom else ".")


def _launch(facts: ReportFacts, launch: LaunchFacts) -> Html:
    words = (
        f" grid {launch.grid}, block {launch.block}, {launch.registers} registers, "
        f"{launch.shared_bytes} B shared"
    )
    words += f", {launch.spill_bytes} B spilled" if launch.spill_bytes else ""
    counts = launch.tensor_core_instructions.items()
    cores = ", ".join(f"{count} {kind}" for kind, count in counts)
    words += f", tensor-core instructions: {cores or 'none'}"
    line = tag("p", tag("code", launch.entry), words, " ", source_mark(launch))
    source = facts.sources.get(launch.cubin_source)
    if source is None:
        return line
    code = Html(html.escape(visible_lines(source)))
    unit = tag("details", tag("summary", "Generated CUDA"), tag("pre", tag("code", code)))
    return joined([line, unit])
