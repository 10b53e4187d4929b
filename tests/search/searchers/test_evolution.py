"""Tuna, algorithm 4: the step, and what fitness means."""

import numpy as np
import pytest

from wpk.search.searchers.evolution import EvolutionOptions, EvolutionSearch, centred_ranks
from wpk.search.searchers.replay import Recording


def test_ranks_are_centred_and_do_not_depend_on_scale() -> None:
    values = np.asarray([3.0, -1.0, 10.0, 4.0, 0.0])
    assert centred_ranks(values).tolist() == [0.0, -0.5, 0.5, 0.25, -0.25]
    assert centred_ranks(1e-6 * values).tolist() == centred_ranks(values).tolist()


def test_equal_values_share_their_rank_and_failures_are_last() -> None:
    ranks = centred_ranks(-np.asarray([np.inf, 1.0, np.inf]))
    assert ranks.tolist() == [-0.25, 0.5, -0.25]
    assert centred_ranks(np.asarray([2.0])).tolist() == [-0.5]
    assert centred_ranks(np.full(4, np.inf)).tolist() == [0, 0, 0, 0]


def test_a_step_is_the_algorithms(bowl: Recording) -> None:
    options = EvolutionOptions(samples=4, deviation=0.3, learning_rate=0.1)
    searcher = EvolutionSearch(bowl.space, 1, options)
    rows = [10, 500, 900, 1400]
    searcher.tell([bowl.trial(bowl.space.schedule(row)) for row in rows])
    theta = np.full(4, 0.5, np.float32)
    fitness = centred_ranks(-searcher.ledger.costs[rows])
    total = np.zeros(4)
    for row, value in zip(rows, fitness, strict=True):
        epsilon = (bowl.space.point(row) - theta) / 0.3
        total += value * epsilon
    expected = theta + 0.1 * total / (4 * 0.3)
    assert ((expected > 0) & (expected < 1)).all()
    assert searcher._step(theta, rows) == pytest.approx(expected, rel=1e-5)


def test_the_point_starts_at_the_fastest_of_the_random_schedules(bowl: Recording) -> None:
    searcher = EvolutionSearch(bowl.space, 4)
    schedules = searcher.ask(16)
    searcher.tell([bowl.trial(schedule) for schedule in schedules[:15]])
    assert searcher._theta is None
    searcher.tell([bowl.trial(schedules[15])])
    fastest = min(schedules, key=lambda schedule: bowl.trial(schedule).cost)
    row = bowl.space.row(fastest.parameters())
    assert row is not None
    assert searcher._theta == pytest.approx(bowl.space.point(row))


def test_the_point_climbs(bowl: Recording) -> None:
    best = np.asarray([1 / 3, 5 / 7, 2 / 5, 3 / 7])
    nearer = []
    for seed in range(6):
        searcher = EvolutionSearch(bowl.space, seed)
        distances = []
        for _ in range(16):
            schedules = searcher.ask(8)
            searcher.tell([bowl.trial(schedule) for schedule in schedules])
            if searcher._theta is not None:
                distances.append(float(np.linalg.norm(searcher._theta - best)))
        nearer.append(np.mean(distances[-4:]) / distances[0])
    assert np.mean(nearer) < 0.8
