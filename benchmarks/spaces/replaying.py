"""Searches of recorded problems as production makes them: templates compete, and trials are asked for ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spaces.ablations import Compared
from spaces.recorded import RecordedSpace
from wpk.candidate import Candidate, Maker
from wpk.performance import Floats
from wpk.search.loop.competition import Competition
from wpk.search.loop.tune_problem import WINDOW
from wpk.search.models import PROMISING
from wpk.search.searchers import Experience, Lesson, Searcher, SearchSpace

Rows = NDArray[np.int64]

STORED = 64
"""Trials of a problem that a store is taken to hold: as many as effort 1 makes."""


def experience_of(
    spaces: Sequence[RecordedSpace], template: str, without: str
) -> Experience | None:
    """Return what a store knows that holds all networks but one: of each problem the trials of a random search.

    Args:
        spaces: All that was recorded.
        template: Whose schedules.
        without: The network that is searched now.
    """
    lessons = []
    for space in spaces:
        if space.template.name != template or space.network == without:
            continue
        generator = np.random.default_rng(len(lessons))
        others = generator.permutation(space.kept[PROMISING:])[: STORED - PROMISING]
        rows = np.concatenate([space.kept[:PROMISING], others])
        if np.isfinite(space.costs[rows]).any():
            features, costs = space.problem.features(), space.costs[rows]
            lessons.append(Lesson(features, space.columns(rows), costs, space.estimates[rows]))
    return Experience(tuple(lessons)) if lessons else None


def contenders(
    spaces: Sequence[RecordedSpace],
    rows: Mapping[str, Rows],
    compared: Compared,
    known: Mapping[str, Experience | None],
    promising: int,
    seed: int,
) -> Competition:
    """Return the templates of a problem, each searched by a searcher of its own, as they compete.

    Args:
        spaces: Of one problem, a template each.
        rows: Of each space, by its key, those to search in their order.
        compared: Searches.
        known: What is known of other networks, by template.
        promising: How many of the rows come first.
        seed: Of the search.
    """
    searchers: dict[Maker, Searcher] = {}
    promises: dict[Maker, float] = {}
    for place, space in enumerate(spaces):
        mine, maker = rows[space.key], space.template.maker
        if not len(mine):
            continue
        given = space.problem.features(), promising, space.estimates[mine]
        taught = known[space.template.name] if compared.carries else None
        made = SearchSpace(space.template.schedule_type, space.columns(mine), *given, taught)
        searchers[maker] = compared.make(made, 1000 * seed + place)
        promises[maker] = float(space.estimates[mine].min())
    return Competition(searchers, promises)


def curve(competition: Competition, spaces: Sequence[RecordedSpace], trials: int) -> Floats:
    """Return the least seconds after each trial; the last one again where the search is exhausted."""
    by_maker = {space.template.name: space.by_candidate for space in spaces}
    asked: deque[Candidate] = deque()
    found: list[float] = []
    while len(found) < trials:
        asked += competition.ask(min(trials - len(found), WINDOW) - len(asked))
        if not asked:
            break
        candidate = asked.popleft()
        trial = by_maker[candidate.maker.name][candidate]
        competition.tell(candidate.maker, [trial])
        found.append(trial.cost)
    found += [np.inf] * (trials - len(found))
    return np.minimum.accumulate(np.asarray(found))
