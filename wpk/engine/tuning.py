"""Choose every problem's schedule by measuring: searchers propose, the GPU decides, the store remembers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wpk.build.nvrtc import load_nvrtc
from wpk.build.pool import Compilation
from wpk.device.presence import GpuFacts
from wpk.device.process import GpuProcess
from wpk.engine.assembly import Setting
from wpk.engine.cases import make_cases
from wpk.engine.plan import Plan
from wpk.engine.selection import selected_problems
from wpk.engine.trials import Candidate, OpenGpu, TrialRunner
from wpk.lowering.model import LoweredModel
from wpk.performance.bound import bound
from wpk.problems import Problem
from wpk.progress import Progress as Tell
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.budget import Budget, Effort
from wpk.search.features import problem_features
from wpk.search.model_search import Compiler, Found
from wpk.search.registry import MakeSearcher, find_searcher
from wpk.search.shortlist import Shortlist, score_one
from wpk.search.space import SearchSpace
from wpk.search.static_search import Choice, Finalist, choose_spilling
from wpk.search.store import TuningStore
from wpk.search.store_key import Setup, StoreKey
from wpk.search.store_lookup import look_up
from wpk.search.store_record import Run
from wpk.search.tune import tune
from wpk.search.tune_record import Contender, Progress, Request, Session, Task, Tuned
from wpk.targets.target import Target
from wpk.trial import Regime, Status, Trial


@dataclass(frozen=True)
class Tuning:
    """How to tune.

    Attributes:
        searcher: Name of the searcher.
        effort: How thoroughly.
        budget: What it may cost; None for what the effort says.
        seed: Fixes the search.
        store: The file of all trials.
        gpu: The GPU that measures.
        operators: Patterns of the operators to measure (`wpk.engine.selection`); empty for all.
            The others keep the static choice.
        run: The run in the store that the trials are entered under; None begins one.
    """

    searcher: str
    effort: Effort
    budget: Budget | None
    seed: int
    store: Path
    gpu: GpuFacts
    operators: tuple[str, ...] = ()
    run: Run | None = None


def tune_model(
    lowered: LoweredModel,
    plan: Plan,
    found: Found,
    setting: Setting,
    compiler: Compiler,
    tuning: Tuning,
    tell: Tell,
    open_gpu: OpenGpu = GpuProcess,
) -> Found:
    """The choices with the fastest correct schedule of each problem.

    The static choices are candidates like all others. A problem of which nothing ran correctly keeps
    its static choice, which the check of the whole plan then judges.

    Args:
        lowered: The model.
        plan: Its plan by the static search.
        found: The static search's choices, and what the templates have to offer.
        setting: What plans are written for.
        compiler: Compiles kernels.
        tuning: How to tune.
        tell: Told of the progress.
        open_gpu: Starts a process that executes candidates.

    Raises:
        KeyboardInterrupt: All trials up to then are in the store; the same command goes on from there.
        StoreError: The store cannot be used.
        EngineError: The GPU cannot be used.
    """
    regime = deciding_regime(plan, setting.target)
    make = find_searcher(tuning.searcher)
    named = selected_problems(lowered.program.operators, tuning.operators)
    tell("computing references", 0, 1)
    cases = make_cases(lowered, plan, setting, tuning.seed)
    tell("computing references", 1, 1)
    tasks = [t for t in _tasks(plan, found, setting.target, make) if t.problem in named]
    setup = Setup(
        setting.target.name, setting.target.arch, load_nvrtc().identity, tuning.gpu.driver
    )
    with (
        TuningStore(tuning.store) as store,
        TrialRunner(cases, regime, open_gpu=open_gpu) as runner,
    ):
        argv = ["wpk", "optimize", plan.provenance.model]
        run = tuning.run or store.begin_run(argv, tuning.seed)
        bench = _Bench(setting.target, compiler, runner)
        session = Session(store, run, setup, regime, tuning.effort, tuning.budget, bench)
        _measure_static(
            {task.problem: found.choices[task.problem] for task in tasks}, session, tell
        )
        tuned = tune(tasks, session, _Reporter(tell))
        choices = {p: bench.choice(found, t) for p, t in tuned.items() if t.best is not None}
    return replace(
        found,
        choices={**found.choices, **choices},
        kernels={**found.kernels, **{c.source.digest: c.kernel for c in bench.built() if c.kernel}},
        tuned=tuned,
        regime=regime,
    )


def deciding_regime(plan: Plan, target: Target) -> Regime:
    """What the caches hold in a deployed engine: warm if all that it touches fits in L2."""
    touched = plan.memory.weight_bytes + plan.memory.arena_bytes
    return Regime.WARM if touched <= target.l2_bytes else Regime.COLD


def _tasks(plan: Plan, found: Found, target: Target, make: MakeSearcher) -> list[Task]:
    counts: dict[Problem, int] = {}
    for step in plan.steps:
        counts[step.operator.problem] = counts.get(step.operator.problem, 0) + 1
    return [
        Task(
            problem=problem,
            count=count,
            estimate=found.choices[problem].finalist.scored.estimate,
            bound=found.choices[problem].bound.seconds,
            floor=target.launch_seconds,
            contenders=tuple(
                _contender(problem, each, make) for each in found.prepared[problem].shortlists
            ),
        )
        for problem, count in counts.items()
    ]


def _contender(problem: Problem, offer: Shortlist, make: MakeSearcher) -> Contender:
    """A template's searcher over the schedules that the score kept."""
    template = offer.template

    def begin(seed: int) -> Any:
        kept = [scored.schedule.columns() for scored in offer.ranked]
        columns = {name: np.concatenate([each[name] for each in kept]) for name in kept[0]}
        space = SearchSpace(template.schedule_type, columns, problem_features(problem))
        return make(space, seed)

    return Contender(template.name, str(template.version), begin)


def _measure_static(choices: dict[Problem, Choice], session: Session, tell: Tell) -> None:
    """Try the static choices first: tuning can then only improve on them."""
    stage = "measuring static choices"
    for done, (problem, choice) in enumerate(choices.items()):
        tell(stage, done, len(choices))
        template = choice.finalist.template
        key = StoreKey(problem, template.name, str(template.version), session.setup)
        schedule = choice.finalist.scored.schedule.parameters()
        known = look_up(session.store, key, session.regime).known
        if any(each.trial.schedule == schedule for each in known):
            continue
        for trial in session.measure([Request(problem, key.template, key.version, schedule)]):
            session.store.record(session.run.id, key, trial, session.regime)
    tell(stage, len(choices), len(choices))


class _Reporter:
    """Tells of every batch: how many problems are finished, and how long the others will take."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, progress: Progress) -> None:
        done = progress.place - (not progress.note.startswith("stopped"))
        self._tell("tuning problems", done, progress.problems, progress.eta)


class _Bench:
    """Compiles, checks and times what the tuning loop asks for."""

    def __init__(self, target: Target, compiler: Compiler, runner: TrialRunner) -> None:
        self._target, self._compiler, self._runner = target, compiler, runner
        self._built: dict[str, Compilation] = {}

    def __call__(self, requests: Sequence[Request]) -> Iterator[Trial]:
        finalists = [self.finalist(r.problem, r.template, r.schedule) for r in requests]
        self._build(finalists)
        for request, finalist in zip(requests, finalists, strict=True):
            yield self._trial(request, finalist)

    def built(self) -> list[Compilation]:
        """All that was compiled."""
        return list(self._built.values())

    def finalist(
        self, problem: Problem, name: str, parameters: tuple[tuple[str, int], ...]
    ) -> Finalist:
        template = TEMPLATE_OF[name]
        schedule = template.schedule_from(parameters)
        limit = bound(problem, self._target)
        return Finalist(
            scored=score_one(problem, template, schedule, self._target, limit),
            template=template,
            sources=template.instantiate(problem, schedule),
            launches=template.launches(problem, schedule),
        )

    def choice(self, found: Found, tuned: Tuned) -> Choice:
        """The fastest of a problem as a choice, with what the compiler says of it."""
        if tuned.best is None:
            raise ValueError("nothing of the problem ran")
        best = tuned.best
        finalist = self.finalist(tuned.problem, best.template, best.trial.schedule)
        self._build([finalist])
        resources = {
            digest: each.kernel.resources if each.kernel is not None else str(each.error)
            for digest, each in self._built.items()
        }
        chosen = choose_spilling(found.prepared[tuned.problem], [finalist], resources)
        if chosen is None:
            raise ValueError(f"{finalist.template.name} ran, and its resources are refused")
        compiled = tuple(
            each.template for each in tuned.tried if each.trial.status is not Status.COMPILE_FAILED
        )
        return replace(chosen, record=replace(chosen.record, finalists=compiled))

    def _build(self, finalists: Sequence[Finalist]) -> None:
        sources = {s.digest: s for each in finalists for s in each.sources}
        fresh = [source for digest, source in sources.items() if digest not in self._built]
        for outcome in self._compiler(fresh):
            self._built[outcome.source.digest] = outcome

    def _trial(self, request: Request, finalist: Finalist) -> Trial:
        outcomes = [self._built[source.digest] for source in finalist.sources]
        kernels = {}
        for outcome in outcomes:
            if outcome.kernel is None:
                return Trial(request.schedule, outcome.status, (), str(outcome.error))
            kernels[outcome.source.digest] = outcome.kernel
        return self._runner.trial(Candidate(request.problem, finalist, kernels))
