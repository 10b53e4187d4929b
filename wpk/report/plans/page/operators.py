"""The table of operators: a row each with its bar, and what is inside when it is opened."""

import html

from wpk.plan import Check
from wpk.problems.signs import DASH, TIMES
from wpk.report.plans.check_words import outcome_word
from wpk.report.plans.facts import LaunchFacts, OperatorFacts, ReportFacts
from wpk.report.plans.measured import distance_words
from wpk.report.plans.page.bars import bar, piece
from wpk.report.plans.page.contest import contest_part
from wpk.report.plans.page.markup import Html, joined, section, tag
from wpk.report.text import byte_size, visible_lines

DIGEST = 12
"""Digits of a digest that are shown."""

_ESTIMATE = ("Estimate µs", "number", "Predicted time; not measured")
_MEASURED = ("Measured µs", "number", "Median of the choice alone; an estimate where it says so")
_LIBRARY = ("Over library", "number", "Speedup of the choice over the library's best")
_COLUMNS = (
    ("#", "number", "Place in execution order"),
    ("Operator", "text", "Name, and what it computes"),
    ("Bound µs", "number", "Roofline time that nothing can beat"),
    ("Schedule", "text", "Template or library, and the numbers that were chosen"),
    ("Regs", "number", "Registers of a thread"),
    ("Shared", "number", "Shared memory of a block"),
    ("Runs", "number", "Launches: kernels in sequence"),
    ("Check", "text", "Executed alone and compared with a float64 reference"),
    ("Source", "text", "Digest of the kernel's source: of the cubin, and of what the CPU executes"),
)


def operators_section(facts: ReportFacts) -> Html:
    """Return the table, its legend, and for each operator a part that opens."""
    columns = _columns(facts)
    longest = max((_longest(operator) for operator in facts.operators), default=1.0)
    bodies = [
        _body(facts, number, operator, longest or 1.0)
        for number, operator in enumerate(facts.operators)
    ]
    style = "operators measured" if facts.measured_operators else "operators"
    table = tag("table", _head(columns), *bodies, id="operator-table", class_=style)
    return section("operators", "Operators", _legend(facts), table)


def _columns(facts: ReportFacts) -> tuple[tuple[str, str, str], ...]:
    """Label, order and explanation of each column; plans without measuring have fewer."""
    if not facts.measured_operators:
        return (*_COLUMNS[:2], _ESTIMATE, *_COLUMNS[2:])
    return (*_COLUMNS[:2], _MEASURED, _COLUMNS[2], _LIBRARY, *_COLUMNS[3:])


def _longest(operator: OperatorFacts) -> float:
    library = None if operator.measurement is None else operator.measurement.library
    return max(operator.time_us, 0.0 if library is None else library.median_seconds * 1e6)


def _legend(facts: ReportFacts) -> Html:
    words = " estimate, predicted and not measured. "
    if facts.measured_operators:
        words = " median of the choice alone "
    mark = [tag("span", class_="key rival"), " the library's best. "] if facts.contest else []
    return tag(
        "p",
        tag("span", class_="key bound"),
        " bound, which nothing can beat ",
        tag("span", class_="key estimate"),
        words,
        *mark,
        "Times in µs. Press a heading to sort, an operator to look inside.",
        class_="legend",
    )


def _head(columns: tuple[tuple[str, str, str], ...]) -> Html:
    cells = [
        tag(
            "th",
            tag("button", label, type="button", title=title),
            scope="col",
            data_sort=kind,
            aria_sort="none",
        )
        for label, kind, title in columns
    ]
    return tag("thead", tag("tr", *cells))


def _body(facts: ReportFacts, number: int, operator: OperatorFacts, longest: float) -> Html:
    detail = tag(
        "tr",
        tag("td", _inside(facts, operator), colspan=len(_columns(facts))),
        class_="inside",
        id=f"inside-{number}",
        hidden=True,
    )
    row = tag("tr", *_cells(number, operator, longest, measured=bool(facts.measured_operators)))
    return tag("tbody", row, detail, id=f"operator-{number}", data_ops=number)


def _cells(number: int, operator: OperatorFacts, longest: float, *, measured: bool) -> list[Html]:
    distance = tag("small", f"{TIMES}{distance_words(operator)}") if measured else ""
    return [
        _cell("#", number, number),
        _name_cell(number, operator),
        _cell("Time", operator.time_us, _bar(operator, longest, measured=measured)),
        _cell("Bound", operator.bound_us, f"{operator.bound_us:.2f}", distance),
        *([_library_cell(operator)] if measured else []),
        _schedule_cell(operator),
        *_resource_cells(operator),
        _cell("Check", operator.state, state_mark(operator.state)),
        _cell("Source", "", *(map(source_mark, operator.launches) if operator.launches else DASH)),
    ]


def _library_cell(operator: OperatorFacts) -> Html:
    """How much faster than the library's best; where that was chosen, how the generated one fared."""
    measured = operator.measurement
    ratio = operator.over_library
    if measured is None or (ratio is None and measured.is_generated):
        return _cell("Over library", 0.0, DASH)
    if ratio is None:
        generated = measured.generated
        words = "nothing generated ran"
        if generated is not None:
            words = f"generated {generated.speedup_over(measured.chosen).median:.2f}{TIMES}"
        return _cell("Over library", 1.0, measured.chosen.candidate.family, tag("small", words))
    style = ("ok" if ratio.median > 1 else "wrong") if ratio.beyond_noise else "unchecked"
    words = f"{ratio.low:.2f} to {ratio.high:.2f}"
    value = tag("span", f"{ratio.median:.2f}{TIMES}", class_=f"speedup {style}")
    return _cell("Over library", ratio.median, value, tag("small", words))


def _schedule_cell(operator: OperatorFacts) -> Html:
    kinds = operator.tensor_core_kinds
    return _cell(
        "Schedule",
        operator.title,
        tag("b", operator.title),
        tag("small", operator.schedule),
        tag("small", f"tensor cores: {', '.join(kinds)}") if kinds else "",
    )


def _resource_cells(operator: OperatorFacts) -> list[Html]:
    """Registers, shared memory, launches: a library does not tell them."""
    if not operator.launches:
        return [_cell(label, 0, DASH) for label in ("Registers", "Shared", "Launches")]
    spill = f" + {operator.spill_bytes} B spilled" if operator.spill_bytes else ""
    return [
        _cell("Registers", operator.registers, f"{operator.registers}{spill}"),
        _cell("Shared", operator.shared_bytes, byte_size(operator.shared_bytes)),
        _cell("Launches", len(operator.launches), len(operator.launches)),
    ]


def _cell(label: str, sort: str | float, *content: str | int) -> Html:
    parts = [part if isinstance(part, str) else str(part) for part in content]
    return tag("td", *parts, data_label=label, data_value=sort)


def _name_cell(number: int, operator: OperatorFacts) -> Html:
    button = tag(
        "button",
        operator.name,
        type="button",
        class_="opener",
        aria_expanded="false",
        aria_controls=f"inside-{number}",
    )
    dot = tag("span", class_=f"dot {kind_class(operator.kind)}", title=operator.kind)
    work = tag("small", operator.work)
    heading = tag("span", dot, button, class_="heading")
    return tag("th", heading, work, scope="row", data_value=operator.name)


def _bar(operator: OperatorFacts, longest: float, *, measured: bool) -> Html:
    part = 100 / longest
    bound = part * min(operator.bound_us, operator.time_us)
    pieces = [
        piece("estimate", part * operator.time_us),
        piece("bound", bound),
    ]
    notes = [f"{operator.share:.1%}"]
    result = operator.measurement
    if result is not None:
        notes = [f"±{result.noise:.1%}", *notes]
        notes += [] if operator.estimate_us is None else [f"estimate {operator.estimate_us:.2f}"]
        if result.library is not None:
            left = part * result.library.median_seconds * 1e6
            pieces.append(tag("span", class_="rival", style=f"left:{min(left, 99):.2f}%"))
    elif measured:
        notes.append("estimate")
    words = tag("span", f"{operator.time_us:.2f}", class_="time")
    return joined([bar(*pieces), words, *(tag("small", note) for note in notes)])


def state_mark(state: str) -> Html:
    """Return a check's outcome with its sign."""
    sign = {"ok": "✓", "WRONG": "✗", "inconclusive": "?"}.get(state, DASH)
    return tag("span", f"{sign} {state}", class_=f"state {state.lower()}")


def source_mark(launch: LaunchFacts) -> Html:
    """Return the digest of a launch's source, once where cubin and CPU agree."""
    cubin, cpu = launch.cubin_source[:DIGEST], launch.cpu_source[:DIGEST]
    if cubin == cpu:
        title = "one source: the cubin was compiled from it, and the CPU device executes it"
        return tag("span", tag("code", cubin), " = CPU", class_="digest", title=title)
    title = "this installation generates another source, and would not execute the plan on the CPU"
    return tag("span", tag("code", cubin), " ≠ here", class_="digest differs", title=title)


def kind_class(kind: str) -> str:
    """Return the style class of a family."""
    return f"kind-{kind.replace(' ', '-')}"


def check_items(checks: tuple[Check, ...]) -> Html:
    """Return a list of checks with their numbers."""
    items = [
        tag(
            "li",
            state_mark(outcome_word(check.outcome)),
            " ",
            tag("b", check.name),
            f": {check.detail}",
        )
        for check in checks
    ]
    return tag("ul", *items, class_="checks") if items else tag("p", "Not checked.")


def _inside(facts: ReportFacts, operator: OperatorFacts) -> Html:
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
        contest_part(operator, measured) if measured is not None else "",
        tag("h3", "Checks"),
        check_items(operator.checks),
        tag("h3", "Launches"),
        *(
            [_launch(facts, launch) for launch in operator.launches]
            or [tag("p", f"{operator.title} chooses its kernels itself.")]
        ),
    )


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
