"""A plan in a terminal."""

from wpk.engine.plan import Plan, PlanBundle, Step
from wpk.errors import EngineError
from wpk.report.table import byte_size, format_table, microseconds


def summary(plan: Plan) -> str:
    """What was chosen, operator by operator, with the evidence, and the sums."""
    header = [
        *("operator", "template", "schedule", "bound us", "estimate us", "regs", "spills"),
        *("space", "legal", "kept", "compiled", "check"),
    ]
    rows = [_row(plan, step) for step in plan.steps]
    return f"{format_table(header, rows)}\n\n{_sums(plan)}"


def launch_count(plan: Plan) -> int:
    """Kernel launches of one inference; nothing else is ever enqueued."""
    return sum(len(step.launches) for step in plan.steps)


def _row(plan: Plan, step: Step) -> list[object]:
    evidence, choice = step.evidence, step.choice
    kernels = [plan.kernels[launch.kernel].resources for launch in step.launches]
    asked = [funnel for funnel in evidence.funnels if not funnel.refusal]
    return [
        step.operator.name,
        choice.template,
        " ".join(f"{name}={value}" for name, value in choice.schedule),
        microseconds(evidence.bound_seconds),
        microseconds(evidence.estimate_seconds),
        max(kernel.registers for kernel in kernels),
        "yes" if any(kernel.spills for kernel in kernels) else "no",
        sum(funnel.space for funnel in asked),
        sum(funnel.legal for funnel in asked),
        sum(funnel.kept for funnel in asked),
        sum(funnel.compiled for funnel in asked),
        check_word(step),
    ]


def check_word(step: Step) -> str:
    """``ok``, ``WRONG`` or ``unchecked``."""
    checks = step.evidence.checks
    if not checks:
        return "unchecked"
    return "ok" if all(check.passed for check in checks) else "WRONG"


def _sums(plan: Plan) -> str:
    bound = sum(step.evidence.bound_seconds for step in plan.steps)
    estimate = sum(step.evidence.estimate_seconds for step in plan.steps)
    free = ", ".join(f"{name} (tuned at {size})" for name, size in plan.free.items())
    memory = plan.memory
    lines = [
        f"model      {plan.provenance.model}, opset {plan.provenance.opset}",
        f"target     {plan.target} ({plan.arch}), {plan.precision}",
        *([f"free       {free}"] if free else []),
        (
            f"operators  {len(plan.steps)}, {launch_count(plan)} kernel launches, "
            f"{len(plan.kernels)} distinct kernels"
        ),
        f"bound      {microseconds(bound)} us, estimate {microseconds(estimate)} us",
        (
            f"memory     weights {byte_size(memory.weight_bytes)}, activations "
            f"{byte_size(memory.arena_bytes)} (no plan can need less than "
            f"{byte_size(memory.peak_bytes)})"
        ),
    ]
    if not plan.checks:
        return "\n".join([*lines, "checks     none: written with --check off"])
    checks = (f"{'ok   ' if c.passed else 'WRONG'}  {c.name}: {c.detail}" for c in plan.checks)
    return "\n".join([*lines, *(f"checks     {check}" for check in checks)])


def operator_source(bundle: PlanBundle, name: str) -> str:
    """The generated CUDA of one operator.

    Raises:
        EngineError: The plan has no such operator.
    """
    for step in bundle.plan.steps:
        if step.operator.name == name:
            return "\n".join(
                f"// {launch.entry} {launch.kernel}\n{bundle.sources[launch.kernel]}"
                for launch in step.launches
            )
    known = ", ".join(step.operator.name for step in bundle.plan.steps)
    raise EngineError(f"the plan has no operator {name!r}", fix=f"choose one of {known}")
