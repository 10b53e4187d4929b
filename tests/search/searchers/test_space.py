"""Rows, genomes, moves: what searchers know of legality."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.plans.spaces import whole_space

from wpk.errors import ScheduleError
from wpk.search.searchers.replay import Recording
from wpk.search.searchers.space import ABSENT, SearchSpace
from wpk.targets.registry import find_target

H200 = find_target("h200")


@pytest.fixture
def space(tiled: Any, make_product: Callable[..., Any]) -> SearchSpace:
    """All legal schedules of the small template for a product."""
    return whole_space(make_product(256, 256, 64), tiled, H200)


def test_rows_are_the_legal_schedules_of_the_template(
    space: SearchSpace, tiled: Any, make_product: Callable[..., Any]
) -> None:
    problem = make_product(256, 256, 64)
    combinations, columns = tiled.space(problem, H200)
    assert 0 < space.size < combinations
    for row in range(space.size):
        assert space.schedule(row) == tiled.schedule(columns, row)
        assert tiled.why_illegal(problem, space.schedule(row), H200) is None


def test_every_genome_is_a_row_or_illegal(
    space: SearchSpace, tiled: Any, make_product: Callable[..., Any]
) -> None:
    problem = make_product(256, 256, 64)
    genomes = list(itertools.product(*(range(size) for size in space.shape)))
    for genome, row in zip(genomes, space.rows(genomes).tolist(), strict=True):
        values = [int(v[gene]) for v, gene in zip(space.values, genome, strict=True)]
        schedule = tiled.schedule_type(*values)
        assert (row == ABSENT) == (tiled.why_illegal(problem, schedule, H200) is not None)
        if row != ABSENT:
            assert space.schedule(row) == schedule
            assert space.genomes[row].tolist() == list(genome)


def test_parameters_lead_back_to_the_row(space: SearchSpace) -> None:
    for row in range(space.size):
        parameters = space.schedule(row).parameters()
        assert space.row(parameters) == row
        assert space.row(tuple(reversed(parameters))) == row


@pytest.mark.parametrize(
    "change",
    [{"block_m": 7}, {"block_m": 10_000}, {"block_m": 8, "block_n": 8}, {"extra": 1}],
    ids=["no value", "beyond all values", "illegal", "no parameter"],
)
def test_a_schedule_outside_has_no_row(space: SearchSpace, change: dict[str, int]) -> None:
    parameters = dict(space.schedule(space.size - 1).parameters()) | change
    assert space.row(tuple(parameters.items())) is None


def test_can_be_restricted_to_rows(
    space: SearchSpace, tiled: Any, make_product: Callable[..., Any]
) -> None:
    kept = np.asarray([3, 5, 17])
    pruned = whole_space(make_product(256, 256, 64), tiled, H200, rows=kept)
    assert [pruned.schedule(row) for row in range(3)] == [space.schedule(int(r)) for r in kept]
    assert pruned.size == 3
    assert pruned.row(space.schedule(4).parameters()) is None


def test_an_empty_space_is_refused(tiled: Any, make_product: Callable[..., Any]) -> None:
    with pytest.raises(ScheduleError, match="no TiledSchedule to search"):
        whole_space(make_product(256, 256, 64), tiled, H200, rows=np.zeros(0, np.int64))


def test_neighbours_differ_in_exactly_one_parameter(small: Recording) -> None:
    space = small.space
    for row in range(space.size):
        different = (space.genomes != space.genomes[row]).sum(axis=1)
        assert sorted(space.neighbours(row).tolist()) == np.flatnonzero(different == 1).tolist()


def test_a_move_sets_one_parameter_to_one_value(small: Recording) -> None:
    space = small.space
    moves = [(axis, gene) for axis, size in enumerate(space.shape) for gene in range(size)]
    assert space.moves == len(moves)
    after = space.after_moves(np.arange(space.size))
    for row, (number, (axis, gene)) in itertools.product(range(space.size), enumerate(moves)):
        genome = space.genomes[row].copy()
        genome[axis] = gene
        assert after[row, number] == space.rows([genome])[0]


def test_nearest_looks_only_among_the_rows_given(small: Recording) -> None:
    space = small.space
    rows = np.arange(space.size)
    for row in range(space.size):
        assert space.nearest(space.point(row), rows) == row
        others = rows[rows != row]
        found = space.nearest(space.point(row), others)
        distances = [np.sum((space.point(row) - space.point(int(o))) ** 2) for o in others]
        assert found == others[int(np.argmin(distances))]


def test_points_lie_between_0_and_1_and_reach_both(small: Recording) -> None:
    points = np.stack([small.space.point(row) for row in range(small.space.size)])
    assert points.min(axis=0).tolist() == [0, 0, 0]
    assert points.max(axis=0).tolist() == [1, 1, 1]
