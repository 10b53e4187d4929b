"""Every problem's schedule is chosen by measuring: searchers propose, the GPU decides, the store remembers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from wpk.lowering.lowered_model import LoweredModel
from wpk.plan import Plan
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.choices import Choices, after_tuning
from wpk.search.loop.lessons import Lessons
from wpk.search.loop.selection import selected_problems
from wpk.search.loop.task import make_tasks
from wpk.search.loop.tune import tune
from wpk.search.loop.tuning import Equipment, Session, Tuning
from wpk.search.loop.twins import of_all_twins, twins_of
from wpk.search.models import StaticChoices
from wpk.search.searchers import find_searcher
from wpk.search.store import MODELS, RunRecord, StoreKey, TuningStore, look_up
from wpk.targets import Target
from wpk.trial import Regime
from wpk.trial_bench import (
    Bench,
    Case,
    Cases,
    CompileAhead,
    OddShapes,
    Request,
    TrialRunner,
    make_cases,
    require_memory,
)


def tune_model(
    lowered: LoweredModel,
    plan: Plan,
    static: StaticChoices,
    target: Target,
    equipment: Equipment,
    tuning: Tuning,
    run: RunRecord,
    tell: Progress,
) -> Choices:
    """Return the choices with the fastest correct schedule of each problem.

    The static choices are candidates like all others. A problem of which nothing ran correctly keeps
    its static choice, which the check of the whole plan then judges.

    Args:
        lowered: The model.
        plan: Its plan by the static search.
        static: The static search's choices, and what the templates have to offer.
        target: The GPU.
        equipment: What measuring takes.
        tuning: How to tune.
        run: The run in the store that trials are entered under.
        tell: Told of the progress.

    Raises:
        KeyboardInterrupt: All trials up to then are in the store; the same command goes on from there.
        StoreError: The store cannot be used.
        EngineError: The GPU cannot be used, or references do not fit into the machine's memory.
    """
    require_memory(lowered.program)
    program, searcher = lowered.program, find_searcher(tuning.searcher)
    named = selected_problems(program.operators, tuning.operators)
    twins = twins_of(program.operators, named)
    setup, regime = tuning.setup(target), deciding_regime(plan, target)
    lessons = Lessons(tuning.store, target, setup, regime, run.id)
    tasks = make_tasks(program, twins, static, target, searcher, lessons, equipment.offers, tell)
    with _session(lowered, plan, target, equipment, tuning, run, tell) as session:
        measured = _measure_static(static, [task.problem for task in tasks], session, tell)
        known = [replace(task, measured=measured[task.problem]) for task in tasks]
        results = of_all_twins(tune(known, session, tell), twins)
        return after_tuning(static, results, session.bench, session.regime)


@contextmanager
def _session(
    lowered: LoweredModel,
    plan: Plan,
    target: Target,
    equipment: Equipment,
    tuning: Tuning,
    run: RunRecord,
    tell: Progress,
) -> Iterator[Session]:
    """A session with an open store and a bench that compiles ahead."""

    def cases(seed: int) -> dict[Problem, Case]:
        tell("computing references", 0, 1)
        made = make_cases(lowered, plan, seed)
        tell("computing references", 1, 1)
        return made

    first, second = (Cases(partial(cases, tuning.seed + number)) for number in (0, 1))
    regime = deciding_regime(plan, target)
    runner = TrialRunner(equipment.lease, first, regime, second)
    with TuningStore(tuning.store) as store, CompileAhead(target, equipment.submit) as ahead:
        yield Session(
            store=store,
            run=run,
            setup=tuning.setup(target),
            regime=regime,
            effort=tuning.effort,
            budget=tuning.budget,
            bench=Bench(ahead, runner, OddShapes(target, equipment.lease, ahead)),
            clock=clock_without(first, second),
        )


def clock_without(*cases: Cases) -> Callable[[], float]:
    """Return a clock of seconds that stands still while references are computed: a budget is for searching."""
    return lambda: time.monotonic() - sum(each.seconds for each in cases)


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
    stage = "measuring static choices"
    for done, problem in enumerate(problems):
        tell(stage, done, len(problems))
        candidate = static.kernels[problem].finalist.candidate
        key = StoreKey(problem, candidate.maker, session.setup)
        known = look_up(session.store, key, session.regime).histories
        trials = [each.trial for each in known if each.trial.candidate == candidate]
        for trial in [] if trials else session.bench.measure([Request(problem, candidate)]):
            own = replace(trial, proposer=MODELS)
            session.store.record(session.run.id, key, own, session.regime)
            trials.append(own)
        seconds[problem] = next((trial.cost for trial in trials if trial.ran), None)
    tell(stage, len(problems), len(problems))
    return seconds
