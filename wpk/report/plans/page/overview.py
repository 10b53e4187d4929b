"""The top of the page: what the plan is, its numbers, where its time goes, what was checked."""

from collections import Counter
from collections.abc import Sequence

from wpk.plan import Outcome
from wpk.problems.signs import DASH, TIMES
from wpk.report.plans.check_words import remarks
from wpk.report.plans.distance import distant_words
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.fallback import fallback_operators, fallback_sentences
from wpk.report.plans.measured import (
    chain_words,
    estimate_words,
    measured_engine,
    measured_sum,
    throughput,
)
from wpk.report.plans.page.marks import breakable, check_items, kind_class
from wpk.report.plans.page.markup import Html, joined, section, table_head, tag
from wpk.report.plans.precision import precision_sentences
from wpk.report.text import byte_size

SECTIONS = ("operators", "graph", "search", "passes", "precision", "memory", "checks", "origin")
"""Sections of the page by their ids."""


_FIRST = 5
"""Operators that are named as the first to look at."""

_LEAST = "Time ÷ (bound + a launch)"
_FIRST_COLUMNS = ("Operator", "Time µs", "Bound µs", f"{TIMES} least", "Would save", "Limited by")


def header(facts: ReportFacts) -> Html:
    """Return title, verdict and the way to the sections."""
    title = tag(
        "h1",
        facts.model,
        tag("span", " → "),
        f"{facts.target} ",
        tag("small", facts.precision.asked),
    )
    names = ("measured", *SECTIONS) if facts.is_measured else SECTIONS
    links = [tag("a", name.capitalize(), href=f"#{name}") for name in names]
    return tag("header", title, _verdict(facts), tag("nav", *links, aria_label="Sections"))


def _verdict(facts: ReportFacts) -> Html:
    times = "No time here is measured."
    if facts.is_measured:
        times = "Times called measured were taken on the GPU; bounds and estimates were not."
    match facts.verdict:
        case Outcome.OK:
            words = f"{_alone_words(facts)}, and the whole engine against ONNX Runtime. {times}"
            return tag("p", "✓ ", words, class_="verdict ok")
        case Outcome.INCONCLUSIVE:
            words = (
                f"{_alone_words(facts)}. The comparison of the whole engine with ONNX Runtime is "
                "inconclusive: "
            )
            why = tag("a", "see why", href="#checks")
            return tag("p", "? ", words, why, f". {times}", class_="verdict inconclusive")
        case Outcome.FAILED:
            wrong = [o.name for o in facts.operators if any(check.failed for check in o.checks)]
            wrong += [check.name for check in facts.checks if check.failed]
            words = f"Wrong numbers: {', '.join(wrong[:5])}"
            return tag("p", "✗ ", words, class_="verdict wrong")
    words = f"Not everything in this plan was checked. {times}"
    return tag("p", f"{DASH} ", words, class_="verdict unchecked")


def _alone_words(facts: ReportFacts) -> str:
    return (
        "Every graph pass was checked against the model in float64, every operator was executed on "
        f"{facts.checked_on} and checked against a float64 reference"
    )


def tiles(facts: ReportFacts) -> Html:
    """Return the plan in numbers."""
    entries = (*_time_tiles(facts), *_size_tiles(facts))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", words)))
            for name, value, words in entries
        ),
        class_="tiles",
    )


def _time_tiles(facts: ReportFacts) -> list[tuple[str, str, str]]:
    """Return name, number and explanation of each time."""
    chain = "sum along the longest chain of operators; nothing can beat it"
    return [
        *([("Engine", *measured_engine(facts.measurement))] if facts.measurement else []),
        *([("Measured", *measured_sum(facts))] if facts.measured_operators else []),
        ("Estimate", f"{facts.estimate_us:.1f} µs", f"sum over operators; {estimate_words(facts)}"),
        ("Throughput", *throughput(facts)),
        ("Bound", f"{facts.bound_us:.2f} µs", chain),
    ]


def _size_tiles(facts: ReportFacts) -> list[tuple[str, str, str]]:
    """Return name, number and explanation of what is counted."""
    nodes, operators, memory = len(facts.nodes), len(facts.operators), facts.memory
    besides = "nothing else is enqueued"
    if facts.library_steps:
        besides = f"{facts.library_steps} library steps besides"
    handed = len(fallback_operators(facts))
    if handed:
        besides = f"{handed} steps of ONNX Runtime between them"
    fewer = f"of {nodes} ONNX nodes, {max(nodes - operators, 0)} fewer{chain_words(facts)}"
    weights = f"activations; weights {byte_size(memory.weight_bytes)}"
    legal, compiled = facts.legal_and_compiled
    return [
        ("Launches", str(facts.launches), f"kernels of one inference, {besides}"),
        ("Operators", str(operators), fewer),
        ("Memory", byte_size(memory.arena_bytes), weights),
        ("Searched", f"{legal:,}", f"legal schedules; {compiled:,} compiled"),
    ]


def first_look(facts: ReportFacts) -> Html:
    """Return the problems whose distance from the bound costs most, and all that are far from it, with the reasons."""
    total = sum(each.time_us for each in facts.operators) or 1.0
    far = {name: place for place, each in enumerate(facts.distant) for name in each.names}
    together: dict[tuple[str, int], list[int]] = {}
    for number, operator in enumerate(facts.operators):
        kind = ("far", far[operator.name]) if operator.name in far else ("", operator.problem)
        together.setdefault(kind, []).append(number)
    won = {n: sum(facts.operators[i].headroom_us for i in same) for n, same in together.items()}
    ranked = sorted(together, key=lambda kind: -won[kind])
    most = [kind for place, kind in enumerate(ranked) if place < _FIRST or kind[0] == "far"]
    rows = [
        _first_row(
            facts,
            together[kind],
            won[kind] / total,
            facts.distant[kind[1]].causes if kind[0] == "far" else (),
        )
        for kind in most
    ]
    words = (
        "What each would save if it took no longer than its bound, which few reach; as a part of the sum of "
        f"all operators' times. Equal operators together. Far from it: {distant_words(facts.distant, facts.launch_us)}."
    )
    head = table_head(_FIRST_COLUMNS)
    table = tag("table", head, tag("tbody", *rows), class_="first")
    return section("first", "Where to look first", tag("p", words, class_="legend"), table)


def _first_row(facts: ReportFacts, same: list[int], saved: float, causes: Sequence[str]) -> Html:
    each = facts.operators[same[0]]
    link = tag("a", breakable(each.name), href=f"#operator-{same[0]}")
    others = tag("small", f" and {len(same) - 1} equal to it") if len(same) > 1 else ""
    times = [len(same) * us for us in (each.time_us, each.bound_us)]
    least = each.bound_us + facts.launch_us
    same_ones = " ".join(map(str, same))
    row = tag(
        "tr",
        tag("th", link, others, scope="row"),
        *(tag("td", f"{us:.2f}") for us in times),
        tag("td", f"{each.time_us / least:.1f}" if least > 0 else DASH, title=_LEAST),
        tag("td", f"{saved:.1%}"),
        tag("td", each.bound_by),
        data_ops=same_ones,
        class_="far" if causes else None,
    )
    if not causes:
        return row
    why = tag("td", f"far because: {'; '.join(causes)}", colspan=len(_FIRST_COLUMNS))
    return joined([row, tag("tr", why, data_ops=same_ones, class_="why")])


def shares(facts: ReportFacts) -> Html:
    """Return one strip: the part of the time that each operator takes."""
    pieces = [
        tag(
            "a",
            class_=kind_class(operator.kind),
            style=f"flex-grow:{operator.share:.5f}",
            href=f"#operator-{number}",
            title=f"{operator.name}: {operator.time_us:.2f} µs, {operator.share:.1%}",
            aria_label=f"{operator.name}: {operator.share:.1%}",
            data_ops=number,
        )
        for number, operator in enumerate(facts.operators)
    ]
    keys = [
        tag("li", tag("span", class_=f"dot {kind_class(kind)}"), f"{count} {kind}")
        for kind, count in Counter(each.kind for each in facts.operators).items()
    ]
    words = "Where the time is predicted to go, operator by operator"
    if facts.measured_operators:
        words = "Where the time goes: each operator alone, measured where it was"
    return tag(
        "section",
        tag("p", words, class_="legend"),
        tag("div", *pieces, class_="strip"),
        tag("ul", *keys, class_="keys"),
    )


def precision_section(facts: ReportFacts) -> Html:
    """Return what is known of the precision that was really used."""
    sentences = [tag("p", sentence) for sentence in precision_sentences(facts.precision)]
    total = sum(facts.precision.instructions.values())
    rows = [
        tag("tr", tag("th", kind, scope="row"), tag("td", f"{count} of {total}"))
        for kind, count in facts.precision.instructions.items()
    ]
    caption = tag("caption", "Tensor-core instructions in the cubins")
    table = tag("table", caption, tag("tbody", *rows), class_="narrow") if rows else ""
    return section("precision", "Precision really used", *sentences, table)


def fallback_section(facts: ReportFacts) -> Html | str:
    """Return which nodes the host executes or drives; nothing where there are none."""
    first, *steps = fallback_sentences(facts) or [""]
    items = [tag("li", each) for each in steps]
    return (
        section("fallback", "Executed or driven by the host", tag("p", first), tag("ul", *items))
        if items
        else ""
    )


def checks_section(facts: ReportFacts) -> Html:
    """Return the checks of the whole engine, and how the operators' own are to be read."""
    where = f" on {facts.checked_on}" if facts.checked_on else ""
    words = (
        f"{facts.right_operators} of {len(facts.operators)} operators were executed alone{where} and agree with a "
        "float64 reference, each element within a tolerance derived from its precision. The "
        "graph passes and the whole engine:"
    )
    said = remarks(facts.check_mode, facts.checks)
    refusal = f"This installation would not execute the plan on the CPU: {facts.cpu_refusal}"
    return section(
        "checks",
        "Checks",
        tag("p", words),
        check_items(facts.checks),
        *(tag("p", f"{each}.".capitalize()) for each in said),
        tag("p", refusal) if facts.cpu_refusal else "",
    )


def origin_section(facts: ReportFacts) -> Html:
    """Say where the plan comes from."""
    ports = [
        (f"{role} {port.name}", f"{port.dtype} {port.shape}")
        for role, group in (("input", facts.inputs), ("output", facts.outputs))
        for port in group
    ]
    entries = (
        ("model", f"{facts.model}, opset {facts.opset}"),
        ("model SHA-256", facts.model_digest),
        *ports,
        *((f"shape of {name}", shape) for name, shape in facts.shapes.items()),
        *((f"free {name}", f"tuned at {size}") for name, size in facts.free.items()),
        ("target", f"{facts.target} ({facts.arch})"),
        ("compiled by", ", ".join(facts.compilers)),
        ("skipped passes", ", ".join(facts.skipped_passes) or "none"),
        ("written by", f"wpk {facts.wpk}"),
    )
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in entries]
    return section("origin", "Origin", tag("dl", *pairs, class_="origin"))
