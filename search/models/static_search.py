"""The search that needs no GPU: models choose what to compile, resource reports what to keep.

    shortlists of all templates -> the best 8 by estimate -> compiled -> resources read -> choice

Pure functions; compiling lies between them, so that a caller can compile the finalists of many
problems together: `shortlist_all`, `Shortlists.finalists`, compile, `choose`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from wpk.build import KernelResources
from wpk.candidate import Candidate
from wpk.errors import ScheduleError
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.performance import Bound, bound, estimate
from wpk.problems import Problem
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.record import Prediction, SearchRecord, TemplateRefusal
from wpk.search.models.shortlist import Shortlist, Template, predict, shortlist
from wpk.targets import Target

FINALISTS = 8
"""Schedules compiled at a time; more only where all of these are refused."""

LEFT_OUT = "left out on request"
"""Why a skipped template is no candidate."""

Compiled = Mapping[str, KernelResources | str]
"""Outcome of compiling, by digest of the source: its resources, or why it failed."""


@dataclass(frozen=True)
class Finalist:
    """A schedule to compile.

    Attributes:
        template: Whose schedule it is.
        prediction: What the models say of it.
        sources: Its kernels.
        launches: How they are launched, in sequence.
    """

    template: Template
    prediction: Prediction
    sources: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]

    @property
    def candidate(self) -> Candidate:
        """The schedule as trials and plans name it."""
        return Candidate(self.template.maker, self.prediction.schedule.parameters())

    @property
    def words(self) -> str:
        """The schedule's parameters, as messages name it."""
        return str(self.prediction.schedule)


def finalist_of(problem: Problem, candidate: Candidate, target: Target) -> Finalist:
    """A generated kernel as a finalist, whether the score would keep it or not.

    Raises:
        KeyError: There is no such template.
        TypeError: The configuration is not one of its schedules.
    """
    template = TEMPLATE_OF[candidate.maker.name]
    schedule = template.schedule_from(candidate.configuration)
    prediction = predict(problem, template, schedule, target, bound(problem, target))
    return _finalist(problem, template, prediction)


def _finalist(problem: Problem, template: Template, prediction: Prediction) -> Finalist:
    return Finalist(
        template=template,
        prediction=prediction,
        sources=template.instantiate(problem, prediction.schedule),
        launches=template.launches(problem, prediction.schedule),
    )


@dataclass(frozen=True)
class Shortlists:
    """All that the models have to say about a problem.

    Attributes:
        problem: The problem.
        target: The GPU.
        bound: The problem's bound.
        templates: One shortlist a template that carries the problem and has legal schedules for it.
        refusals: The templates that cannot carry the problem or were left out, with reasons.
    """

    problem: Problem
    target: Target
    bound: Bound
    templates: tuple[Shortlist, ...]
    refusals: tuple[TemplateRefusal, ...]

    def finalists(self, first: int = 0, count: int = FINALISTS) -> tuple[Finalist, ...]:
        """Return the schedules from place ``first`` on, the best estimate over all templates first."""
        entries = [(each.template, ranked) for each in self.templates for ranked in each.ranked]
        entries.sort(key=lambda entry: entry[1].estimate)  # stable: templates' order breaks ties
        chosen = entries[first : first + count]
        return tuple(_finalist(self.problem, *entry) for entry in chosen)


@dataclass(frozen=True)
class KernelChoice:
    """The schedule chosen for a problem.

    Attributes:
        finalist: The schedule, its kernels and launches; the estimate is redone with the
            registers that the compiler reports.
        resources: The resources of each kernel, in the order of its sources.
        bound: The problem's bound.
        record: How it came to be chosen.
    """

    finalist: Finalist
    resources: tuple[KernelResources, ...]
    bound: Bound
    record: SearchRecord


def check_skips(skip: Collection[str], templates: Iterable[Template]) -> None:
    """Refuse names of templates that do not exist.

    Raises:
        ScheduleError: A name is unknown; the fix lists the allowed ones.
    """
    allowed = {template.name for template in templates}
    unknown = sorted(set(skip) - allowed)
    if unknown:
        raise ScheduleError(
            f"no schedule template is called {', '.join(repr(name) for name in unknown)}",
            fix=f"the schedule templates are {', '.join(sorted(allowed))}",
        )


def shortlist_all(
    problem: Problem, templates: Iterable[Template], target: Target, skip: Collection[str] = ()
) -> Shortlists:
    """Shortlist every template that can carry the problem.

    Args:
        problem: What to compute.
        templates: Where schedules come from; those of other kinds of problem are passed over.
        target: The GPU.
        skip: Names of templates not to use; nothing is asked of them.

    Raises:
        ScheduleError: No template can, or none has a legal schedule; says why of each.
    """
    limit = bound(problem, target)
    shortlists, refusals = [], []
    for template in templates:
        if not isinstance(problem, template.problem_type):
            continue
        if template.name in skip:
            refusals.append(TemplateRefusal(template.name, "", LEFT_OUT))
            continue
        reason = template.why_not(problem, target)
        if reason is None:
            found = shortlist(problem, template, target, limit)
            if found.ranked:
                shortlists.append(found)
                continue
            reason = f"none of its {found.counts.space} schedules is legal"
        refusals.append(TemplateRefusal(template.name, "", reason))
    if not shortlists:
        raise _no_template(problem, target, refusals)
    return Shortlists(problem, target, limit, tuple(shortlists), tuple(refusals))


def _no_template(
    problem: Problem, target: Target, refusals: Sequence[TemplateRefusal]
) -> ScheduleError:
    reasons = "; ".join(f"{r.template}: {r.reason}" for r in refusals) or "none is of its kind"
    fix = "choose another target or precision, or leave this operator out of the model"
    if any(refusal.reason == LEFT_OUT for refusal in refusals):
        fix = f"leave fewer templates out (--skip-template); or {fix}"
    return ScheduleError(
        f"no schedule template computes {problem.words()} on {target.name}: {reasons}",
        fix=fix,
    )


def choose(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Compiled
) -> KernelChoice | None:
    """The best finalist that compiled without spilling, None if there is none.

    Estimates are redone with the registers that the compiler reports; ties keep their order.

    Args:
        shortlists: What the finalists come from.
        finalists: The compiled schedules; several rounds are passed together.
        compiled: Outcome of each of their kernels.
    """
    return _choose(shortlists, finalists, compiled, allow_spills=False)


def choose_spilling(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Compiled
) -> KernelChoice | None:
    """The best finalist where `choose` gives none: spilling kernels count, and the record warns."""
    return _choose(shortlists, finalists, compiled, allow_spills=True)


def no_choice(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Compiled
) -> ScheduleError:
    """Return the error for a problem of which no finalist can be used."""
    reasons = [_why_refused(each, compiled, shortlists, allow_spills=True) for each in finalists]
    seen = "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))
    return ScheduleError(
        f"none of {len(finalists)} schedules for {shortlists.problem.words()} can be used: {seen}",
        fix="these schedules should have been illegal: see the limits of their template",
    )


def _choose(
    shortlists: Shortlists, finalists: Sequence[Finalist], compiled: Compiled, *, allow_spills: bool
) -> KernelChoice | None:
    refusals = list(shortlists.refusals)
    best: tuple[float, Finalist] | None = None
    for each in finalists:
        reason = _why_refused(each, compiled, shortlists, allow_spills=allow_spills)
        if reason is not None:
            refusals.append(TemplateRefusal(each.template.name, each.words, reason))
            continue
        seconds = _estimate_compiled(shortlists, each, _resources(each, compiled))
        if best is None or seconds < best[0]:
            best = (seconds, each)
    if best is None:
        return None
    seconds, finalist = best
    resources = _resources(finalist, compiled)
    record = SearchRecord(
        spaces=tuple(each.counts for each in shortlists.templates),
        finalists=tuple(each.template.name for each in finalists),
        refusals=tuple(refusals),
        warning="; ".join(spill_words(r) for r in resources if r.spills),
    )
    timed = replace(finalist, prediction=replace(finalist.prediction, estimate=seconds))
    return KernelChoice(timed, resources, shortlists.bound, record)


def _why_refused(
    finalist: Finalist, compiled: Compiled, shortlists: Shortlists, *, allow_spills: bool
) -> str | None:
    for source in finalist.sources:
        outcome = compiled.get(source.digest, "it was not compiled")
        if isinstance(outcome, str):
            return f"{source.entry} failed to compile: {outcome}"
        if outcome.spills and not allow_spills:
            return f"{source.entry} {spill_words(outcome)}"
    if _estimate_compiled(shortlists, finalist, _resources(finalist, compiled)) == inf:
        return "with the registers that it needs, not one of its blocks fits an SM"
    return None


def spill_words(resources: KernelResources) -> str:
    """How much a kernel spills, after its name."""
    stored, loaded = resources.spill_store_bytes, resources.spill_load_bytes
    return f"spills registers: {stored} bytes a thread stored, {loaded} loaded"


def _resources(finalist: Finalist, compiled: Compiled) -> tuple[KernelResources, ...]:
    outcomes = [compiled[source.digest] for source in finalist.sources]
    return tuple(outcome for outcome in outcomes if not isinstance(outcome, str))


def _estimate_compiled(
    shortlists: Shortlists, finalist: Finalist, resources: tuple[KernelResources, ...]
) -> float:
    """Return the estimate with the registers that the compiler reports, and with every launch counted."""
    parameters = finalist.prediction.schedule.parameters()
    columns = {name: np.asarray([value], np.int64) for name, value in parameters}
    work = finalist.template.work(shortlists.problem, columns, shortlists.target)
    used = np.asarray([float(max(r.registers for r in resources))])
    seconds = estimate(
        replace(work, registers=used),
        shortlists.bound,
        shortlists.target,
        finalist.prediction.shared.passes,
    )
    further = (len(finalist.launches) - 1) * shortlists.target.launch_seconds
    return float(seconds[0]) + further
