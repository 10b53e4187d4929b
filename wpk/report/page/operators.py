"""The table of operators: a row each with its bar, and what is inside when it is opened."""

import html

from wpk.engine.plan import Check
from wpk.problems.signs import DASH
from wpk.report.facts import LaunchFacts, OperatorFacts, ReportFacts
from wpk.report.measured import measured_cell, measured_sentence
from wpk.report.page.markup import Html, joined, tag
from wpk.report.table import byte_size
from wpk.report.visible import visible_lines

DIGEST = 12
"""Digits of a digest that are shown."""

_COLUMNS = (
    ("#", "number", "Place in execution order"),
    ("Operator", "text", "Name, and what it computes"),
    ("Estimate µs", "number", "Predicted time; not measured"),
    ("Bound µs", "number", "Roofline time that nothing can beat"),
    ("Schedule", "text", "Template and the numbers that were chosen"),
    ("Regs", "number", "Registers of a thread"),
    ("Shared", "number", "Shared memory of a block"),
    ("Runs", "number", "Launches: kernels in sequence"),
    ("Check", "text", "Executed on the CPU and compared with a float64 reference"),
    ("Source", "text", "Digest of the kernel's source: of the cubin, and of what the CPU executes"),
)


def operators_section(facts: ReportFacts) -> Html:
    """The table, its legend, and for each operator a part that opens."""
    longest = max((operator.estimate_us for operator in facts.operators), default=1.0)
    bodies = [
        _body(facts, number, operator, longest or 1.0)
        for number, operator in enumerate(facts.operators)
    ]
    legend = tag(
        "p",
        tag("span", class_="key bound"),
        " bound, which nothing can beat ",
        tag("span", class_="key estimate"),
        " estimate, predicted and not measured. Times in µs. Press a heading to sort, an operator "
        "to look inside.",
        class_="legend",
    )
    table = tag("table", _head(), *bodies, id="operator-table", class_="operators")
    return tag("section", tag("h2", "Operators"), legend, table, id="operators")


def _head() -> Html:
    cells = [
        tag(
            "th",
            tag("button", label, type="button", title=title),
            scope="col",
            data_sort=kind,
            aria_sort="none",
        )
        for label, kind, title in _COLUMNS
    ]
    return tag("thead", tag("tr", *cells))


def _body(facts: ReportFacts, number: int, operator: OperatorFacts, longest: float) -> Html:
    detail = tag(
        "tr",
        tag("td", _inside(facts, operator), colspan=len(_COLUMNS)),
        class_="inside",
        id=f"inside-{number}",
        hidden=True,
    )
    row = tag("tr", *_cells(number, operator, longest))
    return tag("tbody", row, detail, id=f"operator-{number}", data_ops=number)


def _cells(number: int, operator: OperatorFacts, longest: float) -> list[Html]:
    spill = f" + {operator.spill_bytes} B spilled" if operator.spill_bytes else ""
    kinds = sorted(operator.tensor_core_instructions)
    return [
        _cell("#", number, number),
        _name_cell(number, operator),
        _cell("Estimate", operator.estimate_us, _bar(operator, longest)),
        _cell("Bound", operator.bound_us, f"{operator.bound_us:.2f}"),
        _cell(
            "Schedule",
            operator.template,
            tag("b", operator.template),
            tag("small", operator.schedule),
            tag("small", f"tensor cores: {', '.join(kinds)}") if kinds else "",
        ),
        _cell("Registers", operator.registers, f"{operator.registers}{spill}"),
        _cell("Shared", operator.shared_bytes, byte_size(operator.shared_bytes)),
        _cell("Launches", len(operator.launches), len(operator.launches)),
        _cell("Check", operator.state, state_mark(operator.state)),
        _cell("Source", "", *map(source_mark, operator.launches)),
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


def _bar(operator: OperatorFacts, longest: float) -> Html:
    estimate = 100 * operator.estimate_us / longest
    bound = 100 * min(operator.bound_us, operator.estimate_us) / longest
    track = tag(
        "span",
        tag("span", class_="estimate", style=f"width:{estimate:.2f}%"),
        tag("span", class_="bound", style=f"width:{bound:.2f}%"),
        class_="bar",
        aria_hidden="true",
    )
    words = tag("span", f"{operator.estimate_us:.2f}", class_="time")
    measured = measured_cell(operator)
    notes = [f"{operator.share:.1%}", *([f"measured {measured}"] if measured else [])]
    return joined([track, words, *(tag("small", note) for note in notes)])


def state_mark(state: str) -> Html:
    """A check's outcome with its sign."""
    sign = {"ok": "✓", "WRONG": "✗"}.get(state, DASH)
    return tag("span", f"{sign} {state}", class_=f"state {state.lower()}")


def source_mark(launch: LaunchFacts) -> Html:
    """The digest of a launch's source, once where cubin and CPU agree."""
    cubin, cpu = launch.cubin_source[:DIGEST], launch.cpu_source[:DIGEST]
    if cubin == cpu:
        title = "one source: the cubin was compiled from it, and the CPU device executes it"
        return tag("span", tag("code", cubin), " = CPU", class_="digest", title=title)
    title = "this installation generates another source, and would not execute the plan on the CPU"
    return tag("span", tag("code", cubin), " ≠ here", class_="digest differs", title=title)


def kind_class(kind: str) -> str:
    """The style class of a family."""
    return f"kind-{kind.replace(' ', '-')}"


def check_items(checks: tuple[Check, ...]) -> Html:
    """A list of checks with their numbers."""
    items = [
        tag(
            "li",
            state_mark("ok" if check.passed else "WRONG"),
            " ",
            tag("b", check.name),
            f": {check.detail}",
        )
        for check in checks
    ]
    return tag("ul", *items, class_="checks") if items else tag("p", "Not checked.")


def _inside(facts: ReportFacts, operator: OperatorFacts) -> Html:
    nodes = [tag("li", name, class_="chip") for name in operator.nodes]
    headroom = operator.estimate_us / operator.bound_us if operator.bound_us > 0 else 0.0
    why = (
        f"{operator.template}, {operator.schedule}. Score {operator.score:.3f}. The bound is "
        f"{operator.bound_us:.3f} µs, limited by {operator.bound_by}"
    )
    why += f"; the estimate is {headroom:.1f} times that." if headroom else "."
    if operator.measurement is not None:
        why += f" {measured_sentence(operator.measurement)}"
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
        tag("p", why + shared),
        tag("h3", "Checks"),
        check_items(operator.checks),
        tag("h3", "Launches"),
        *(_launch(facts, launch) for launch in operator.launches),
    )


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
