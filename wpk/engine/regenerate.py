"""Generate a plan's kernels again with the installed headers, and refuse any that differ.

The CPU never compiles what a plan file carries: it executes what this installation generates from
template, problem and schedule, where the template says that it carries the problem and that the schedule
is legal. One digest proves that it is the source of the plan's cubin.
"""

import struct
from dataclasses import replace
from typing import Any

import numpy as np

from wpk.errors import PlanError, ScheduleError
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.plan import Plan, Step
from wpk.schedules import EARLY, TEMPLATE_OF, Schedule, ScheduleTemplate, packed_shape
from wpk.targets import Target, largest_target
from wpk.version import VERSION

_MAX_PARAMETER = 2**31 - 1

# What arithmetic on numbers that nobody foresaw may end in.
_NONSENSE = (
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    ScheduleError,
    struct.error,
)


def regenerate(plan: Plan) -> dict[str, KernelSource]:
    """Return the source of every kernel, by digest.

    Raises:
        PlanError: A template is unknown or has another version, does not carry its problem or
            schedule, or generates another kernel; or a weight is not packed as its kernel reads it.
    """
    sources: dict[str, KernelSource] = {}
    target = largest_target(plan.arch)
    with np.errstate(all="ignore"):  # numbers that nobody foresaw are refused with words
        for index, step in enumerate(plan.steps):
            if step.image is None and step.fallback is None:
                sources |= _GeneratedStep(plan, step, index, target).sources
    missing = sorted(set(plan.kernels) - set(sources))
    if missing:
        raise _differs(plan, f"plan.kernels.{missing[0][:12]}", "no step launches it")
    return sources


class _GeneratedStep:
    """One step whose kernels were generated again.

    Attributes:
        sources: Its kernels, by digest.
    """

    def __init__(self, plan: Plan, step: Step, index: int, target: Target) -> None:
        self._plan, self._step, self._path = plan, step, f"plan.steps[{index}]"
        template = self._template()
        schedule = self._schedule(template, target)
        self._check_weight(template, schedule)
        launches: tuple[Launch, ...]
        try:
            made = template.instantiate(step.operator.problem, schedule)
            self.sources = {source.digest: source for source in made}
            launches = template.launches(step.operator.problem, schedule)
        except _NONSENSE as error:
            raise self._wrong(
                "candidate.configuration", f"gives no kernel: {_words(error)}"
            ) from error
        if launches != step.launches:
            claimed = sorted({launch.kernel[:12] for launch in step.launches})
            raise self._wrong(
                "launches",
                f"operator '{step.operator.name}' has kernels {', '.join(claimed)}; installed "
                f"headers give {', '.join(digest[:12] for digest in sorted(self.sources))}",
            )

    def _template(self) -> ScheduleTemplate[Any, Any]:
        maker, problem = self._step.candidate.maker, self._step.operator.problem
        template = TEMPLATE_OF.get(maker.name)
        if template is None or not isinstance(problem, template.problem_type):
            raise self._wrong("candidate.maker.name", f"{maker.name!r} is unknown here")
        if template.maker != maker:
            raise self._wrong(
                "candidate.maker.version",
                f"{maker.name} {maker.version}, installed is {template.version}",
            )
        return template

    def _schedule(self, template: ScheduleTemplate[Any, Any], target: Target) -> Schedule:
        """Return the schedule if the template carries the problem and calls the schedule legal."""
        problem, configuration = self._step.operator.problem, self._step.candidate.configuration
        for name, value in configuration:
            if not 0 <= value <= _MAX_PARAMETER:
                raise self._wrong("candidate.configuration", f"{name}={value} is out of range")
        if len(dict(configuration)) != len(configuration):
            raise self._wrong("candidate.configuration", "a parameter stands twice")
        try:
            schedule: Schedule = template.schedule_from(configuration)
        except TypeError as error:
            raise self._wrong("candidate.configuration", str(error)) from error
        try:
            reason = template.why_not(problem, target)
        except _NONSENSE as error:
            reason = _words(error)
        if reason is not None:
            raise self._wrong("operator.problem", f"{template.name} does not carry it: {reason}")
        try:
            reason = _why_unlisted(template, problem, schedule, target)
            reason = reason or template.why_illegal(problem, schedule, target)
        except _NONSENSE as error:
            reason = _words(error)
        if reason is not None:
            raise self._wrong("candidate.configuration", f"is illegal: {reason}")
        return schedule

    def _check_weight(self, template: ScheduleTemplate[Any, Any], schedule: Schedule) -> None:
        """Check that a constant operand is what the schedule's packing makes of the problem's constant."""
        step, problem = self._step, self._step.operator.problem
        try:
            packing = template.packing(problem, schedule)
            if packing is None or problem.matrix_precision is None:  # only factors are packed
                return
            dtype = problem.matrix_precision.storage
            shape = packed_shape(packing, problem, dtype.bytes)
        except _NONSENSE as error:
            raise self._wrong(
                "candidate.configuration", f"gives no packing: {_words(error)}"
            ) from error
        weight = self._plan.weights.get(step.inputs[1])
        seen = None if weight is None else (weight.packing, weight.dtype, weight.shape)
        if seen != (packing, dtype, shape):
            raise self._wrong(
                "inputs[1]",
                f"{seen or 'no weight'}; the kernel reads {(packing, dtype, shape)}",
            )

    def _wrong(self, field: str, what: str) -> PlanError:
        return _differs(self._plan, f"{self._path}.{field}", what)


def _why_unlisted(
    template: ScheduleTemplate[Any, Any], problem: Any, schedule: Schedule, target: Target
) -> str | None:
    """Say which parameter has a value that no search tries; return None if there is none.

    What is tried may depend on how many multiprocessors a GPU has, which is not known here: such
    parameters are left to the template's limits.
    """
    counts = {target.sm_count, *(1 << bit for bit in range(target.sm_count.bit_length()))}
    axes = [template.axes(problem, replace(target, sm_count=count)) for count in counts]
    for name, value in schedule.parameters():
        tried = axes[0][name]
        is_fixed = name != EARLY and all(each[name] == tried for each in axes)
        if is_fixed and value not in tried:
            return f"{name}={value} is none of {', '.join(map(str, tried[:12]))}"
    return None


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _differs(plan: Plan, path: str, what: str) -> PlanError:
    return PlanError(
        f"plan field {path}: {what} (written by wpk {plan.wpk}, this is {VERSION})",
        fix="write the plan again with this version (wpk optimize), or install the one that wrote it",
    )
