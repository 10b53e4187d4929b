"""Cases for a GPU: the problems of hand-written networks with several schedules of every template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.networks import handwritten
from wpk.assembly.assemble import Setting, assemble
from wpk.assembly.implementation import generated
from wpk.build import CompilePool, KernelCache
from wpk.candidate import Candidate
from wpk.dtypes import Precision
from wpk.execution import KernelImage
from wpk.graph_passes import every_site
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.provenance import Provenance
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.schedules.template import Schedule, ScheduleTemplate
from wpk.search.models.static_search import Finalist, Shortlists, finalist_of, shortlist_all
from wpk.target_features import TargetFeatures
from wpk.targets.registry import find_target

H200 = find_target("h200")

Columns = Mapping[str, NDArray[np.integer]]
"""A template's legal space: the values of each axis, a row a schedule."""

Rows = Callable[[Columns], Set[int]]
"""Chooses rows of a space."""


@dataclass(frozen=True)
class Case:
    """One step: a problem with one schedule.

    Attributes:
        bundle: The plan that it is a step of.
        step: The step.
    """

    bundle: PlanBundle
    step: Step

    @property
    def template(self) -> str:
        """Name of the schedule's template."""
        return self.step.candidate.maker.name

    def __str__(self) -> str:
        """``conv_mma of conv_relu_0 in grouped_dilated: block_m=64 ...``."""
        schedule = " ".join(f"{name}={value}" for name, value in self.step.candidate.configuration)
        model = self.bundle.plan.provenance.model
        return f"{self.template} of {self.step.operator.name} in {model}: {schedule}"


def picked(
    network: str, precision: Precision, rows: Rows, folder: Path
) -> tuple[LoweredModel, dict[Problem, list[Finalist]]]:
    """A hand-written network, and some schedules of every template for each of its problems."""
    joined = (every_site("fuse-feed-forwards"),) if network in handwritten.FEED_FORWARDS else ()
    path = handwritten.write(network, folder)
    lowered = lower_model(
        path, {}, precision, changed=joined, features=TargetFeatures(warpgroups=True)
    )
    problems = dict.fromkeys(operator.problem for operator in lowered.program.operators)
    return lowered, {p: _picked(shortlist_all(p, TEMPLATES, H200), rows) for p in problems}


def build_cases(network: str, precision: Precision, rows: Rows, folder: Path) -> list[Case]:
    """Every problem of a hand-written network with some schedules of every template, compiled.

    Args:
        network: Its name in `support.networks.handwritten.TEXTS`.
        precision: Of its arithmetic.
        rows: Chooses the schedules: `drawn` or `telling`.
        folder: Where its model is written.
    """
    lowered, finalists = picked(network, precision, rows, folder)
    provenance = Provenance(network, "", lowered.opset, {}, ())
    sources = [s for all_of in finalists.values() for each in all_of for s in each.sources]
    with CompilePool(H200.arch, cache=KernelCache()) as pool:
        outcomes = {c.source.digest: c for c in pool.compile(sources)}
    failed = [f"{c.source.text}: {c.error}" for c in outcomes.values() if c.error]
    assert not failed, failed[0]
    kernels = {d: c.kernel for d, c in outcomes.items() if c.kernel is not None}
    cases: dict[tuple[Problem, Candidate], Case] = {}
    for turn in range(max(map(len, finalists.values()))):
        made = {p: generated(p, f[turn % len(f)]) for p, f in finalists.items()}
        bundle = assemble(lowered.program, made, kernels, Setting(H200, precision, provenance))
        for step in bundle.plan.steps:
            cases.setdefault((step.operator.problem, step.candidate), Case(bundle, step))
    return list(cases.values())


def images_of(case: Case) -> tuple[KernelImage, ...]:
    """The kernels of a step, as devices load them."""
    template = TEMPLATE_OF[case.template]
    schedule = template.schedule_from(case.step.candidate.configuration)
    sources = template.instantiate(case.step.operator.problem, schedule)
    cubins = case.bundle.cubins
    return tuple(KernelImage(each.digest, each, cubins[each.digest]) for each in sources)


def drawn(count: int) -> Rows:
    """Schedules from all over a legal space, the same at every call.

    Where reductions can be split, one schedule splits, however the draw falls.
    """

    def rows_of(columns: Columns) -> set[int]:
        rows = len(next(iter(columns.values())))
        rng = np.random.default_rng(rows)
        found = {int(r) for r in rng.choice(rows, min(count, rows), replace=False)}
        split = np.flatnonzero(columns.get("split", np.ones(rows)) > 1)
        return found | {int(rng.choice(split))} if split.size else found

    return rows_of


def telling(columns: Columns) -> set[int]:
    """A schedule of any kind, and for what launches can have beyond a grid one that has it, where there is one."""
    rows = len(next(iter(columns.values())))
    rng = np.random.default_rng(rows)
    found = {int(rng.integers(rows))}
    for name, usual in (("split", 1), ("cluster", 0), ("stages", 3)):
        unusual = np.flatnonzero(columns.get(name, np.full(rows, usual)) > usual)
        if unusual.size:
            found.add(int(rng.choice(unusual)))
    return found


def _picked(shortlists: Shortlists, rows: Rows) -> list[Finalist]:
    found = []
    for each in shortlists.templates:
        template: ScheduleTemplate[Problem, Schedule] = each.template
        _, columns = template.space(shortlists.problem, shortlists.target)
        for row in sorted(rows(columns)):
            parameters = template.schedule(columns, row).parameters()
            candidate = Candidate(template.maker, parameters)
            found.append(finalist_of(shortlists.problem, candidate, H200))
    return found
