"""The static search needs no GPU: models choose what to compile, resource reports what to keep.

    shortlists of all templates -> the best 8 by estimate -> compiled -> resources read -> choice

Pure functions; compiling lies between them, so that a caller can compile the finalists of many
problems together: `shortlist_all`, `Shortlists.finalists`, compile, `choose` (`wpk.search.models.kernel_choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from wpk.candidate import Candidate
from wpk.did_you_mean import choices_words
from wpk.errors import ScheduleError
from wpk.garbage import collected_behind
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.performance import Bound, bound
from wpk.plan import Funnel
from wpk.problems import Problem, lifted
from wpk.progress import Progress
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.load_costs import Template
from wpk.search.models.pruning import WAVES, Pruning
from wpk.search.models.shortlist import (
    Prediction,
    Shortlist,
    least_estimate,
    predict,
    shortlist,
)
from wpk.targets import Target

FINALISTS = 8
"""Schedules compiled at a time; more only where all of these are refused."""

LEFT_OUT = "left out on request"
"""Why a skipped template is no candidate."""


@dataclass(frozen=True)
class Finalist:
    """A finalist is a schedule to compile.

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


def finalist_of(problem: Problem, candidate: Candidate, target: Target) -> Finalist:
    """Return a generated kernel as a finalist, whether the score would keep it or not.

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
    """Shortlists are all that the models have to say about a problem.

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
    refusals: tuple[Funnel, ...]

    @property
    def funnels(self) -> tuple[Funnel, ...]:
        """One funnel a template; those that carry the problem come first."""
        return (*(each.funnel for each in self.templates), *self.refusals)

    def finalists(self, first: int = 0, count: int = FINALISTS) -> tuple[Finalist, ...]:
        """Return the schedules from place ``first`` on, the best estimate over all templates first."""
        last = first + count
        entries = [
            (each.template, ranked) for each in self.templates for ranked in each.first(last)
        ]
        entries.sort(key=lambda entry: entry[1].estimate)  # stable: templates' order breaks ties
        chosen = entries[first : first + count]
        return tuple(_finalist(self.problem, *entry) for entry in chosen)


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
            fix=choices_words(unknown[0], sorted(allowed)),
        )


@collected_behind()
def shortlist_all(
    problem: Problem,
    templates: Iterable[Template],
    target: Target,
    skip: Collection[str] = (),
    pruning: Pruning = WAVES,
) -> Shortlists:
    """Shortlist every template that can carry the problem.

    Args:
        problem: What to compute.
        templates: Where schedules come from; those of other kinds of problem are passed over.
        target: The GPU.
        skip: Names of templates not to use; nothing is asked of them.
        pruning: What keeps schedules.

    Raises:
        ScheduleError: No template can, or none has a legal schedule; says why of each.
    """
    limit = bound(problem, target)
    shortlists, refusals = [], []
    for template in templates:
        if not isinstance(problem, template.problem_type):
            continue
        if template.name in skip:
            refusals.append(_refused(template, LEFT_OUT))
            continue
        reason = template.why_not(problem, target)
        if reason is None:
            found = shortlist(problem, template, target, limit, pruning)
            if found.funnel.kept:
                shortlists.append(found)
                continue
            reason = f"none of its {found.funnel.space} schedules is legal"
        refusals.append(_refused(template, reason))
    if not shortlists:
        raise _no_template(problem, target, refusals)
    return Shortlists(problem, target, limit, tuple(shortlists), tuple(refusals))


@collected_behind()
def least_seconds(
    problem: Problem,
    templates: Iterable[Template],
    target: Target,
    skip: Collection[str] = (),
    pruning: Pruning = WAVES,
) -> float:
    """Return the least estimate on the shortlists that `shortlist_all` gives, in less time.

    Raises:
        ScheduleError: No template can compute the problem, or none has a legal schedule; says why of each.
    """
    carriers = [
        template
        for template in templates
        if isinstance(problem, template.problem_type)
        and template.name not in skip
        and template.why_not(problem, target) is None
    ]
    found = least_estimate(problem, carriers, target, bound(problem, target), pruning)
    if found is None:  # which says why
        lists = shortlist_all(problem, templates, target, skip, pruning).templates
        found = min(each.least for each in lists)
    return found


def shortlist_problems(
    problems: Iterable[Problem],
    templates: Sequence[Template],
    target: Target,
    skip: Collection[str],
    tell: Progress,
    pruning: Pruning = WAVES,
) -> Iterator[Shortlists]:
    """Shortlist every template for each distinct problem, as `shortlist_all` does; one after the other, as they are asked for."""

    def begin(problem: Problem) -> Callable[[], Shortlists]:
        return cache(partial(shortlist_all, problem, templates, target, skip, pruning))

    return in_turn(problems, begin, tell)


def in_turn(
    problems: Iterable[Problem],
    begin: Callable[[Problem], Callable[[], Shortlists]],
    tell: Progress,
) -> Iterator[Shortlists]:
    """Return the shortlists of each distinct problem, in their order.

    Problems that differ in numbers only have the same schedules, bounds and estimates: they are scored once.

    Args:
        problems: What to compute; may repeat.
        begin: Begins to score a problem, and returns what gives its shortlists, as often as it is called. All begin before the
            first is given.
        tell: Told of the progress.
    """
    distinct = list(dict.fromkeys(problems))
    begun: dict[Problem, Callable[[], Shortlists]] = {}
    for problem in distinct:
        alike = lifted(problem).problem
        if alike not in begun:
            begun[alike] = begin(problem)
    for done, problem in enumerate(distinct):
        tell("scoring schedules", done, len(distinct))
        yield replace(begun[lifted(problem).problem](), problem=problem)
    tell("scoring schedules", len(distinct), len(distinct))


def _refused(template: Template, reason: str) -> Funnel:
    return Funnel(template.name, reason, space=0, legal=0, kept=0, compiled=0)


def _no_template(problem: Problem, target: Target, refusals: Sequence[Funnel]) -> ScheduleError:
    reasons = "; ".join(f"{r.template}: {r.refusal}" for r in refusals) or "none is of its kind"
    fix = "choose another target or precision, or leave this operator out of the model"
    if any(refusal.refusal == LEFT_OUT for refusal in refusals):
        fix = f"leave fewer templates out (--skip-template); or {fix}"
    return ScheduleError(
        f"no schedule template computes {problem.words()} on {target.name}: {reasons}",
        fix=fix,
    )
