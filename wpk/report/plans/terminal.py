"""A plan in a terminal."""

from wpk.errors import EngineError
from wpk.plan import Plan, PlanBundle
from wpk.problems.signs import DASH
from wpk.report.blocks import Block, Facts, Table
from wpk.report.plans.check_words import mode_words, outcome_word, remarks
from wpk.report.plans.distance import distant_lines
from wpk.report.plans.facts import OperatorFacts, ProblemFacts, ReportFacts
from wpk.report.plans.fallback import fallback_sentences
from wpk.report.plans.gather import gather
from wpk.report.plans.measured import (
    chain_words,
    estimate_cell,
    estimate_words,
    measured_cell,
    measured_lines,
    measured_tables,
)
from wpk.report.plans.precision import precision_sentences
from wpk.report.text import byte_size, visible

_DIGEST = 12
_NAME = 32
_WORK = 44
_CELL = 200
_LONGEST_SHOWN = 8
"""Operators in the short summary: of most networks, half of the time."""


def summary(plan: Plan | PlanBundle) -> list[Block]:
    """Say what was chosen, operator by operator, how each space was narrowed, and the sums."""
    facts = gather(plan)
    return [_operators(facts), _search(facts), *_measured(facts), _sums(facts)]


def short_summary(plan: Plan | PlanBundle) -> list[Block]:
    """Say what takes the time, and the sums."""
    facts = gather(plan)
    return [_longest(facts), _sums(facts)]


def _longest(facts: ReportFacts) -> Block:
    """The operators that take the most time, as measured or else as estimated."""
    times = "measured" if facts.measured_operators else "estimate"
    longest = sorted(facts.operators, key=lambda each: -each.time_us)[:_LONGEST_SHOWN]
    rows = [
        [
            visible(each.name, _NAME),
            visible(each.work, _WORK),
            each.title,
            f"{each.time_us:.2f}",
            f"{each.share:.0%}",
            f"{each.bound_us:.2f}",
            each.state,
        ]
        for each in longest
    ]
    others = len(facts.operators) - len(longest)
    title = f"where the time goes ({others} shorter operators: wpk inspect PLAN)" if others else ""
    header = ["operator", "computes", "kernel", f"{times} µs", "share", "bound µs", "check"]
    return Table(header, rows, ("kernel", "bound µs"), title)


def _operators(facts: ReportFacts) -> Block:
    header = ["operator", "computes", "schedule", "bound µs", "estimate µs"]
    header += ["measured µs"] if facts.measured_operators else []
    header += ["registers", "shared", "launches", "check", "source", "same on CPU"]
    rows = [_row(operator, measured=bool(facts.measured_operators)) for operator in facts.operators]
    secondary = ("source", "same on CPU", "launches", "registers", "shared", "schedule", "bound µs")
    return Table(header, rows, secondary, "operators, in the order of their execution")


def _measured(facts: ReportFacts) -> list[Block]:
    """Whole engines, candidates, outcomes and searches; nothing without measuring."""
    return [
        Table(header, [[visible(cell, _CELL) for cell in row] for row in rows], (), title.lower())
        for title, header, rows in measured_tables(facts)
    ]


def _row(operator: OperatorFacts, *, measured: bool) -> list[object]:
    spills = f"+{operator.spill_bytes} B spilled" if operator.spill_bytes else ""
    cubin = ",".join(launch.cubin_source[:_DIGEST] for launch in operator.launches)
    same = all(launch.cpu_source == launch.cubin_source for launch in operator.launches)
    return [
        visible(operator.name, _NAME),
        visible(operator.work, _WORK),
        f"{operator.title}: {operator.schedule}",
        f"{operator.bound_us:.2f}",
        estimate_cell(operator),
        *([measured_cell(operator)] if measured else []),
        *(
            (DASH, DASH, DASH)
            if not operator.launches
            else (
                f"{operator.registers}{spills}",
                byte_size(operator.shared_bytes),
                len(operator.launches),
            )
        ),
        operator.state,
        *((DASH, DASH) if not operator.launches else (cubin, "yes" if same else "NO")),
    ]


def _search(facts: ReportFacts) -> Block:
    header = ["problem", "operators", "templates", "space", "legal", "kept", "compiled"]
    rows = [_problem(problem) for problem in facts.problems]
    title = "schedules of each problem: all, legal, kept by the models, compiled (* chosen)"
    return Table(header, rows, ("space", "kept", "compiled", "legal"), title)


def _problem(problem: ProblemFacts) -> list[object]:
    """Sums over the templates that were asked; Markdown and the web page show each."""
    asked = [funnel for funnel in problem.funnels if not funnel.refusal]
    return [
        visible(problem.work, _WORK),
        len(problem.operators),
        " ".join(f.template + "*" * (f.template in problem.chosen) for f in asked),
        sum(funnel.space for funnel in asked),
        sum(funnel.legal for funnel in asked),
        sum(funnel.kept for funnel in asked),
        sum(funnel.compiled for funnel in asked),
    ]


def _sums(facts: ReportFacts) -> Block:
    memory = facts.memory
    free = ", ".join(f"{visible(n)} (tuned at {size})" for n, size in facts.free.items())
    legal, compiled = facts.legal_and_compiled
    library = f", {facts.library_steps} library steps" if facts.library_steps else ""
    lines = [
        ("model", f"{visible(facts.model)}, opset {facts.opset}, {len(facts.nodes)} nodes"),
        ("target", f"{visible(facts.target)} ({facts.arch}), {facts.precision.asked}"),
        *([("free", free)] if free else []),
        (
            "operators",
            f"{len(facts.operators)}, {facts.launches} kernel launches{library}{chain_words(facts)}",
        ),
        (
            "time",
            (
                f"bound {facts.bound_us:.2f} µs (nothing can beat it), estimate "
                f"{facts.estimate_us:.2f} µs ({estimate_words(facts)})"
            ),
        ),
        *(("time", line) for line in measured_lines(facts)),
        (
            "memory",
            (
                f"weights {byte_size(memory.weight_bytes)}, activations "
                f"{byte_size(memory.arena_bytes)} (no plan can need less than "
                f"{byte_size(memory.peak_bytes)})"
            ),
        ),
        (
            "search",
            f"{len(facts.problems)} distinct problems, {legal} legal schedules, {compiled} compiled",
        ),
        *(("precision", sentence) for sentence in precision_sentences(facts.precision)),
        *(("fallback", sentence) for sentence in fallback_sentences(facts)),
        *distant_lines(facts.distant, facts.launch_us),
        *_spills(facts),
        *_checks(facts),
    ]
    return Facts(lines)


def _spills(facts: ReportFacts) -> list[tuple[str, str]]:
    spilling = [visible(o.name) for o in facts.operators if o.spill_bytes]
    if not spilling:
        return []
    words = f"registers spill in {', '.join(spilling)}: none of the best is without spills"
    return [("warning", words)]


def _checks(facts: ReportFacts) -> list[tuple[str, str]]:
    where = f" on {visible(facts.checked_on)}" if facts.checked_on else ""
    count = f"{facts.right_operators} of {len(facts.operators)}"
    lines = [("checks", f"{count} operators executed{where} and right")]
    if not facts.checks:
        left_out = mode_words(facts.check_mode)
        return [*lines, ("checks", f"the whole engine was not compared: {left_out}")]
    lines += [
        ("checks", f"{outcome_word(check.outcome)}  {check.name}: {check.detail}")
        for check in facts.checks
    ]
    return lines + [("checks", said) for said in remarks(facts.check_mode, facts.checks)]


def operator_source(bundle: PlanBundle, name: str) -> str:
    """Return the generated CUDA of one operator.

    Raises:
        EngineError: The plan has no such operator, or no kernel computes it.
    """
    for step in bundle.plan.steps:
        if step.operator.name == name:
            if not step.launches:
                raise EngineError(
                    f"{step.candidate.maker.name} computes {name!r}: it has no generated source",
                    fix="ask for an operator that the plan's table shows with a source",
                )
            return "\n".join(
                f"// {launch.entry} {launch.kernel}\n{bundle.sources[launch.kernel]}"
                for launch in step.launches
            )
    known = ", ".join(step.operator.name for step in bundle.plan.steps)
    raise EngineError(f"the plan has no operator {name!r}", fix=f"choose one of {known}")
