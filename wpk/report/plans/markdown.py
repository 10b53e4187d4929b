"""The report as Markdown: what people paste into issues and reviews."""

import re
from collections.abc import Sequence

from wpk.problems.signs import DASH
from wpk.report.plans.check_words import outcome_word, remarks
from wpk.report.plans.distance import distant_sentences
from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.fallback import fallback_sentences
from wpk.report.plans.measured import (
    chain_words,
    estimate_cell,
    estimate_words,
    measured_cell,
    measured_lines,
    measured_tables,
)
from wpk.report.plans.precision import precision_sentences
from wpk.report.plans.words import listed
from wpk.report.text import byte_size, visible

_MARKS = re.compile(
    r"[\\`*\[\]<>|~]"  # these are markup wherever they stand
    r"|(?<!\w)_|_(?!\w)"  # at the edge of a word
    r"|&(?=#|\w+;)"  # before what would be an entity
    r"|^(?=[-+#>=])"  # at the start, where a list, a heading or a quotation begins
)
_DIGEST = 12


def markdown_text(facts: ReportFacts) -> str:
    """Return the report: sums, operators, search, passes, checks."""
    blocks = [
        f"# {plain(facts.model)} → {plain(facts.target)}, {facts.precision.asked}",
        _sums(facts),
        "## Operators",
        "Times in µs: the bound is what nothing can beat, the estimate is predicted, not measured.",
        _operators(facts.operators),
        *_measured(facts),
        "## Search",
        _search(facts),
        "## Graph passes",
        _passes(facts),
        "## Checks",
        *_checks(facts),
    ]
    return "\n\n".join(blocks) + "\n"


_LONGEST = 1000
"""Characters of a cell: what a check says is shown whole, a hostile name is not."""


def plain(content: str) -> str:
    """Text in which nothing is markup."""
    return _MARKS.sub(r"\\\g<0>", visible(content, _LONGEST))


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _sums(facts: ReportFacts) -> str:
    memory = facts.memory
    library = f" and {facts.library_steps} library steps" if facts.library_steps else ""
    lines = [
        (
            f"{len(facts.nodes)} ONNX nodes became {len(facts.operators)} operators in "
            f"{facts.launches} launches{library}{chain_words(facts)}."
        ),
        (
            f"Bound {facts.bound_us:.2f} µs, sum of estimates {facts.estimate_us:.2f} µs "
            f"({estimate_words(facts)})."
        ),
        *(f"{line[0].upper()}{line[1:]}" for line in measured_lines(facts)),
        (
            f"Weights {byte_size(memory.weight_bytes)}, activations "
            f"{byte_size(memory.arena_bytes)} (peak {byte_size(memory.peak_bytes)})."
        ),
        *precision_sentences(facts.precision),
        *fallback_sentences(facts),
        *distant_sentences(facts.distant, facts.launch_us),
    ]
    return "\n".join(f"- {plain(line)}" for line in lines)


def _operators(operators: Sequence[OperatorFacts]) -> str:
    header = ("operator", "computes", "nodes", "schedule", "bound", "estimate", "measured")
    more = ("registers", "shared", "launches", "check", "source")
    return _table((*header, *more), [*map(_row, operators)])


def _measured(facts: ReportFacts) -> list[str]:
    """Whole engines, candidates, outcomes and searches; nothing without measuring."""
    return [
        block
        for title, header, rows in measured_tables(facts)
        for block in (f"## {title}", _table(header, [[*map(plain, row)] for row in rows]))
    ]


def _row(operator: OperatorFacts) -> list[object]:
    sources = [
        f"{launch.cubin_source[:_DIGEST]}{'' if launch.cpu_source else ' (CPU differs)'}"
        for launch in operator.launches
    ]
    return [
        plain(operator.name),
        plain(operator.work),
        plain(listed(operator.nodes)),
        plain(f"{operator.title}: {operator.schedule}"),
        f"{operator.bound_us:.2f}",
        estimate_cell(operator),
        measured_cell(operator) or "no",
        *(
            (DASH, DASH, DASH)
            if not operator.launches
            else (operator.registers, byte_size(operator.shared_bytes), len(operator.launches))
        ),
        operator.state,
        ", ".join(sources) or DASH,
    ]


def _search(facts: ReportFacts) -> str:
    rows = [
        [
            plain(problem.work),
            len(problem.operators),
            plain(funnel.template),
            *(
                [plain(f"refused: {funnel.refusal}"), "", "", ""]
                if funnel.refusal
                else [funnel.space, funnel.legal, funnel.kept, funnel.compiled]
            ),
        ]
        for problem in facts.problems
        for funnel in problem.funnels
    ]
    header = ("problem", "operators", "template", "space", "legal", "kept", "compiled")
    return _table(header, rows)


def _passes(facts: ReportFacts) -> str:
    rows = []
    for each in facts.passes:
        if not (each.rewritten or each.refusals or each.skipped):
            continue
        reasons = dict.fromkeys(refusal.reason for refusal in each.refusals)
        left = f"{len(each.refusals)}: {'; '.join(reasons)}" if each.refusals else ""
        done = "skipped" if each.skipped else each.rewritten
        rows.append([plain(each.name), done, plain(left)])
    return _table(("pass", "rewrites", "left alone"), rows)


def _checks(facts: ReportFacts) -> list[str]:
    if not facts.checks:
        return ["Not checked as a whole."]
    rows = [
        [outcome_word(check.outcome), plain(check.name), plain(check.detail)]
        for check in facts.checks
    ]
    said = [plain(f"{each}.".capitalize()) for each in remarks(facts.check_mode, facts.checks)]
    return [*said, _table(("", "check", "numbers"), rows)]
