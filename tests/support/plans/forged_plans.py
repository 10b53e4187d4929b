"""Plans changed by somebody who knows how they are made: whatever has a digest gets a new one."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.plan.container import DIGEST, PLAN, member_of, write_container
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.plan_file import digest_line
from wpk.schedules.registry import TEMPLATE_OF

Parameters = dict[str, int]


def members(path: Path) -> dict[str, bytes]:
    """Everything that a plan file holds."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, contents: dict[str, bytes]) -> None:
    """Write a plan file with these members, its digest made new where it has one."""
    if DIGEST in contents and PLAN in contents:
        contents = {**contents, DIGEST: digest_line(contents[PLAN])}
    write_container(path, {name: member_of(data) for name, data in contents.items()})


def forged(
    bundle: PlanBundle,
    index: int,
    problem: Callable[[Any], Any] | None = None,
    **schedule: int,
) -> PlanBundle:
    """The plan with another problem or schedule in one step, and the launches and kernels of these.

    Args:
        bundle: A plan.
        index: Of the step.
        problem: From the step's problem to the other one.
        schedule: Parameters to change.
    """
    plan = bundle.plan
    step = plan.steps[index]
    operator = step.operator
    if problem is not None:
        operator = replace(operator, problem=problem(operator.problem))
    parameters = tuple({**dict(step.candidate.configuration), **schedule}.items())
    candidate = replace(step.candidate, configuration=parameters)
    step = replace(step, operator=operator, candidate=candidate)
    return _with_kernels(bundle, index, step)


def _with_kernels(bundle: PlanBundle, index: int, step: Step) -> PlanBundle:
    """The kernels that templates make of the changed step, with the machine code of the old ones."""
    plan, candidate = bundle.plan, step.candidate
    template = TEMPLATE_OF[candidate.maker.name]
    schedule = template.schedule_from(candidate.configuration)
    launches = template.launches(step.operator.problem, schedule)
    (source,) = template.instantiate(step.operator.problem, schedule)
    (before,) = {launch.kernel for launch in plan.steps[index].launches}
    old = plan.kernels[before]
    kernel = replace(
        old,
        digest=source.digest,
        entry=source.entry,
        source_digest=hashlib.sha256(source.text.encode()).hexdigest(),
    )
    steps = list(plan.steps)
    steps[index] = replace(step, launches=launches)
    used = {launch.kernel for each in steps for launch in each.launches}
    kernels = {**plan.kernels, source.digest: kernel}
    cubins = {**bundle.cubins, source.digest: bundle.cubins[before]}
    sources = {**bundle.sources, source.digest: source.text}
    return replace(
        bundle,
        plan=replace(
            plan, steps=tuple(steps), kernels={n: k for n, k in kernels.items() if n in used}
        ),
        cubins={name: data for name, data in cubins.items() if name in used},
        sources={name: text for name, text in sources.items() if name in used},
    )


def with_weight(bundle: PlanBundle, name: str, array: NDArray[Any]) -> PlanBundle:
    """The plan with another array in place of a weight."""
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    weight = replace(bundle.plan.weights[name], shape=array.shape, digest=digest)
    plan = replace(bundle.plan, weights={**bundle.plan.weights, name: weight})
    return replace(bundle, plan=plan, weights={**bundle.weights, name: array})
