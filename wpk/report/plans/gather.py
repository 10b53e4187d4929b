"""Gather what a report says from a plan, and from nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from wpk.dims import DimExpr, DimNode
from wpk.engine import regenerate
from wpk.errors import PlanError
from wpk.launch import Launch
from wpk.plan import KeptOutput, Plan, PlanBundle, Port, Step, order_of
from wpk.problems import Problem
from wpk.problems.signs import TIMES
from wpk.report.plans.bodies import bodies_of
from wpk.report.plans.check_words import state_word
from wpk.report.plans.contest import contest_of, speedup_over_library, why_words
from wpk.report.plans.distance import distant_operators, launch_floor
from wpk.report.plans.facts import LaunchFacts, OperatorFacts, PortFacts, ProblemFacts, ReportFacts
from wpk.report.plans.memory import memory_of
from wpk.report.plans.precision import precision_of
from wpk.report.plans.tracing import producers_of, trace_nodes
from wpk.report.plans.words import schedule_words
from wpk.shape_ranges import range_words


def gather(subject: Plan | PlanBundle) -> ReportFacts:
    """Return the facts of a plan; generated sources only where a bundle has them."""
    plan = subject.plan if isinstance(subject, PlanBundle) else subject
    sources = subject.sources if isinstance(subject, PlanBundle) else {}
    cpu, refusal = _cpu_sources(plan)
    problems = _steps_by_problem(plan)
    operators = _operators(plan, cpu, list(problems))
    origin, order = plan.provenance, order_of(plan)
    return ReportFacts(
        wpk=plan.wpk,
        model=origin.model,
        model_digest=origin.model_digest,
        opset=origin.opset,
        target=plan.target,
        arch=plan.arch,
        compilers=tuple(sorted({kernel.compiler for kernel in plan.kernels.values()})),
        shapes={name: range_words(given) for name, given in origin.shapes.items()},
        free=plan.free,
        skipped_passes=origin.skipped_passes,
        inputs=tuple(map(_port, plan.inputs)),
        outputs=(*map(_port, plan.outputs), *map(_kept, plan.kept_outputs)),
        bound_us=order.longest_chain([operator.bound_us for operator in operators]),
        estimate_us=sum(operator.estimate_us or 0.0 for operator in operators),
        measurement=plan.measurement,
        forms=plan.forms,
        contest=contest_of([operator.measurement for operator in operators]),
        launches=sum(len(operator.launches) for operator in operators),
        chain=round(order.longest_chain([1] * len(operators))),
        library_steps=sum(step.image is not None for step in plan.steps),
        operators=operators,
        problems=tuple(_problem(*each) for each in problems.items()),
        nodes=trace_nodes(plan),
        passes=origin.passes,
        memory=memory_of(plan, order),
        precision=precision_of(plan),
        checks=plan.checks,
        check_mode=plan.check_mode,
        checked_on="the CPU" if plan.checked_on.startswith("cpu") else plan.checked_on,
        cpu_refusal=refusal,
        sources=dict(sources),
        bodies=tuple(bodies_of(subject)) if isinstance(subject, PlanBundle) else (),
        distant=distant_operators(plan, [each.time_us * 1e-6 or None for each in operators]),
        launch_us=launch_floor(plan) * 1e6,
    )


def _cpu_sources(plan: Plan) -> tuple[frozenset[str], str]:
    """Digests of what the CPU device would execute, and why it would refuse the plan, if so."""
    try:
        return frozenset(regenerate(plan)), ""
    except PlanError as error:
        return frozenset(), error.what


def _steps_by_problem(plan: Plan) -> dict[Problem, list[Step]]:
    steps: dict[Problem, list[Step]] = {}
    for step in plan.steps:
        steps.setdefault(step.operator.problem, []).append(step)
    return steps


def _operators(
    plan: Plan, cpu: frozenset[str], problems: Sequence[Problem]
) -> tuple[OperatorFacts, ...]:
    numbers = {problem: number for number, problem in enumerate(problems)}
    facts = [
        _operator(plan, step, cpu, numbers[step.operator.problem], reads)
        for step, reads in zip(plan.steps, producers_of(plan), strict=True)
    ]
    total = sum(each.time_us for each in facts)
    return tuple(replace(each, share=each.time_us / total if total > 0 else 0.0) for each in facts)


def _operator(
    plan: Plan, step: Step, cpu: frozenset[str], problem: int, reads: tuple[int, ...]
) -> OperatorFacts:
    """Return the facts of a step, except its share of the time."""
    operator, evidence = step.operator, step.evidence
    estimate, measured = evidence.estimate_seconds, evidence.measurement
    whole = plan.measurement
    undone = whole is not None and operator.name in whole.undone
    engine = "" if whole is None else whole.chosen
    return OperatorFacts(
        name=operator.name,
        kind=operator.problem.family.value,
        work=operator.problem.words(),
        note=operator.note,
        nodes=operator.nodes,
        inputs=step.inputs,
        outputs=operator.outputs,
        reads=reads,
        problem=problem,
        candidate=step.candidate,
        title=step.candidate.maker.title,
        schedule=schedule_words(step.candidate.configuration),
        score=evidence.score,
        bound_us=evidence.bound_seconds * 1e6,
        bound_by=evidence.bound_by,
        estimate_us=None if estimate is None else estimate * 1e6,
        measurement=measured,
        in_engine_seconds=evidence.in_engine_seconds,
        over_library=None if measured is None else speedup_over_library(measured),
        why="" if measured is None else why_words(measured, undone=undone, engine=engine),
        share=0.0,
        launches=tuple(_launch(plan, launch, cpu) for launch in step.launches),
        state=state_word(evidence.checks),
        checks=evidence.checks,
    )


def _launch(plan: Plan, launch: Launch, cpu: frozenset[str]) -> LaunchFacts:
    kernel = plan.kernels[launch.kernel]
    resources = kernel.resources
    return LaunchFacts(
        entry=launch.entry,
        cubin_source=kernel.digest,
        cpu_source=kernel.digest if kernel.digest in cpu else "",
        grid=TIMES.join(map(_dim, launch.grid)),
        block=TIMES.join(map(str, launch.block)),
        shared_bytes=resources.static_shared_bytes + launch.shared_bytes,
        registers=resources.registers,
        spill_bytes=resources.spill_store_bytes + resources.spill_load_bytes,
        tensor_core_instructions=kernel.tensor_core_instructions,
    )


def _dim(expression: DimExpr) -> str:
    """A dimension expression as a person reads it."""
    if not isinstance(expression, DimNode):
        return str(expression)
    left, right = _dim(expression.left), _dim(expression.right)
    if expression.operation == "ceil_div":
        return f"⌈{left}/{right}⌉"
    if expression.operation == "prod":
        return f"{left}·{right}"
    return f"{expression.operation}({left}, {right})"


def _problem(problem: Problem, steps: Sequence[Step]) -> ProblemFacts:
    evidence = [step.evidence for step in steps]
    return ProblemFacts(
        work=problem.words(),
        kind=problem.family.value,
        operators=tuple(step.operator.name for step in steps),
        chosen=tuple(dict.fromkeys(step.candidate.maker.name for step in steps)),
        bound_us=evidence[0].bound_seconds * 1e6,
        funnels=evidence[0].funnels,
        measurement=next((e.measurement for e in evidence if e.measurement is not None), None),
    )


def _kept(output: KeptOutput) -> PortFacts:
    return PortFacts(output.name, output.dtype.value, "known after a run")


def _port(port: Port) -> PortFacts:
    return PortFacts(port.name, port.dtype.value, TIMES.join(map(_dim, port.shape)) or "scalar")
