"""Choose every problem's schedule by measuring: searchers propose, the GPU decides, the store remembers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wpk.build.nvrtc import load_nvrtc
from wpk.device.presence import GpuFacts
from wpk.device.timing import noise_band
from wpk.libraries.cudnn_problems import ALIGNMENT
from wpk.lowering.model import LoweredModel
from wpk.lowering.program import Program
from wpk.plans.assembly import Setting
from wpk.plans.plan import Plan
from wpk.problems import Problem
from wpk.progress import Progress as Tell
from wpk.search.budget import Budget, Effort
from wpk.search.model_search import Found
from wpk.search.registry import MakeSearcher, find_searcher
from wpk.search.shortlist import PROMISING, Shortlist
from wpk.search.space import SearchSpace
from wpk.search.static_search import Choice
from wpk.search.store import MODELS, TuningStore
from wpk.search.store_key import Setup, StoreKey
from wpk.search.store_lookup import look_up
from wpk.search.store_record import Run
from wpk.search.tune import tune
from wpk.search.tune_record import Contender, Progress, Request, Rival, Session, Task, Tuned
from wpk.targets.target import Target
from wpk.trial import Regime
from wpk.tuning.bench import Bench
from wpk.tuning.cases import Case, Cases, make_cases
from wpk.tuning.compile_ahead import CompileAhead, Submit
from wpk.tuning.gpu_lease import GpuLease
from wpk.tuning.host_memory import SEEDS, require_memory
from wpk.tuning.odd_shapes import OddShapes
from wpk.tuning.offers import Offers
from wpk.tuning.selection import selected_problems
from wpk.tuning.trials import TrialRunner


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
        operators: Patterns of the operators to measure (`wpk.tuning.selection`); empty for all.
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


@dataclass(frozen=True)
class Means:
    """What measuring takes.

    Attributes:
        submit: Has kernels compiled.
        lease: The process that executes candidates.
        offers: What libraries offer for the model's problems.
    """

    submit: Submit
    lease: GpuLease
    offers: Offers


def tune_model(
    lowered: LoweredModel,
    plan: Plan,
    found: Found,
    setting: Setting,
    means: Means,
    tuning: Tuning,
    tell: Tell,
) -> Found:
    """The choices with the fastest correct schedule of each problem.

    The static choices are candidates like all others. A problem of which nothing ran correctly keeps
    its static choice, which the check of the whole plan then judges.

    Args:
        lowered: The model.
        plan: Its plan by the static search.
        found: The static search's choices, and what the templates have to offer.
        setting: What plans are written for.
        means: What measuring takes.
        tuning: How to tune.
        tell: Told of the progress.

    Raises:
        KeyboardInterrupt: All trials up to then are in the store; the same command goes on from there.
        StoreError: The store cannot be used.
        EngineError: The GPU cannot be used, or references do not fit into the machine's memory.
    """
    require_memory(lowered.program)
    regime = deciding_regime(plan, setting.target)
    make = find_searcher(tuning.searcher)
    named = selected_problems(lowered.program.operators, tuning.operators)

    def cases(seed: int) -> dict[Problem, Case]:
        tell("computing references", 0, 1)
        made = make_cases(lowered, plan, setting, seed)
        tell("computing references", 1, 1)
        return made

    first, second = (Cases(partial(cases, tuning.seed + number)) for number in range(SEEDS))
    tasks = [t for t in _tasks(plan, found, setting.target, make) if t.problem in named]
    tasks = _with_rivals(tasks, lowered.program, means.offers, tell)
    setup = Setup(
        setting.target.name, setting.target.arch, load_nvrtc().identity, tuning.gpu.driver
    )
    runner = TrialRunner(means.lease, first, regime, second)
    with TuningStore(tuning.store) as store, CompileAhead(setting.target, means.submit) as ahead:
        argv = ["wpk", "optimize", plan.provenance.model]
        run = tuning.run or store.begin_run(argv, tuning.seed)
        bench = Bench(ahead, runner, OddShapes(setting, means.lease, ahead))
        limits = tuning.effort, tuning.budget
        session = Session(store, run, setup, regime, *limits, bench, clock_without(first, second))
        _measure_static(
            {task.problem: found.choices[task.problem] for task in tasks}, session, tell
        )
        tuned = tune(tasks, session, _Reporter(tell))
        return _settled(found, tuned, bench, regime)


def _settled(found: Found, tuned: dict[Problem, Tuned], bench: Bench, regime: Regime) -> Found:
    """What was found, with the best of every problem that was tuned."""
    outcomes = [_Outcome(each) for each in tuned.values()]
    choices = {
        each.problem: bench.choice(found, each.tuned, each.generated)
        for each in outcomes
        if each.generated is not None
    }
    library = {
        each.problem: bench.pick(found, each.tuned, each.library)
        for each in outcomes
        if each.library is not None
    }
    built = {each.source.digest: each.kernel for each in bench.built() if each.kernel}
    return replace(
        found,
        choices={**found.choices, **choices},
        kernels={**found.kernels, **built},
        tuned=tuned,
        regime=regime,
        library=library,
        picks=frozenset(each.problem for each in outcomes if each.library_wins),
    )


class _Outcome:
    """The best of both families for a problem, and which of them is the choice."""

    def __init__(self, tuned: Tuned) -> None:
        self.tuned, self.problem = tuned, tuned.problem
        self.generated = tuned.best_of(library=False)
        self.library = tuned.best_of(library=True)

    @property
    def library_wins(self) -> bool:
        """Whether the library is faster beyond noise; else the kernel that anyone can check."""
        if self.library is None or self.generated is None:
            return self.library is not None
        _, high = noise_band(self.library.trial.seconds)
        low, _ = noise_band(self.generated.trial.seconds)
        return high < low


def clock_without(*cases: Cases) -> Callable[[], float]:
    """Seconds, of which those spent on references are no part: a budget is for searching."""
    return lambda: time.monotonic() - sum(each.seconds for each in cases)


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


def _with_rivals(tasks: Sequence[Task], program: Program, offers: Offers, tell: Tell) -> list[Task]:
    """The tasks with what libraries offer for them."""
    stage = "asking libraries"
    tell(stage, 0, 1)
    found = []
    for task in tasks:
        offer, reason = offers.of(task.problem), _why_not_there(program, task.problem)
        if reason is None:
            rival = Rival(offer.library, offer.version, offer.configurations, offer.refusals)
        else:
            rival = Rival(offer.library, offer.version, (), (reason,))
        found.append(replace(task, rival=rival))
    tell(stage, 1, 1)
    return found


def _why_not_there(program: Program, problem: Problem) -> str | None:
    """Why no library can work where the operands of a problem lie; None if it can."""
    for operator in program.operators:
        for name in (*operator.inputs, *operator.outputs):
            value = program.values.get(name)
            if operator.problem == problem and value is not None and value.offset % ALIGNMENT:
                return (
                    f"'{name}' lies {value.offset} bytes into its memory, and libraries are "
                    f"promised multiples of {ALIGNMENT}"
                )
    return None


def _contender(problem: Problem, offer: Shortlist, make: MakeSearcher) -> Contender:
    """A template's searcher over the schedules that the score kept."""
    template = offer.template

    def begin(seed: int) -> Any:
        kept = [scored.schedule.columns() for scored in offer.ranked]
        columns = {name: np.concatenate([each[name] for each in kept]) for name in kept[0]}
        features = problem.features()
        space = SearchSpace(template.schedule_type, columns, features, PROMISING)
        return make(space, seed)

    promise = offer.ranked[0].estimate
    return Contender(template.name, str(template.version), promise, begin)


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
        for trial in session.bench.measure([Request(problem, key.template, key.version, schedule)]):
            session.store.record(session.run.id, key, trial, session.regime, searcher=MODELS)
    tell(stage, len(choices), len(choices))


class _Reporter:
    """Tells of every trial: how many problems are finished, and how long the others will take."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def __call__(self, progress: Progress) -> None:
        done = progress.place - (not progress.note.startswith("stopped"))
        self._tell("tuning problems", done, progress.problems, progress.eta)
