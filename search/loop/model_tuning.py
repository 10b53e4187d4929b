"""Every problem's schedule is chosen by measuring: searchers propose, the GPU decides, the store remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from wpk.lowering.lowered_model import LoweredModel
from wpk.phases import Phases
from wpk.plan import Plan
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.budget import Budget
from wpk.search.loop.choices import Choices, after_tuning
from wpk.search.loop.lessons import Lessons
from wpk.search.loop.selection import selected_problems
from wpk.search.loop.task import Task, make_tasks
from wpk.search.loop.tune import tune
from wpk.search.loop.tuning import Equipment, Session, Tuning
from wpk.search.loop.twins import Twins, of_all_twins, twins_of
from wpk.search.models import StaticChoices
from wpk.search.searchers import find_searcher
from wpk.search.store import MODELS, RunRecord, StoreKey, TuningStore, look_up
from wpk.targets import Target
from wpk.trial import Regime, Trial
from wpk.trial_bench import (
    Bench,
    CompileAhead,
    FormCases,
    ModelCases,
    OddShapes,
    Request,
    TrialRunner,
    require_memory,
)

SeedCases = tuple[ModelCases, ModelCases] | tuple[FormCases, FormCases]
"""Cases at two seeds."""


@dataclass(frozen=True)
class ModelTuning:
    """What tuning the problems of a model, in all of its forms, shares.

    Attributes:
        plan: The plan of its usual form by the static search.
        target: The GPU.
        equipment: What measuring takes.
        tuning: How to tune.
        run: The run in the store that trials are entered under.
        tell: Told of the progress, and of what measuring waits for.
        cases: What candidates of the usual form's problems are checked and timed on, at two seeds.
    """

    plan: Plan
    target: Target
    equipment: Equipment
    tuning: Tuning
    run: RunRecord
    tell: Phases
    cases: tuple[ModelCases, ModelCases]

    def within(self, budget: Budget) -> ModelTuning:
        """Return the same within another budget."""
        return replace(self, tuning=replace(self.tuning, budget=budget))

    @property
    def regime(self) -> Regime:
        """What the caches hold in a deployed engine."""
        return deciding_regime(self.plan, self.target)

    @property
    def lessons(self) -> Lessons:
        """What the store has to teach."""
        setup = self.tuning.setup(self.target)
        return Lessons(self.tuning.store, self.target, setup, self.regime, self.run.id)

    def tuned(
        self,
        tasks: Sequence[Task],
        twins: Twins,
        static: StaticChoices,
        cases: SeedCases,
        budget: Callable[[], Budget],
    ) -> Choices:
        """Measure, the static choices first; return the fastest that is correct of each problem.

        The static choice of a problem is measured as soon as its case is there, while those of others are computed.

        Args:
            tasks: The problems.
            twins: Those that each of them stands for.
            static: What the models have to say of them, and of others that are not tuned.
            cases: What their candidates are checked and timed on.
            budget: Says, once the static choices are measured, what may be spent from then on.

        Raises:
            KeyboardInterrupt: All trials up to then are in the store.
            StoreError: The store cannot be used.
            EngineError: The GPU cannot be used.
        """
        with self._session(cases) as session:
            problems = [task.problem for task in tasks]
            measured = _measure_static(static, problems, session, self.tell)
            known = [replace(task, measured=measured[task.problem]) for task in tasks]
            found = tune(known, replace(session, budget=budget()), self.tell)
            results = of_all_twins(found, twins)
            return after_tuning(static, results, session.bench, session.regime)

    @contextmanager
    def _session(self, cases: SeedCases) -> Iterator[Session]:
        """A session with an open store and a bench that compiles ahead."""
        equipment, tuning, (first, second) = self.equipment, self.tuning, cases
        coming = first.coming_bytes + second.coming_bytes
        runner = TrialRunner(equipment.lease, first, self.regime, second, coming_bytes=coming)
        ahead = CompileAhead(self.target, equipment.submit)
        with TuningStore(tuning.store) as store, ahead:
            yield Session(
                store=store,
                run=self.run,
                setup=tuning.setup(self.target),
                regime=self.regime,
                effort=tuning.effort,
                budget=tuning.budget,
                bench=Bench(
                    ahead, runner, OddShapes(self.target, equipment.lease, ahead), self.tell
                ),
            )


def cases_of(lowered: LoweredModel, seed: int, phases: Phases) -> tuple[ModelCases, ModelCases]:
    """Return what candidates of a model's problems are checked and timed on; nothing is computed yet.

    Raises:
        EngineError: References do not fit into the machine's memory.
    """
    require_memory(lowered.program)
    first, second = (ModelCases(lowered, seed + n, phases) for n in (0, 1))
    return first, second


def tune_model(
    lowered: LoweredModel, static: StaticChoices, how: ModelTuning, budget: Callable[[], Budget]
) -> Choices:
    """Return the choices with the fastest correct schedule of each problem.

    The static choices are candidates like all others. A problem of which nothing ran correctly keeps
    its static choice, which the check of the whole plan then judges.

    Args:
        lowered: The model.
        static: The static search's choices, and what the templates have to offer.
        how: How it is tuned, and on what.
        budget: Says, once the static choices are measured, what may be spent from then on.

    Raises:
        KeyboardInterrupt: All trials up to then are in the store; the same command goes on from there.
        StoreError: The store cannot be used.
        EngineError: The GPU cannot be used.
    """
    program, searcher = lowered.program, find_searcher(how.tuning.searcher)
    named = selected_problems(program.operators, how.tuning.operators)
    twins, offers = twins_of(program.operators, named), how.equipment.offers
    asked = program, twins, static, how.target, searcher, how.lessons, offers, how.tell
    return how.tuned(make_tasks(*asked), twins, static, how.cases, budget)


def deciding_regime(plan: Plan, target: Target) -> Regime:
    """Return what the caches hold in a deployed engine: warm if all that it touches fits in L2."""
    touched = plan.memory.weight_bytes + plan.memory.arena_bytes
    return Regime.WARM if touched <= target.l2_bytes else Regime.COLD


def _measure_static(
    static: StaticChoices, problems: list[Problem], session: Session, tell: Progress
) -> dict[Problem, float | None]:
    """Try the static choices first: tuning can then only improve on them.

    Returns:
        What each took, in seconds; None where it did not run.
    """
    seconds: dict[Problem, float | None] = dict.fromkeys(problems)
    requests = [Request(p, static.kernels[p].finalist.candidate) for p in problems]
    keys = [StoreKey(each.problem, each.candidate.maker, session.setup) for each in requests]
    known = [_trials_of(*both, session) for both in zip(requests, keys, strict=True)]
    bench = session.bench
    bench.expect([each for each, trials in zip(requests, known, strict=True) if not trials])
    stage = "measuring static choices"
    for done, (request, key, trials) in enumerate(zip(requests, keys, known, strict=True)):
        tell(stage, done, len(problems))
        for trial in [] if trials else bench.measure([request]):
            own = replace(trial, proposer=MODELS)
            session.store.record(session.run.id, key, own, session.regime)
            trials.append(own)
        seconds[request.problem] = next((trial.cost for trial in trials if trial.ran), None)
    tell(stage, len(problems), len(problems))
    return seconds


def _trials_of(request: Request, key: StoreKey, session: Session) -> list[Trial]:
    """What the store knows of a candidate."""
    histories = look_up(session.store, key, session.regime).histories
    return [each.trial for each in histories if each.trial.candidate == request.candidate]
