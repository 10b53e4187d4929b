"""A task says what there is to tune: a problem, who competes for it, and how much is to be won."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from wpk.candidate import Candidate, Kind, Maker
from wpk.libraries import ALIGNMENT, LibraryOffer
from wpk.lowering.program import Program
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.lessons import Lessons
from wpk.search.loop.twins import Twins
from wpk.search.models import PROMISING, Shortlist, StaticChoices, learned_seconds
from wpk.search.searchers import MakeSearcher, Searcher, SearchSpace
from wpk.targets import Target
from wpk.trial_bench import Offers


@dataclass(frozen=True)
class Contender:
    """A contender is a schedule template that competes for a problem.

    Attributes:
        template: The template.
        promise: Estimated seconds of its best schedule.
        searcher: Begins the search of its space with a seed; called only where what is known does
            not suffice.
    """

    template: Maker
    promise: float
    searcher: Callable[[int], Searcher]


@dataclass(frozen=True)
class Rival:
    """A rival is a library that was asked to compute a problem, too.

    Attributes:
        library: The library.
        candidates: Its implementations, best guess first.
        refusals: Why there are none, or not of every form, in words.
    """

    library: Maker
    candidates: tuple[Candidate, ...]
    refusals: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """A task is a problem to tune; times are in seconds.

    Attributes:
        problem: What to compute.
        count: How many operators of the network have this problem, or one that differs in numbers only.
        estimate: Predicted time of one of them.
        bound: The time that no kernel can beat.
        floor: What a launch costs that depends on the one before.
        contenders: The templates that can carry it, the most promising first.
        rivals: The libraries; none where none is to be tried.
        measured: Time of the static choice; None where that is not known.
    """

    problem: Problem
    count: int
    estimate: float
    bound: float
    floor: float
    contenders: tuple[Contender, ...]
    rivals: tuple[Rival, ...] = ()
    measured: float | None = None

    @property
    def gain(self) -> float:
        """Seconds of the network that tuning can win at most.

        That is, but for a factor that all problems share, the problem's share of the network's
        time, ``count * seconds``, times its headroom, ``1 - (bound + floor) / seconds``. What the static
        choice took decides, and the estimate where it did not run.
        """
        seconds = self.estimate if self.measured is None else self.measured
        return self.count * max(0.0, seconds - self.bound - self.floor)


def make_tasks(
    program: Program,
    twins: Twins,
    static: StaticChoices,
    target: Target,
    searcher: MakeSearcher,
    lessons: Lessons,
    offers: Offers,
    tell: Progress,
) -> list[Task]:
    """Return a task for each of some problems and its twins.

    Args:
        program: The model.
        twins: Those of its problems that are tuned.
        static: What the models have to say of them.
        target: The GPU.
        searcher: Begins the search of a template's space.
        lessons: What searchers can learn from other problems.
        offers: What libraries offer.
        tell: Told of the progress.
    """
    stage = "asking libraries"
    tell(stage, 0, 1)
    counts = Counter(operator.problem for operator in program.operators)
    tuned = [problem for problem in counts if problem in twins]
    tasks = [
        Task(
            problem=problem,
            count=sum(counts[each] for each in twins[problem]),
            estimate=static.kernels[problem].finalist.prediction.estimate,
            bound=static.kernels[problem].bound.seconds,
            floor=target.launch_seconds,
            contenders=tuple(
                _contender(problem, each, target, searcher, lessons)
                for each in static.shortlists[problem].templates
            ),
            rivals=tuple(_rival(program, twins[problem], each) for each in offers.of(problem)),
        )
        for problem in tuned
    ]
    tell(stage, 1, 1)
    return tasks


def _rival(program: Program, alike: Collection[Problem], offer: LibraryOffer) -> Rival:
    """What a library offers for a problem and its twins."""
    reason = _why_not_there(program, alike)
    library = Maker(offer.library, offer.version, Kind.LIBRARY)
    if reason is not None:
        return Rival(library, (), (reason,))
    candidates = tuple(Candidate(library, each) for each in offer.configurations)
    return Rival(library, candidates, offer.refusals)


def _why_not_there(program: Program, problems: Collection[Problem]) -> str | None:
    """Why no library can work where the operands of some problems lie; None if it can."""
    for operator in program.operators:
        for name in (*operator.inputs, *operator.outputs):
            value = program.values.get(name)
            if operator.problem in problems and value is not None and value.offset % ALIGNMENT:
                return (
                    f"'{name}' lies {value.offset} bytes into its memory, and libraries are "
                    f"promised multiples of {ALIGNMENT}"
                )
    return None


def _contender(
    problem: Problem, offer: Shortlist, target: Target, make: MakeSearcher, lessons: Lessons
) -> Contender:
    """A template's searcher over the schedules that the score kept.

    Those that the learned costs like best come first; where these say nothing of the template, the estimate does.
    """
    template = offer.template

    def begin(seed: int) -> Searcher:
        columns, predicted = offer.kept.columns, offer.kept.estimate
        learned = learned_seconds(problem, template, target, columns)
        if learned is not None:
            order = np.argsort(learned, kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
            predicted = predicted[order]
        about = problem.features(), PROMISING, predicted, lessons.of(template)
        return make(SearchSpace(template.schedule_type, columns, *about), seed)

    return Contender(template.maker, offer.least, begin)
