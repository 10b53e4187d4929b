"""Generate a plan's kernels again with the installed headers, and refuse any that differ.

The CPU never compiles what a plan file carries: it executes what this installation generates from
template, problem and schedule. One digest proves that it is the source of the plan's cubin.
"""

import wpk
from wpk.errors import PlanError
from wpk.kernel_source import KernelSource
from wpk.plans.plan import Choice, Plan, Step
from wpk.schedules.registry import TEMPLATE_OF


def regenerate(plan: Plan) -> dict[str, KernelSource]:
    """The source of every kernel, by digest.

    Raises:
        PlanError: A template is unknown or has another version, or generates another kernel.
    """
    sources: dict[str, KernelSource] = {}
    for index, step in enumerate(plan.steps):
        if isinstance(step.choice, Choice):
            sources |= _regenerate_step(plan, step, step.choice, f"plan.steps[{index}]")
    return sources


def _regenerate_step(plan: Plan, step: Step, choice: Choice, path: str) -> dict[str, KernelSource]:
    template = TEMPLATE_OF.get(choice.template)
    if template is None or not isinstance(step.operator.problem, template.problem_type):
        raise _differs(plan, f"{path}.choice.template", f"{choice.template!r} is unknown here")
    if template.version != choice.version:
        raise _differs(
            plan,
            f"{path}.choice.version",
            f"{choice.template} {choice.version}, installed is {template.version}",
        )
    try:
        schedule = template.schedule_from(choice.schedule)
    except TypeError as error:
        raise _differs(plan, f"{path}.choice.schedule", str(error)) from error
    sources = {s.digest: s for s in template.instantiate(step.operator.problem, schedule)}
    if template.launches(step.operator.problem, schedule) != step.launches:
        claimed = sorted({launch.kernel[:12] for launch in step.launches})
        raise _differs(
            plan,
            f"{path}.launches",
            f"operator '{step.operator.name}' has kernels {', '.join(claimed)}; installed headers "
            f"give {', '.join(digest[:12] for digest in sorted(sources))}",
        )
    return sources


def _differs(plan: Plan, path: str, what: str) -> PlanError:
    return PlanError(
        f"plan field {path}: {what} (written by wpk {plan.wpk}, this is {wpk.__version__})",
        fix="write the plan again with this version (wpk optimize), or install the one that wrote it",
    )
