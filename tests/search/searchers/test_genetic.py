"""Woodpecker-DL 2.3: probabilities, elites, crossover, mutation, convergence."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from wpk.search.searchers.genetic import GeneticOptions, GeneticSearch
from wpk.search.searchers.replay import Recording, best_so_far, replay
from wpk.trial import Status, Trial


def _generation(searcher: GeneticSearch, recording: Recording, count: int) -> list[int]:
    schedules = searcher.ask(count)
    searcher.tell([recording.trial(schedule) for schedule in schedules])
    rows = [searcher.space.row(schedule.parameters()) for schedule in schedules]
    return [row for row in rows if row is not None]


def test_parents_are_drawn_with_the_probabilities_of_equation_1(
    record: Callable[..., Recording],
) -> None:
    # Without crossover and mutation a child is its parent: count how often each is one.
    costs = np.asarray([1.0, 2.0, 4.0])
    recording = record((3, 4), lambda point: float(costs[point[0]]), lambda point: point[1] == 0)
    options = GeneticOptions(population=3, elites=1, pressure=1.0, crossover=0.0, mutation=0.0)
    searcher = GeneticSearch(recording.space, 1, options)
    searcher.tell(recording.trials)
    searcher._next_generation()
    draws = 4000
    with searcher._own_random():
        bred = [searcher._breed()[0] for _ in range(draws)]
    expected = (1 / costs) / (1 / costs).sum()
    found = np.bincount(bred, minlength=3) / draws
    deviation = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(found - expected) < 4 * deviation).all()


def test_pressure_sharpens_the_choice(record: Callable[..., Recording]) -> None:
    recording = record((2, 2), lambda point: 1.0 + point[0], lambda point: point[1] == 0)
    shares = []
    for pressure in (1.0, 8.0):
        options = GeneticOptions(pressure=pressure, crossover=0.0, mutation=0.0)
        searcher = GeneticSearch(recording.space, 1, options)
        searcher.tell(recording.trials)
        searcher._next_generation()
        with searcher._own_random():
            shares.append(np.mean([searcher._breed()[0] == 0 for _ in range(500)]))
    assert shares[0] == pytest.approx(2 / 3, abs=0.09)  # four standard deviations
    assert shares[1] > 0.97


def test_children_without_mutation_have_only_their_parents_genes(bowl: Recording) -> None:
    options = GeneticOptions(population=6, elites=2, pressure=1.0, mutation=0.0)
    searcher = GeneticSearch(bowl.space, 3, options)
    parents = bowl.space.genomes[_generation(searcher, bowl, 6)]
    children = np.asarray(_bred(searcher, 50))
    for axis in range(4):
        assert set(children[:, axis]) <= set(parents[:, axis])
    assert any(not (parents == child).all(axis=1).any() for child in children)  # some mix


def test_mutation_brings_genes_that_no_parent_has(bowl: Recording) -> None:
    options = GeneticOptions(population=6, elites=2, mutation=0.5)
    searcher = GeneticSearch(bowl.space, 3, options)
    _generation(searcher, bowl, 6)
    children = np.asarray(_bred(searcher, 200))
    assert [len(set(column)) for column in children.T] == list(bowl.space.shape)


def _bred(searcher: GeneticSearch, count: int) -> list[list[int]]:
    searcher._next_generation()
    with searcher._own_random():
        return [list(searcher._breed()) for _ in range(count)]


def test_elites_pass_and_the_rest_is_bred_anew(bowl: Recording) -> None:
    options = GeneticOptions(population=8, elites=3)
    searcher = GeneticSearch(bowl.space, 1, options)
    first = _generation(searcher, bowl, 8)
    elites = sorted(first, key=lambda row: searcher.ledger.costs[row])[:3]
    children = _generation(searcher, bowl, 5)
    assert searcher._members == {*elites, *children}


def test_failures_do_not_breed(record: Callable[..., Recording]) -> None:
    recording = record((6, 6, 6), lambda point: inf if point[0] else 1e-5 * (1 + point.sum()))
    options = GeneticOptions(population=30, elites=2, mutation=0.0)
    searcher = GeneticSearch(recording.space, 1, options)
    first = _generation(searcher, recording, 30)
    ran = [row for row in first if np.isfinite(searcher.ledger.costs[row])]
    assert 2 <= len(ran) < 30
    assert {child[0] for child in _bred(searcher, 50)} == {0}


def test_takes_a_neighbour_of_an_elite_where_breeding_finds_nothing_new(bowl: Recording) -> None:
    # Clones of one parent are never new.
    options = GeneticOptions(population=4, elites=1, pressure=1000.0, crossover=0.0, mutation=0.0)
    searcher = GeneticSearch(bowl.space, 1, options)
    first = _generation(searcher, bowl, 4)
    fastest = min(first, key=lambda row: searcher.ledger.costs[row])
    assert _generation(searcher, bowl, 1)[0] in bowl.space.neighbours(fastest)


def test_strangers_come_in_after_convergence(record: Callable[..., Recording]) -> None:
    # Two islands: no child of the slow one, nor a neighbour of it, lies on the fast one.
    recording = record(
        (2, 2, 9, 9),
        lambda point: 1e-5 if point[0] else 2e-5,
        lambda point: bool(point[0] == point[1]),
    )
    options = GeneticOptions(population=6, elites=2, mutation=0.0)
    searcher = GeneticSearch(recording.space, 1, options)
    searcher.tell([trial for trial in recording.trials if trial.cost == 2e-5][:12])
    searcher._left = 0
    assert searcher._are_close()
    assert best_so_far(replay(searcher, recording, 12))[-1] == 1e-5


def test_asking_beyond_a_generation_makes_it_grow(bowl: Recording) -> None:
    searcher = GeneticSearch(bowl.space, 1, GeneticOptions(population=4, elites=1))
    assert len(searcher.ask(11)) == 11
    assert len(searcher._members) == 11


def test_breeds_while_outcomes_are_outstanding(bowl: Recording) -> None:
    searcher = GeneticSearch(bowl.space, 1, GeneticOptions(population=8, elites=3))
    asked = searcher.ask(16)
    for told in range(8):
        assert searcher._parents == ()
        searcher.tell([bowl.trial(asked[told])])
        asked += searcher.ask(1)
    costs = {searcher.space.row(each.parameters()): bowl.trial(each).cost for each in asked[:8]}
    assert searcher._parents == tuple(sorted(costs, key=lambda row: (costs[row], row or 0)))
    outstanding = {searcher.space.row(each.parameters()) for each in asked[8:]}
    assert outstanding < searcher._members  # they live in the next generation
    assert len(searcher._members - outstanding) == 3
    for told in range(8, 60):
        searcher.tell([bowl.trial(asked[told])])
        asked += searcher.ask(1)
    assert len(set(asked)) == len(asked)
    assert min(bowl.trial(each).cost for each in asked[40:]) < min(costs.values())


def test_a_told_schedule_joins_the_population(bowl: Recording) -> None:
    searcher = GeneticSearch(bowl.space, 1, GeneticOptions(population=4, elites=1))
    _generation(searcher, bowl, 4)
    best = min(bowl.trials, key=lambda trial: trial.cost)
    searcher.tell([Trial(best.candidate, Status.OK, best.seconds)])
    searcher.ask(1)
    assert searcher.space.row(best.candidate.configuration) in searcher._parents
