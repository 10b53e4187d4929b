"""The search that needs no GPU: models choose what to compile, resource reports what to keep.

    shortlists of all templates -> the best 8 by estimate -> compiled -> resources read -> choice

Pure functions; compiling lies between them, so that a caller can compile the finalists of many
problems together: `prepare`, `Prepared.finalists`, compile, `choose`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from wpk.build.resources import KernelResources
from wpk.errors import ScheduleError
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.performance.bound import Bound, bound
from wpk.performance.estimate import estimate
from wpk.problems import Problem
from wpk.search.record import Refusal, Scored, SearchRecord
from wpk.search.shortlist import Shortlist, Template, shortlist
from wpk.targets.target import Target

FINALISTS = 8
"""Schedules compiled at a time; more only where all of these are refused."""

LEFT_OUT = "left out on request"
"""Why a skipped template is no candidate."""

Compiled = Mapping[str, KernelResources | str]
"""Outcome of compiling, by digest of the source: its resources, or why it failed."""


@dataclass(frozen=True)
class Finalist:
    """A schedule to compile: what it was scored, its kernels and their launches."""

    scored: Scored
    template: Template
    sources: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Prepared:
    """All that the models have to say about a problem.

    Attributes:
        problem: The problem.
        target: The GPU.
        bound: The problem's bound.
        shortlists: One a template that carries the problem and has legal schedules for it.
        refusals: The templates that do not, or were left out, with reasons.
    """

    problem: Problem
    target: Target
    bound: Bound
    shortlists: tuple[Shortlist, ...]
    refusals: tuple[Refusal, ...]

    def finalists(self, first: int = 0, count: int = FINALISTS) -> tuple[Finalist, ...]:
        """The schedules from place ``first`` on, best estimate first over all templates."""
        entries = [(scored, each.template) for each in self.shortlists for scored in each.ranked]
        entries.sort(key=lambda entry: entry[0].estimate)  # stable: templates' order breaks ties
        return tuple(
            Finalist(
                scored=scored,
                template=template,
                sources=template.instantiate(self.problem, scored.schedule),
                launches=template.launches(self.problem, scored.schedule),
            )
            for scored, template in entries[first : first + count]
        )


@dataclass(frozen=True)
class Choice:
    """The schedule chosen for a problem.

    Attributes:
        finalist: The schedule, its kernels and launches; the estimate is redone with the
            registers that the compiler reports.
        resources: Of each kernel, in the order of its sources.
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


def prepare(
    problem: Problem, templates: Iterable[Template], target: Target, skip: Collection[str] = ()
) -> Prepared:
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
            refusals.append(Refusal(template.name, "", LEFT_OUT))
            continue
        reason = template.why_not(problem, target)
        if reason is None:
            found = shortlist(problem, template, target, limit)
            if found.ranked:
                shortlists.append(found)
                continue
            reason = f"none of its {found.funnel.space} schedules is legal"
        refusals.append(Refusal(template.name, "", reason))
    if not shortlists:
        raise _no_template(problem, target, refusals)
    return Prepared(problem, target, limit, tuple(shortlists), tuple(refusals))


def _no_template(problem: Problem, target: Target, refusals: Sequence[Refusal]) -> ScheduleError:
    reasons = "; ".join(f"{r.template}: {r.reason}" for r in refusals) or "none is of its kind"
    fix = "choose another target or precision, or leave this operator out of the model"
    if any(refusal.reason == LEFT_OUT for refusal in refusals):
        fix = f"leave fewer templates out (--skip-template); or {fix}"
    return ScheduleError(
        f"no schedule template computes {problem.words()} on {target.name}: {reasons}",
        fix=fix,
    )


def choose(prepared: Prepared, finalists: Sequence[Finalist], compiled: Compiled) -> Choice | None:
    """The best finalist that compiled without spilling, None if there is none.

    Estimates are redone with the registers that the compiler reports; ties keep their order.

    Args:
        prepared: What the finalists come from.
        finalists: The compiled schedules; several rounds are passed together.
        compiled: Outcome of each of their kernels.
    """
    return _choose(prepared, finalists, compiled, allow_spills=False)


def choose_spilling(
    prepared: Prepared, finalists: Sequence[Finalist], compiled: Compiled
) -> Choice | None:
    """As `choose` for when that found none: spilling kernels count, and the record warns of them."""
    return _choose(prepared, finalists, compiled, allow_spills=True)


def static_search(
    problem: Problem,
    templates: Iterable[Template],
    target: Target,
    compile_all: Callable[[Sequence[KernelSource]], Compiled],
) -> Choice:
    """Search one problem without measuring.

    Args:
        problem: What to compute.
        templates: Where schedules come from; those of other kinds of problem are passed over.
        target: The GPU.
        compile_all: Compiles kernels and tells their resources, or why they failed.

    Raises:
        ScheduleError: No template has a schedule that compiles; says why of each.
    """
    prepared = prepare(problem, templates, target)
    finalists: tuple[Finalist, ...] = ()
    compiled: dict[str, KernelResources | str] = {}
    while batch := prepared.finalists(first=len(finalists)):
        finalists += batch
        sources = {source.digest: source for each in batch for source in each.sources}
        fresh = [source for digest, source in sources.items() if digest not in compiled]
        compiled |= compile_all(fresh)
        choice = choose(prepared, finalists, compiled)
        if choice is not None:
            return choice
    choice = choose_spilling(prepared, finalists, compiled)
    if choice is not None:
        return choice
    raise no_choice(prepared, finalists, compiled)


def no_choice(
    prepared: Prepared, finalists: Sequence[Finalist], compiled: Compiled
) -> ScheduleError:
    """The error for a problem none of whose finalists can be used."""
    reasons = [_why_refused(each, compiled, prepared, allow_spills=True) for each in finalists]
    seen = "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))
    return ScheduleError(
        f"none of {len(finalists)} schedules for {prepared.problem.words()} can be used: {seen}",
        fix="these schedules should have been illegal: see the constraints of their template",
    )


def _choose(
    prepared: Prepared, finalists: Sequence[Finalist], compiled: Compiled, *, allow_spills: bool
) -> Choice | None:
    refusals = list(prepared.refusals)
    best: tuple[float, Finalist] | None = None
    for each in finalists:
        reason = _why_refused(each, compiled, prepared, allow_spills=allow_spills)
        if reason is not None:
            refusals.append(Refusal(each.template.name, str(each.scored.schedule), reason))
            continue
        seconds = _estimate_compiled(prepared, each, _resources(each, compiled))
        if best is None or seconds < best[0]:
            best = (seconds, each)
    if best is None:
        return None
    seconds, finalist = best
    resources = _resources(finalist, compiled)
    record = SearchRecord(
        funnels=tuple(each.funnel for each in prepared.shortlists),
        finalists=tuple(each.template.name for each in finalists),
        refusals=tuple(refusals),
        warning="; ".join(spill_words(r) for r in resources if r.spills),
    )
    timed = replace(finalist, scored=replace(finalist.scored, estimate=seconds))
    return Choice(timed, resources, prepared.bound, record)


def _why_refused(
    finalist: Finalist, compiled: Compiled, prepared: Prepared, *, allow_spills: bool
) -> str | None:
    for source in finalist.sources:
        outcome = compiled.get(source.digest, "it was not compiled")
        if isinstance(outcome, str):
            return f"{source.entry} failed to compile: {outcome}"
        if outcome.spills and not allow_spills:
            return f"{source.entry} {spill_words(outcome)}"
    if _estimate_compiled(prepared, finalist, _resources(finalist, compiled)) == inf:
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
    prepared: Prepared, finalist: Finalist, resources: tuple[KernelResources, ...]
) -> float:
    """The estimate with the compiler's registers for the guessed ones, and every launch counted."""
    parameters = finalist.scored.schedule.parameters()
    columns = {name: np.asarray([value], np.int64) for name, value in parameters}
    work = finalist.template.work(prepared.problem, columns, prepared.target)
    used = np.asarray([float(max(r.registers for r in resources))])
    seconds = estimate(
        replace(work, registers=used),
        prepared.bound,
        prepared.target,
        finalist.scored.shared.passes,
    )
    further = (len(finalist.launches) - 1) * prepared.target.launch_seconds
    return float(seconds[0]) + further
