"""What compiling leaves of the finalists: the choice, its estimate made anew with the registers that it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from wpk.build import Compilation, KernelResources
from wpk.errors import ScheduleError
from wpk.performance import Bound, estimate
from wpk.plan import Funnel
from wpk.search.models.static_search import Finalist, Shortlists

Compiled = Mapping[str, Compilation]
"""Outcomes of compiling, by digest of the source."""


@dataclass(frozen=True)
class KernelChoice:
    """A choice is the schedule that is chosen for a problem.

    Attributes:
        finalist: The schedule, its kernels and launches; the estimate is redone with the
            registers that the compiler reports.
        resources: The resources of each kernel, in the order of its sources.
        bound: The problem's bound.
        funnels: How the space of each template was narrowed.
    """

    finalist: Finalist
    resources: tuple[KernelResources, ...]
    bound: Bound
    funnels: tuple[Funnel, ...]

    def with_compiled(self, templates: Iterable[str]) -> KernelChoice:
        """Return the same, where schedules of these templates were compiled; a name for each of them."""
        counts = Counter(templates)
        funnels = (replace(each, compiled=counts[each.template]) for each in self.funnels)
        return replace(self, funnels=tuple(funnels))


def choose(
    shortlists: Shortlists,
    finalists: Sequence[Finalist],
    compiled: Compiled,
    *,
    allow_spills: bool = False,
) -> KernelChoice | None:
    """Return the best finalist that compiled, None if there is none.

    Estimates are redone with the registers that the compiler reports; ties keep their order.

    Args:
        shortlists: What the finalists come from.
        finalists: The compiled schedules; several rounds are passed together.
        compiled: Outcome of each of their kernels.
        allow_spills: Whether kernels count that spill registers.
    """
    judged = [_judge(shortlists, each, compiled, allow_spills=allow_spills) for each in finalists]
    choices = [each for each in judged if isinstance(each, KernelChoice)]
    best = min(choices, key=lambda each: each.finalist.prediction.estimate, default=None)
    return best and best.with_compiled(each.template.name for each in finalists)


def no_choice(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Compiled
) -> ScheduleError:
    """Return the error for a problem of which no finalist can be used, spilling ones neither."""
    judged = [_judge(shortlists, each, compiled, allow_spills=True) for each in finalists]
    seen = "; ".join(dict.fromkeys(reason for reason in judged if isinstance(reason, str)))
    return ScheduleError(
        f"none of {len(finalists)} schedules for {shortlists.problem.words()} can be used: {seen}",
        fix="these schedules should have been illegal: see the limits of their template",
    )


def spill_words(resources: KernelResources) -> str:
    """Return how much a kernel spills, after its name."""
    stored, loaded = resources.spill_store_bytes, resources.spill_load_bytes
    return f"spills registers: {stored} bytes a thread stored, {loaded} loaded"


def _judge(
    shortlists: Shortlists, finalist: Finalist, compiled: Compiled, *, allow_spills: bool
) -> KernelChoice | str:
    """The finalist as the choice, or why it cannot be that."""
    resources = []
    for source in finalist.sources:
        outcome = compiled[source.digest]
        if outcome.kernel is None:
            return f"{source.entry} failed to compile: {outcome.error}"
        if outcome.kernel.resources.spills and not allow_spills:
            return f"{source.entry} {spill_words(outcome.kernel.resources)}"
        resources.append(outcome.kernel.resources)
    seconds = _estimate_compiled(shortlists, finalist, resources)
    if seconds == inf:
        return "with the registers that it needs, not one of its blocks fits an SM"
    timed = replace(finalist, prediction=replace(finalist.prediction, estimate=seconds))
    return KernelChoice(timed, tuple(resources), shortlists.bound, shortlists.funnels)


def _estimate_compiled(
    shortlists: Shortlists, finalist: Finalist, resources: Sequence[KernelResources]
) -> float:
    """Return the estimate with the registers that the compiler reports, and with every launch counted."""
    schedule, target = finalist.prediction.schedule, shortlists.target
    work = finalist.template.work(shortlists.problem, schedule.columns(), target)
    used = np.asarray([float(max(each.registers for each in resources))])
    passes = finalist.prediction.shared.passes
    seconds = estimate(replace(work, registers=used), shortlists.bound, target, passes)
    return float(seconds[0]) + (len(finalist.launches) - 1) * target.launch_seconds
