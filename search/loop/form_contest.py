"""Forms of a model compete: which are worth measuring, the best partition found, and what whole engines compare."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

from wpk.errors import EngineError
from wpk.graph_passes import every_site, pass_of
from wpk.lowering.lowered_model import LoweredModel
from wpk.options import SearchOptions
from wpk.plan import Begun, FormOutcome, FormSearch, TriedForm
from wpk.problems import Problem
from wpk.progress import Progress, silent
from wpk.search.forms import (
    FUSION,
    Beginning,
    ByMeasuring,
    ByModels,
    Estimates,
    Form,
    Forms,
    Partitioning,
    Proposal,
    RefusedFormError,
    beginning,
    best_partition,
    difference,
    form_of,
    in_order,
    is_hopeless,
    kinds_in_order,
    otherwise,
    predicted,
    proposed,
)
from wpk.search.loop.budget import Budget
from wpk.search.loop.choices import Choices
from wpk.search.loop.form_tuning import FormTuning, best_seconds
from wpk.search.loop.model_tuning import ModelTuning
from wpk.search.models import Compiler, Shortlists, StaticChoices

FOUND, PASSES, UNFUSED = "found", "passes", "unfused"
"""Names of forms: the best partition found; the passes' own, where tuning began with another; with every merge of
consecutive subsets taken back."""

MOST_MISSING = 8
"""Problems that nothing was measured of, of a form that is no part of the best found and still compared as an engine."""

LOOK_SHARE, LOOK_SECONDS = 0.1, 120.0
"""What looking at forms by models alone may take, before measuring and again behind it: a part of the budget, and where
there is none so many seconds. Nothing waits for it as long as kernels compile."""

BEGIN_SHARE = 0.5
"""The part of that, on top of it, which looking for the form to begin with may take: everything waits for it."""

MOST_KEPT = 8
"""Lowered forms that are kept: those last looked at are what is measured next, and what engines are made of."""

STAGE = "looking at forms"

Lower = Callable[[frozenset[str]], LoweredModel]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FormsFound:
    """What a contest hands back.

    Attributes:
        partitioning: The search for the best partition.
        models: What whole engines are to be compared of, by name; not the form that tuning began with.
        choices: What may compute each problem of any of them.
    """

    partitioning: Partitioning
    models: dict[str, LoweredModel]
    choices: Choices


def recorded(
    partitioning: Partitioning,
    chosen: Collection[str],
    *,
    measured: bool,
    begun: Begun | None = None,
) -> FormSearch:
    """Return what a plan says of a search for its form."""
    found = tuple(sorted(partitioning.best.changed))
    asked = partitioning.tried, partitioning.partitions, found, tuple(sorted(chosen)), measured
    return FormSearch(*asked, begun=begun)


MOST_WEIGHT_BYTES = 4 * 2**30
"""Of a model whose forms compete: each form packs its weights, and its engine holds what others do not."""


def competes(search: SearchOptions, lowered: LoweredModel, *, measured: bool) -> bool:
    """Whether forms of a model compete, as the options ask, and as far as it can.

    Models with bodies of control flow, and large ones, keep their usual form; that is said where another is asked for.

    Raises:
        EngineError: They should, and only some operators are measured, or a form is given.
    """
    if search.forms == "search" and measured and search.operators:
        raise EngineError(
            f"--forms search compares all operators, and --ops names {', '.join(search.operators)}",
            fix="leave one of both out",
        )
    asked, is_given = search.forms == "search", bool(lowered.source.changed)
    if asked and is_given:
        raise EngineError(
            "--forms search looks for the fastest form, and --change-site gives one",
            fix="leave one of both out",
        )
    is_fixed = search.forms == "fixed" or is_given
    if not asked and (is_fixed or not measured or search.operators):
        return False
    reason = _why_usual(lowered)
    if reason is not None and asked:
        _log.warning("--forms search has no effect: %s", reason)
    return reason is None


def _why_usual(lowered: LoweredModel) -> str | None:
    """Why a model keeps its usual form; None where forms may compete."""
    if lowered.bodies:
        return "the model has bodies of control flow that are engines"
    weights = sum(array.nbytes for array in lowered.program.constants.values())
    if weights > MOST_WEIGHT_BYTES:
        return f"weights take {weights / 2**30:.1f} GiB, at most {MOST_WEIGHT_BYTES >> 30} may"
    return None


def chosen_by_models(
    lowered: LoweredModel,
    static: StaticChoices,
    contest: FormContest | None,
    choose: Callable[[LoweredModel], StaticChoices],
) -> tuple[LoweredModel, StaticChoices, FormSearch | None]:
    """Return the form that the models choose, what they choose for it, and how; the usual one without a contest."""
    if contest is None:
        return lowered, static, None
    found = contest.by_models()
    search = recorded(found, found.best.changed, measured=False)
    if not found.best.changed:
        return lowered, static, search
    lowered = contest.lower(found.best.changed)
    return lowered, choose(lowered), search


def strongest_half(tried: Sequence[TriedForm]) -> list[str]:
    """Return the keys of what was taken and gained most; nothing where less than two were taken."""
    taken = [each for each in tried if each.outcome is FormOutcome.TAKEN]
    taken.sort(key=lambda each: (each.measured or 0.0) - (each.measured_usual or 0.0))
    half = taken[: (len(taken) + 1) // 2] if len(taken) > 1 else []
    return [key for each in half for key in each.keys]


class FormContest:
    """The contest of a model's forms.

    Attributes:
        lower: Lowers the model with some sites taken back.
    """

    def __init__(
        self,
        lower: Lower,
        lowered: LoweredModel,
        estimates: Estimates,
        budget: Budget | None = None,
        tell: Progress = silent,
    ) -> None:
        """Begin with the passes' own form; nothing is compared yet.

        Args:
            lower: Lowers the model with some sites taken back.
            lowered: In the passes' own form.
            estimates: What the models have to say of this, and of any other.
            budget: Of measuring; None where the models decide alone.
            tell: Told of the progress.
        """
        self.lower: Lower = lru_cache(MOST_KEPT)(lower)
        self._lowered, self._forms = lowered, Forms(self.lower, form_of(lowered))
        self._passes, self._beginning = self._forms.root, Beginning(self._forms.root)
        self._estimates = estimates
        seconds = None if budget is None else budget.seconds
        self._look = LOOK_SECONDS if seconds is None else LOOK_SHARE * seconds
        self._until, self._tell = 0.0, tell
        self._is_free: Callable[[], bool] = lambda: False

    def begin(self) -> LoweredModel:
        """Return the model in the form that tuning begins with, by what models say; once, before anything is compiled."""
        self._begin(BEGIN_SHARE)
        asked = self._lowered, self._forms.root, self._estimates.headroom
        kinds = kinds_in_order(*asked)
        self._beginning = beginning(self._forms, self._estimates.seconds, kinds, self._is_over)
        if self._beginning.form is not self._passes:
            self._lowered = self.lower(self._beginning.form.changed)
            self._forms.begin_with(self._beginning.form)
        self._tell(STAGE, 1, 1)
        return self._lowered

    @property
    def begun(self) -> Begun:
        """What a plan says of the form that tuning began with."""
        form, looked_at = self._beginning.form, self._beginning.looked_at
        sums = self._total(self._passes), self._total(form)
        return Begun(tuple(sorted(form.changed)), looked_at, *sums)

    def _total(self, form: Form) -> float:
        seconds = self._estimates.seconds
        return sum(count * seconds(problem) for problem, count in form.problems.items())

    def score(self, scored: Mapping[Problem, Shortlists]) -> None:
        """Take over what models said of problems while their kernels began to compile."""
        self._estimates.shortlists.update(scored)

    @cached_property
    def _keys(self) -> list[str]:
        return in_order(self._lowered, self._forms.root, self._estimates.headroom)

    def look(self, is_free: Callable[[], bool] = lambda: False) -> None:
        """Find out what is worth measuring, once.

        Args:
            is_free: Whether other work goes on that would be waited for: then looking costs no time, and what
                engines of other forms will be made of is looked at, too.
        """
        self._is_free = is_free
        _ = self._proposed
        if is_free():
            others = [*self._apart().values(), *self._unfused().values()]
            self._estimates.prepare((p for form in others for p in form.problems), is_free)
        self._is_free = lambda: False

    @property
    def least_problems(self) -> int | None:
        """The problems that must be tuned to decide over any form at all; None where models rule out all."""
        return min((len(each.between.new) for each in self._proposed), default=None)

    @cached_property
    def _proposed(self) -> list[Proposal]:
        self._begin()
        found = proposed(self._forms, self._estimates.seconds, self._keys, self._is_over)
        self._tell(STAGE, 1, 1)
        return found

    def by_models(self) -> Partitioning:
        """The best partition where nothing is measured, and no form was begun with."""
        self._begin()
        estimate = self._estimates.seconds
        return best_partition(self._forms, estimate, ByModels(estimate), self._keys, self._is_over)

    def by_measuring(self, how: ModelTuning, tuned: Choices, compiler: Compiler) -> FormsFound:
        """The best partition by measured times, and what else whole engines are to be compared of.

        Args:
            how: How the usual form was tuned; its budget is what is left for others.
            tuned: The outcome.
            compiler: Compiles kernels.
        """
        tuning = FormTuning(how, self.lower, self._estimates, compiler, tuned)
        judge = ByMeasuring(partial(self._measured, tuning), best_seconds(tuned))
        left = how.tuning.budget.seconds
        self._look = self._look if left is None else min(self._look, left)
        self._begin()
        estimate = self._estimates.seconds
        found = best_partition(self._forms, estimate, judge, self._keys, self._is_over)
        found = replace(found, tried=(*self._beginning.tried, *found.tried))
        own = {} if self._forms.root is self._passes else {PASSES: self._passes}
        half, others = self._half(found), {**self._apart(), **self._unfused()}
        forms = {FOUND: found.best, **own, **half, **others}
        self._tell(STAGE, 1, 1)
        models, seen = dict[str, LoweredModel](), {self._forms.root.identity}
        for name, form in forms.items():
            few = len(tuning.missing(form)) <= MOST_MISSING
            judged = few or name in (FOUND, PASSES, UNFUSED)
            if form.identity not in seen and judged and tuning.complete(form):
                models[name] = self.lower(form.changed)
            seen.add(form.identity)
        return FormsFound(found, models, tuning.choices)

    def _half(self, found: Partitioning) -> dict[str, Form]:
        """What gains most of the best partition: what is faster alone need not be so among its neighbours."""
        keys = strongest_half(found.tried)
        form = self._known(otherwise(self._forms.root, keys)) if keys else None
        return {} if form is None else {f"{FOUND} 1/2": form}

    def _apart(self) -> dict[str, Form]:
        """Forms with all sites of a pass changed, by that key: a sum of times does not tell what runs at the same time."""
        estimate, root, apart = self._estimates.seconds, self._forms.root, dict[str, Form]()
        for name in dict.fromkeys(map(pass_of, root.sites)):
            changed = otherwise(root, (every_site(name),))
            form = self._known(changed) if name != FUSION else None
            if form is not None and not is_hopeless(predicted(difference(root, form), estimate)):
                apart[every_site(name)] = form
        return apart

    def _unfused(self) -> dict[str, Form]:
        form = self._known(frozenset({every_site(FUSION)}))
        return {} if form is None else {UNFUSED: form}

    def _known(self, changed: frozenset[str]) -> Form | None:
        """A form; None where there is none, or where looking at it would take longer than it may."""
        if self._is_over() and not self._forms.has(changed):
            return None
        try:
            return self._forms.of(changed)
        except RefusedFormError:
            return None

    def _measured(
        self, tuning: FormTuning, proposals: Sequence[Proposal], problems: Collection[Problem]
    ) -> Mapping[Problem, float]:
        """Measure; looking at forms does not take longer for it."""
        begun = time.monotonic()
        seconds = tuning.measure(proposals, problems)
        self._until += time.monotonic() - begun
        self._tell(STAGE, 0, 1)
        return seconds

    def _begin(self, share: float = 1.0) -> None:
        """Begin to look at forms, for a part of the time that is for it; what was looked at before is known."""
        self._tell(STAGE, 0, 1)
        self._until = time.monotonic() + share * self._look

    def _is_over(self) -> bool:
        return time.monotonic() >= self._until and not self._is_free()
