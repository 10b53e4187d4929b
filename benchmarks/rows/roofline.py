"""How near each template comes to what the GPU can do, and what its kernels cost to compile and to run.

The kernel of each size is the fastest of the template that the tuner tried, each correct before it was
timed; whether another template beats it does not matter here, and rivals are left out where they can be.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures
from rows.roofline_models import SIZES, STUDIES
from rows.trials import FILE
from wpk.build import Compilation, CompilePool, KernelCache
from wpk.device import noise_band
from wpk.performance.bound import Bound, bound
from wpk.plan.plan import Plan, Step
from wpk.plan.plan_file import read_plan
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.store.key import problem_digest
from wpk.search.store.records import TrialRecord
from wpk.search.store.rows import read_trials
from wpk.search.store.store import TuningStore
from wpk.targets.registry import find_target
from wpk.targets.target import Target
from wpk.trial import Status

GOALS = (
    Goal("seconds to compile the slowest kernel", 1.5, at_most=True),
    Goal("bytes that a thread spills", 0.0, at_most=True),
)

BUDGET = "30s"
"""Of one template: its operators are joined as passes join them, and nothing else competes."""


@dataclass(frozen=True)
class Point:
    """The best of a template for one problem, with what the compiler says of its kernels.

    Attributes:
        problem: In words.
        schedule: Names and values.
        regime: What the caches held: ``warm`` or ``cold``.
        median_seconds: Of the samples.
        low_seconds: The median lies above this, with a probability of 95 %.
        high_seconds: And below this.
        bytes: Distinct bytes touched.
        operations: Operations needed, padding left out.
        bound_seconds: What nothing can beat.
        limiter: What limits it.
        registers: Of a thread; the most of all its kernels, as the next three.
        spilled_bytes: That a thread stores and loads for want of registers.
        shared_bytes: Of a block, declared in the kernel or asked for at its launch.
        compile_seconds: From source to machine code.
    """

    problem: str
    schedule: str
    regime: str
    median_seconds: float
    low_seconds: float
    high_seconds: float
    bytes: int
    operations: int
    bound_seconds: float
    limiter: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    compile_seconds: float

    @property
    def flops(self) -> float:
        """Operations a second."""
        return self.operations / self.median_seconds

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes / self.median_seconds

    @property
    def of_bound(self) -> float:
        """Part of the speed that the bound allows."""
        return self.bound_seconds / self.median_seconds


def rows() -> list[Row]:
    """One a template."""
    claim = "achieved operations and bytes a second at three sizes, registers, spills, compile time"
    return [
        Row(f"roofline.{template}", claim, partial(_measure, template), goals=GOALS)
        for template in STUDIES
    ]


def _measure(template: str, context: Context) -> Outcome:
    model, plan = context.folder / "roofline.onnx", context.folder / "measured.plan"
    study = STUDIES[template]
    study.write(model)
    what = ["optimize", model, "-o", plan, "--precision", study.precision, "--forms", "fixed"]
    how = ["--effort", context.effort, "--budget", BUDGET, "--cache", context.store]
    without = [word for rival in study.left_out for word in ("--skip-template", rival)]
    form = [word for key in study.changed for word in ("--change-site", key)]
    context.wpk(*what, *how, *without, *form)
    written = read_plan(plan).plan
    points = {}
    for size in SIZES:
        step = step_of(written, size)
        trial = best_trial(context.store / FILE, template, step, written)
        points[size] = point(step.operator.problem, trial, written, context.folder / "compiled")
    return judge(points, find_target(written.target))


def step_of(plan: Plan, size: str) -> Step:
    """The step that computes the operator of a size.

    Raises:
        RowError: There is none, or there are several.
    """
    found = [step for step in plan.steps if size in step.operator.nodes]
    if len(found) != 1:
        raise RowError(f"{len(found)} operators compute {size!r}")
    return found[0]


def best_trial(store: Path, template: str, step: Step, plan: Plan) -> TrialRecord:
    """The fastest trial of a template that ran correctly, in the regime that decided.

    Raises:
        RowError: None ran.
    """
    if step.evidence.measurement is None:
        raise RowError(f"{step.operator.name} was not measured")
    version = str(TEMPLATE_OF[template].version)
    where = {
        "problem": problem_digest(step.operator.problem),
        "template": template,
        "version": version,
        "target": plan.target,
        "status": Status.OK.value,
        "regime": step.evidence.measurement.regime,
    }
    with TuningStore(store) as opened, opened.reading() as connection:
        trials = read_trials(connection, **where)
    if not trials:
        raise RowError(f"no schedule of {template} ran for {step.operator.name}")
    return min(trials, key=lambda trial: median(trial.seconds))


def point(problem: Problem, trial: TrialRecord, plan: Plan, folder: Path) -> Point:
    """A trial with the costs of its kernels, compiled afresh into a folder.

    Raises:
        RowError: They do not compile.
    """
    template = TEMPLATE_OF[trial.template]
    schedule = template.schedule_from(trial.schedule)
    sources = template.instantiate(problem, schedule)
    with CompilePool(plan.arch, cache=KernelCache(folder), workers=1) as pool:
        compiled = list(pool.compile(sources))
    shared = max(launch.shared_bytes for launch in template.launches(problem, schedule))
    low, high = noise_band(trial.seconds)
    limit: Bound = bound(problem, find_target(plan.target))
    return Point(
        problem=problem.words(),
        schedule=str(schedule),
        regime="" if trial.regime is None else trial.regime.value,
        median_seconds=median(trial.seconds),
        low_seconds=low,
        high_seconds=high,
        bytes=limit.bytes,
        operations=limit.operations,
        bound_seconds=limit.seconds,
        limiter=limit.limiter,
        **_costs(compiled, shared),
    )


def _costs(compiled: list[Compilation], dynamic_bytes: int) -> dict[str, Any]:
    kernels = [each.kernel for each in compiled if each.kernel is not None]
    if len(kernels) < len(compiled):
        raise RowError("; ".join(str(each.error) for each in compiled if each.error is not None))
    resources = [kernel.resources for kernel in kernels]
    return {
        "registers": max(each.registers for each in resources),
        "spilled_bytes": max(e.spill_store_bytes + e.spill_load_bytes for e in resources),
        "shared_bytes": dynamic_bytes + max(each.static_shared_bytes for each in resources),
        "compile_seconds": sum(each.seconds for each in compiled),
    }


def judge(points: dict[str, Point], target: Target) -> Outcome:
    """Hold a template's points to what kernels may cost; how fast they are is told, not judged."""
    slowest = max(each.compile_seconds for each in points.values())
    spilled = max(each.spilled_bytes for each in points.values())
    judged = [goal.judged(value) for goal, value in zip(GOALS, (slowest, spilled), strict=True)]
    told = ", ".join(
        f"{size} {microseconds(each.median_seconds)} ({each.of_bound:.0%} of the bound)"
        for size, each in points.items()
    )
    figures = {
        "sizes": {
            size: asdict(each)
            | {"flops": each.flops, "bandwidth": each.bandwidth, "of_bound": each.of_bound}
            for size, each in points.items()
        },
        "target": target.name,
    }
    summary = f"{told}; compiled in {slowest:.2f} s at most, {spilled} bytes spilled"
    return Outcome(all(each.reached for each in judged), summary, figures | as_figures(judged))
