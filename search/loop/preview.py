"""A preview says what ``wpk optimize`` would do; nothing is compiled or measured for it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wpk.libraries import askable
from wpk.lowering.program import Operator
from wpk.problems import Fallback, Problem
from wpk.progress import Progress
from wpk.schedules import TEMPLATES
from wpk.search.loop.selection import selected_problems
from wpk.search.loop.tuning import Tuning
from wpk.search.loop.twins import twins_of
from wpk.search.models import Pruning, Shortlists, shortlist_problems
from wpk.search.store import StoreKey, TuningStore
from wpk.targets import Target


@dataclass(frozen=True)
class ProblemPreview:
    """This is what would be done for a distinct problem.

    Attributes:
        problem: What to compute.
        operators: Names of its operators.
        shortlists: What the models have to say of it.
        measured: Whether it would be measured; not so of one that differs from another in numbers only.
        known: Schedules of it that the tuning store has trials of.
        fresh: Schedules that would be measured at most, without comparing the best in the end.
        libraries: Those that can be asked for it; what they offer is known on the GPU only.
    """

    problem: Problem
    operators: tuple[str, ...]
    shortlists: Shortlists
    measured: bool
    known: int
    fresh: int
    libraries: tuple[str, ...]


@dataclass(frozen=True)
class Preview:
    """This is what would be done for a model.

    Attributes:
        target: The GPU.
        problems: In order of their first operator.
        tuning: How it would be tuned; None where the models alone choose.
        pace: Seconds that a trial took on average in the tuning store; None where it has none.
        seconds: Estimated time of measuring generated kernels; None where there is no pace to estimate it with.
        limit: What tuning may take at most; None for no limit.
    """

    target: Target
    problems: tuple[ProblemPreview, ...]
    tuning: Tuning | None
    pace: float | None
    seconds: float | None
    limit: float | None


def preview_of(
    operators: Sequence[Operator],
    target: Target,
    tuning: Tuning | None,
    patterns: Sequence[str],
    tell: Progress,
    *,
    skip: Collection[str],
    pruning: Pruning,
) -> Preview:
    """Score every distinct problem and count what would be measured.

    Args:
        operators: Of the program.
        target: The GPU.
        tuning: How to tune; None to choose by models.
        patterns: Of the operators to measure; empty for all.
        tell: Told of the progress.
        skip: Names of templates not to use.
        pruning: What keeps schedules.

    Raises:
        ScheduleError: A problem has no legal schedule.
        EngineError: A pattern matches no operator.
        StoreError: The store cannot be read.
    """
    named = selected_problems(operators, patterns) if tuning is not None else set()
    tuned = twins_of(operators, named)
    names: dict[Problem, list[str]] = {}
    for operator in operators:
        if isinstance(operator.problem, Fallback):
            continue
        names.setdefault(operator.problem, []).append(operator.name)
    scored = shortlist_problems(names, TEMPLATES, target, skip, tell, pruning)
    shortlists = {each.problem: each for each in scored}
    known = _known([shortlists[p] for p in names if p in tuned], target, tuning)
    problems = tuple(
        _problem(tuple(names[problem]), each, known.get(problem, 0), tuning, problem in tuned)
        for problem, each in shortlists.items()
    )
    return _timed(problems, target, tuning)


def _problem(
    operators: tuple[str, ...],
    shortlists: Shortlists,
    known: int,
    tuning: Tuning | None,
    measured: bool,
) -> ProblemPreview:
    fresh = 0
    if tuning is not None and measured:
        kept = sum(each.funnel.kept for each in shortlists.templates)
        fresh = max(0, min(tuning.effort.trials, kept) - known)
    return ProblemPreview(
        problem=shortlists.problem,
        operators=operators,
        shortlists=shortlists,
        measured=measured,
        known=known,
        fresh=fresh,
        libraries=askable(shortlists.problem) if measured else (),
    )


def _known(
    problems: Sequence[Shortlists], target: Target, tuning: Tuning | None
) -> dict[Problem, int]:
    """How many schedules of each problem the store knows; it is not made where there is none."""
    if tuning is None or not tuning.store.is_file():
        return {}
    setup = tuning.setup(target)
    counts: dict[Problem, int] = {}
    with TuningStore(tuning.store) as store:
        for each in problems:
            makers = [shortlist.template.maker for shortlist in each.templates]
            keys = [StoreKey(each.problem, maker, setup) for maker in makers]
            candidates = {(key.maker, r.schedule) for key in keys for r in store.trials(key)}
            counts[each.problem] = len(candidates)
    return counts


def _timed(problems: tuple[ProblemPreview, ...], target: Target, tuning: Tuning | None) -> Preview:
    if tuning is None:
        return Preview(target, problems, None, None, None, None)
    pace = None
    if tuning.store.is_file():
        with TuningStore(tuning.store) as store:
            pace = store.pace(target.name)
    allowed, count = tuning.budget, sum(each.fresh for each in problems)
    if allowed.trials is not None:
        count = min(count, allowed.trials)
    compared = sum(each.fresh > 0 for each in problems)
    count += compared * tuning.effort.finalists * tuning.effort.rounds
    seconds = None if pace is None else pace * count
    if seconds is not None and allowed.seconds is not None:
        seconds = min(seconds, allowed.seconds)
    return Preview(target, problems, tuning, pace, seconds, allowed.seconds)
