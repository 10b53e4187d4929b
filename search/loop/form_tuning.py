"""Problems that only other forms of a model have are tuned as its own are, in a part of the same budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf

from wpk.errors import GraphError, ScheduleError, UnsupportedError
from wpk.lowering.lowered_model import LoweredModel
from wpk.problems import Problem
from wpk.search.forms import Estimates, Form, Proposal
from wpk.search.loop.budget import Budget
from wpk.search.loop.choices import Choices, static_choices
from wpk.search.loop.model_tuning import ModelTuning
from wpk.search.loop.task import Task, make_tasks
from wpk.search.loop.twins import Twins, twins_of
from wpk.search.models import Compiler, StaticChoices, choose_among
from wpk.search.searchers import find_searcher
from wpk.trial_bench import FormCases, Offers, fitting

FORM_SHARE = 0.3
"""The part of the budget that other forms may have, where the models find any that is worth measuring."""

LEAST_SECONDS, LEAST_TRIALS = 1.2, 8
"""What a problem takes at least to be tuned so far that its time can decide: no more problems are begun than
the budget has room for, those of the most promising forms first."""

ONE = 1
"""Schedules compiled of a problem of a form that is only compared with, and is not searched for."""


def parted(budget: Budget) -> tuple[Budget, Budget]:
    """Return what the usual form may spend of a budget, and what others may."""
    seconds, trials = budget.seconds, budget.trials
    others = Budget(
        None if seconds is None else FORM_SHARE * seconds,
        None if trials is None else round(FORM_SHARE * trials),
    )
    return budget.less(others.seconds or 0.0, others.trials or 0), others


def room(budget: Budget) -> float:
    """Return how many problems a budget has room for."""
    return min(
        inf if budget.seconds is None else budget.seconds / LEAST_SECONDS,
        inf if budget.trials is None else budget.trials / LEAST_TRIALS,
    )


@dataclass
class FormTuning:
    """The tuning of what other forms consist of.

    Attributes:
        how: How the model is tuned; its budget is what is left for other forms.
        lower: Lowers the model with some sites taken back.
        estimates: What the models have to say.
        compiler: Compiles what they like best.
        choices: What may compute each problem, those of the usual form among them; grows.
        clock: Seconds that only go forward.
        since: When its budget was what is left.
    """

    how: ModelTuning
    lower: Callable[[frozenset[str]], LoweredModel]
    estimates: Estimates
    compiler: Compiler
    choices: Choices
    clock: Callable[[], float] = time.monotonic
    since: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Time passes from now on."""
        self.since = self.clock()

    def measure(
        self, proposals: Sequence[Proposal], problems: Collection[Problem]
    ) -> Mapping[Problem, float]:
        """Tune problems of proposed forms, each once; return the best times of those that ran."""
        self._pass()
        has = self._holding(self._affordable(proposals, problems))
        if not has:
            return {}
        coming = sum(each.coming_bytes for each in self.how.cases)
        static = self._chosen(fitting({p: each.program for p, each in has.items()}, coming))
        has = {problem: has[problem] for problem in static.kernels}
        seed, phases = self.how.tuning.seed, self.how.tell
        first, second = (FormCases(e, has, seed + n, phases) for n, e in enumerate(self.how.cases))
        with Offers(self.how.equipment.lease, has) as offers:
            how = replace(self.how, equipment=replace(self.how.equipment, offers=offers))
            tasks, twins = self._tasks(how, has, static)
            tuned = how.tuned(tasks, twins, static, (first, second), self._left)
        self.choices = self.choices.beside(tuned)
        own = (tuned.results[problem] for problem in twins)
        self._pass(sum(len(each.tried) - each.known for each in own))
        return best_seconds(tuned)

    def _left(self) -> Budget:
        """What is left of the budget now."""
        self._pass()
        return self.how.tuning.budget

    def _pass(self, trials: int = 0) -> None:
        """Take what was spent since off the budget: time, whatever it went for, and trials."""
        now = self.clock()
        budget = self.how.tuning.budget.less(now - self.since, trials)
        self.how, self.since = self.how.within(budget), now

    def _chosen(self, problems: Sequence[Problem]) -> StaticChoices:
        """What the models choose; without problems of which no kernel compiles."""
        shortlists = self.estimates.of(problems)
        try:
            return choose_among(shortlists.values(), self.compiler, self.how.tell)
        except ScheduleError:
            if len(problems) == 1:
                return StaticChoices({}, {}, {})
        parts = [self._chosen([problem]) for problem in problems]
        return StaticChoices(
            {problem: each for part in parts for problem, each in part.kernels.items()},
            {digest: each for part in parts for digest, each in part.compiled.items()},
            dict(shortlists),
        )

    def _affordable(
        self, proposals: Sequence[Proposal], problems: Collection[Problem]
    ) -> dict[Problem, frozenset[str]]:
        """The problems that the budget has room for, with a form that has each."""
        most, forms = room(self.how.tuning.budget), dict[Problem, frozenset[str]]()
        for proposal in proposals:
            fresh = [p for p in proposal.between.new if p in problems and p not in forms]
            if len(forms) + len(fresh) <= most:
                forms |= dict.fromkeys(fresh, proposal.form.changed)
        return forms

    def _holding(self, forms: Mapping[Problem, frozenset[str]]) -> dict[Problem, LoweredModel]:
        """Lower forms; without problems that these do not have after all: they were looked at among others."""
        lowered = dict[frozenset[str], LoweredModel]()
        for changed in dict.fromkeys(forms.values()):
            with suppress(UnsupportedError, GraphError):
                lowered[changed] = self.lower(changed)
        own = {changed: {*each.program.problems} for changed, each in lowered.items()}
        return {p: lowered[changed] for p, changed in forms.items() if p in own.get(changed, ())}

    def _tasks(
        self, how: ModelTuning, has: Mapping[Problem, LoweredModel], static: StaticChoices
    ) -> tuple[list[Task], Twins]:
        searcher, offers = find_searcher(how.tuning.searcher), how.equipment.offers
        tasks, twins = list[Task](), dict[Problem, tuple[Problem, ...]]()
        for lowered in {id(each): each for each in has.values()}.values():
            own = [problem for problem, each in has.items() if each is lowered]
            alike = twins_of(lowered.program.operators, own)
            given = static, how.target, searcher, how.lessons, offers, how.tell
            tasks += make_tasks(lowered.program, alike, *given)
            twins |= alike
        return tasks, twins

    def missing(self, form: Form) -> list[Problem]:
        """Return the problems of a form that nothing was chosen for."""
        return [problem for problem in form.problems if problem not in self.choices.options]

    def complete(self, form: Form) -> bool:
        """Let the models choose for the problems of a form that nothing was chosen for, if they can."""
        missing = self.missing(form)
        if not missing:
            return True
        try:
            shortlists = self.estimates.of(missing)
            asked = shortlists.values(), self.compiler, self.how.tell
            found = choose_among(*asked, count=ONE)
        except ScheduleError:
            return False
        self.choices = self.choices.beside(static_choices(found))
        return True


def best_seconds(choices: Choices) -> dict[Problem, float]:
    """Return the time of the fastest candidate of each problem that was measured."""
    best = {problem: result.best for problem, result in choices.results.items()}
    return {problem: trial.cost for problem, trial in best.items() if trial is not None}
