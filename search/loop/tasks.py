"""What there is to tune: every problem with the templates and libraries that compete for it."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

from wpk.bench import Offers
from wpk.candidate import Candidate, Kind, Maker
from wpk.libraries import ALIGNMENT, LibraryOffer
from wpk.lowering.program import Program
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.search.loop.task import Contender, Rival, Task
from wpk.search.models import PROMISING, Shortlist, StaticChoices
from wpk.search.searchers import MakeSearcher, SearchSpace
from wpk.targets import Target


def make_tasks(
    program: Program,
    problems: Collection[Problem],
    static: StaticChoices,
    target: Target,
    searcher: MakeSearcher,
    offers: Offers,
    tell: Progress,
) -> list[Task]:
    """A task for each of some problems.

    Args:
        program: The model.
        problems: Those of its problems that are tuned.
        static: What the models have to say of them.
        target: The GPU.
        searcher: Begins the search of a template's space.
        offers: What libraries offer.
        tell: Told of the progress.
    """
    stage = "asking libraries"
    tell(stage, 0, 1)
    counts = Counter(operator.problem for operator in program.operators)
    tasks = [
        Task(
            problem=problem,
            count=count,
            estimate=static.kernels[problem].finalist.prediction.estimate,
            bound=static.kernels[problem].bound.seconds,
            floor=target.launch_seconds,
            contenders=tuple(
                _contender(problem, each, searcher) for each in static.shortlists[problem].templates
            ),
            rivals=tuple(_rival(program, problem, each) for each in offers.of(problem)),
        )
        for problem, count in counts.items()
        if problem in problems
    ]
    tell(stage, 1, 1)
    return tasks


def _rival(program: Program, problem: Problem, offer: LibraryOffer) -> Rival:
    """What a library offers for a problem."""
    library = Maker(offer.library, offer.version, Kind.LIBRARY)
    reason = _why_not_there(program, problem)
    if reason is not None:
        return Rival(library, (), (reason,))
    candidates = tuple(Candidate(library, each) for each in offer.configurations)
    return Rival(library, candidates, offer.refusals)


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
        kept = [prediction.schedule.columns() for prediction in offer.ranked]
        columns = {name: np.concatenate([each[name] for each in kept]) for name in kept[0]}
        features = problem.features()
        space = SearchSpace(template.schedule_type, columns, features, PROMISING)
        return make(space, seed)

    return Contender(template.maker, offer.ranked[0].estimate, begin)
