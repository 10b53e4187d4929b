"""The table of operators: a row each with its bar, and what is inside when it is opened."""

from wpk.problems.signs import DASH, TIMES
from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.measured import distance_words
from wpk.report.plans.page.bars import bar, piece
from wpk.report.plans.page.inside import inside
from wpk.report.plans.page.marks import breakable, kind_class, source_mark, state_mark
from wpk.report.plans.page.markup import Html, joined, section, tag
from wpk.report.plans.schedule_words import short_meanings
from wpk.report.text import byte_size

_ESTIMATE = ("Estimate µs", "number", "Predicted time; not measured")
_MEASURED = ("Measured µs", "number", "Median of the choice alone; an estimate where it says so")
_LIBRARY = ("Over library", "number", "Speedup of the choice over the library's best")
_COLUMNS = (
    ("#", "number", "Place in execution order"),
    ("Operator", "text", "Name, and what it computes"),
    ("Bound µs", "number", "Roofline time that nothing can beat"),
    ("Of peak", "number", "Bound ÷ time: how much is used of what limits it, memory or arithmetic"),
    ("Schedule", "text", "Template or library, and the numbers that were chosen"),
    ("Registers", "number", "Registers of a thread"),
    ("Shared", "number", "Shared memory of a block"),
    ("Launches", "number", "Kernels in sequence"),
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
    return section("operators", "Operators", _legend(facts), _filter(facts), table)


def _filter(facts: ReportFacts) -> Html:
    """What narrows the table: words, and one row for operators that are the same problem."""
    words = tag(
        "input",
        type="search",
        id="filter",
        placeholder="name, kind, schedule …",
        aria_label="Show only operators that hold these words",
    )
    box = tag("input", type="checkbox", id="equal")
    repeated = len(facts.operators) - len(facts.problems)
    once = tag("label", box, f" equal operators once ({repeated} rows less)") if repeated else ""
    return tag(
        "p", tag("label", "Filter ", words), once, tag("output", id="shown"), class_="filter"
    )


def _columns(facts: ReportFacts) -> tuple[tuple[str, str, str], ...]:
    """Label, order and explanation of each column; plans without measuring have fewer."""
    if not facts.measured_operators:
        return (*_COLUMNS[:2], _ESTIMATE, *_COLUMNS[2:])
    return (*_COLUMNS[:2], _MEASURED, *_COLUMNS[2:4], _LIBRARY, *_COLUMNS[4:])


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
        tag("td", inside(facts, operator), colspan=len(_columns(facts))),
        class_="inside",
        id=f"inside-{number}",
        hidden=True,
    )
    equal = _equal_words(facts, operator)
    measured = bool(facts.measured_operators)
    row = tag("tr", *_cells(number, operator, longest, equal, measured=measured))
    return tag(
        "tbody",
        row,
        detail,
        id=f"operator-{number}",
        data_ops=number,
        data_problem=operator.problem,
        data_words=f"{operator.name} {operator.kind} {operator.work} {operator.title} {operator.state}".lower(),
    )


def _cells(
    number: int, operator: OperatorFacts, longest: float, equal: str, *, measured: bool
) -> list[Html]:
    distance = tag("small", f"{TIMES}{distance_words(operator)}") if measured else ""
    return [
        _cell("#", number, number),
        _name_cell(number, operator, equal),
        _cell("Time", operator.time_us, _bar(operator, longest, measured=measured)),
        _cell("Bound", operator.bound_us, f"{operator.bound_us:.2f}", distance),
        _peak_cell(operator),
        *([_library_cell(operator)] if measured else []),
        _schedule_cell(operator),
        *_resource_cells(operator),
        _cell("Check", operator.state, state_mark(operator.state)),
        _cell("Source", "", *(map(source_mark, operator.launches) if operator.launches else DASH)),
    ]


def _peak_cell(operator: OperatorFacts) -> Html:
    """How much is used of what limits the operator."""
    part = operator.of_peak
    return _cell("Of peak", part, f"{part:.0%}", tag("small", operator.bound_by))


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
        tag("small", operator.schedule, title=short_meanings(operator.candidate)),
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


def _equal_words(facts: ReportFacts, operator: OperatorFacts) -> str:
    """How many operators are the same problem, and their share of the time; empty for one alone."""
    same = [each for each in facts.operators if each.problem == operator.problem]
    if len(same) == 1:
        return ""
    return f"{TIMES}{len(same)}, together {sum(each.share for each in same):.1%}"


def _name_cell(number: int, operator: OperatorFacts, equal: str) -> Html:
    button = tag(
        "button",
        breakable(operator.name),
        type="button",
        class_="opener",
        aria_expanded="false",
        aria_controls=f"inside-{number}",
    )
    dot = tag("span", class_=f"dot {kind_class(operator.kind)}", title=operator.kind)
    work = tag("small", operator.work)
    same = tag("small", equal, class_="equal") if equal else ""
    heading = tag("span", dot, button, class_="heading")
    return tag("th", heading, work, same, scope="row", data_value=operator.name)


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
        notes.append("estimate" if operator.in_engine_seconds is None else "in the engine")
    words = tag("span", f"{operator.time_us:.2f}", class_="time")
    return joined([bar(*pieces), words, *(tag("small", note) for note in notes)])
