"""Regions of strided tensors: what holds what, what lies apart, and what parts fill a whole."""

from itertools import product

import numpy as np
import pytest

from wpk.plan.regions import Parts, Region, region


def made(
    begin: int, extents: tuple[int, ...], strides: tuple[int, ...], item: int = 4, padding: int = 0
) -> Region:
    found = region(begin, item, extents, strides, padding)
    assert found is not None
    return found


def listed(one: Region) -> set[int]:
    """All bytes, counted out."""
    places = product(*(range(0, step * count, step) for step, count in one.axes))
    return {one.begin + sum(place) for place in places}


def drawn(rng: np.random.Generator) -> Region | None:
    rank = int(rng.integers(1, 4))
    extents = tuple(int(n) for n in rng.integers(1, 5, rank))
    strides = tuple(int(s) for s in rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 16, 24], rank))
    item, padding = int(rng.choice([1, 2])), int(rng.choice([0, 0, 1]))
    return region(int(rng.integers(0, 12)), item, extents, strides, padding)


def test_what_a_region_says_of_itself_and_of_others_is_true_of_its_bytes() -> None:
    rng = np.random.default_rng(0)
    drawings = [each for each in (drawn(rng) for _ in range(900)) if each is not None]
    held = lie_apart = 0
    for one, other in zip(drawings[::2], drawings[1::2], strict=False):
        mine, its = listed(one), listed(other)
        assert len(mine) == one.bytes
        assert (min(mine), max(mine) + 1) == (one.begin, one.end)
        assert listed(one.merged) == mine
        if one.holds(other):
            assert its <= mine
            held += 1
        parts = Parts([one, other])
        assert parts.add(one)
        assert not parts.cover(other) or its <= mine
        if parts.add(other):
            assert not its & mine
            lie_apart += 1
    assert held > 20
    assert lie_apart > 20


def test_a_tensor_that_overlaps_itself_has_no_region() -> None:
    assert region(0, 4, (3, 3), (1, 2), 0) is None
    assert region(0, 4, (3, 3), (3, 1), padding=1) is None
    assert region(0, 4, (3, 3), (4, 1), padding=1) is not None


@pytest.mark.parametrize(
    ("extents", "strides"),
    [
        ((6, 8), (8, 1)),
        ((48,), (1,)),
        ((8, 6), (1, 8)),  # transposed
        ((2, 3, 8), (24, 8, 1)),  # reshaped
        ((6, 2, 4), (8, 4, 1)),
        ((3, 5, 6, 8), (0, 0, 8, 1)),  # broadcast
        ((6, 4), (8, 2)),  # every second column
        ((2, 8), (16, 1)),  # every second row
    ],
)
def test_a_tensor_holds_its_views(extents: tuple[int, ...], strides: tuple[int, ...]) -> None:
    whole = made(0, (6, 8), (8, 1))
    assert whole.holds(made(0, extents, strides))


@pytest.mark.parametrize(
    ("begin", "extents", "strides"),
    [
        (4, (6, 8), (8, 1)),  # one element further
        (-4, (6, 8), (8, 1)),
        (0, (7, 8), (8, 1)),
        (0, (49,), (1,)),
        (8, (6, 4), (8, 2)),  # over the end of a row
    ],
)
def test_a_tensor_does_not_hold_what_leaves_it(
    begin: int, extents: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    assert not made(0, (6, 8), (8, 1)).holds(made(begin, extents, strides))


def test_columns_of_the_same_rows_lie_apart_and_fill_them_together() -> None:
    whole = made(0, (4, 10), (10, 1))
    left, right = made(0, (4, 6), (10, 1)), made(24, (4, 4), (10, 1))
    parts = Parts([whole])
    assert parts.add(left)
    assert not parts.cover(whole)
    assert parts.cover(left)
    inner = made(0, (4, 3), (10, 1))
    assert parts.cover(inner)
    assert parts.add(right)
    assert parts.cover(made(24, (4, 2), (10, 1)))
    assert parts.cover(whole)
    assert parts.cover(made(0, (4, 3), (10, 2)))
    assert not parts.add(right)


def test_gaps_between_rows_are_no_part_of_a_tensor() -> None:
    padded = made(0, (4, 6), (8, 1))
    assert not padded.holds(made(0, (4, 8), (8, 1)))
    assert made(0, (4, 6), (8, 1), padding=2).holds(made(0, (4, 8), (8, 1)))


def test_what_is_between_two_parts_is_in_neither() -> None:
    whole = made(0, (4, 10), (10, 1))
    parts = Parts([whole])
    assert not parts.cover(whole)
    assert parts.add(made(0, (4, 4), (10, 1)))
    assert parts.add(made(24, (4, 4), (10, 1)))
    assert parts.cover(made(4, (4, 2), (10, 1)))
    assert parts.cover(made(28, (4, 2), (10, 1)))
    assert not parts.cover(made(16, (4, 2), (10, 1)))


@pytest.mark.parametrize("whole", [made(0, (5, 10), (10, 1)), made(0, (3, 5, 10), (100, 10, 1))])
def test_every_fifth_element_of_rows_of_ten_is_two_columns(whole: Region) -> None:
    columns = made(0, (10,), (5,))
    assert Parts([whole]).add(columns)
    for column in (6, 7, 8, 9):
        parts = Parts([whole])
        assert parts.add(columns)
        assert parts.add(made(4 * column, (5,), (10,)))
    shifted = Parts([whole])  # elements 5, 10, 15, ...: they are in column 0, too
    assert shifted.add(made(20, (8,), (5,)))
    assert not shifted.add(made(0, (5,), (10,)))


def test_strided_parts_of_a_matrix_are_apart_only_where_they_share_no_byte() -> None:
    rng = np.random.default_rng(1)
    apart = 0
    for _ in range(1500):
        rows, cols, gap = (int(n) for n in rng.integers((2, 2, 0), (6, 9, 2)))
        parts = Parts([made(0, (rows, cols), (cols + gap, 1), item=1)])
        room = rows * (cols + gap)
        taken: set[int] = set()
        for _ in range(3):
            begin, step = int(rng.integers(0, room)), int(rng.integers(1, 2 * cols))
            count = int(rng.integers(1, 2 + (room - begin) // step))
            part = made(begin, (count,), (step,), item=1)
            if parts.add(part):
                assert not taken & listed(part)
                apart += bool(taken)
                taken |= listed(part)
            assert not parts.cover(part) or listed(part) <= taken
    assert apart > 300


def test_most_parts_that_lie_apart_are_seen_to() -> None:
    whole = made(0, (6, 8), (8, 1))
    quarters = [
        made(4 * (24 * row + 4 * col), (3, 4), (8, 1)) for row, col in product((0, 1), (0, 1))
    ]
    parts = Parts([whole])
    assert all(parts.add(quarter) for quarter in quarters)
    assert parts.cover(whole)
    assert parts.cover(made(4 * 3, (6, 2), (8, 1)))  # across two of them
    missing = Parts([whole])
    assert all(missing.add(quarter) for quarter in quarters[1:])
    assert not missing.cover(whole)


def test_regions_that_only_touch_do_not_meet() -> None:
    first, second = made(0, (4,), (1,)), made(16, (4,), (1,))
    assert (first.end, second.begin) == (16, 16)
    assert not first.meets(second)
    assert not second.meets(first)
    assert first.meets(made(15, (1,), (1,), item=1))
    assert second.meets(made(31, (1,), (1,), item=1))
    assert not second.meets(made(32, (1,), (1,), item=1))


def test_the_largest_regions_are_looked_at_as_wholes() -> None:
    whole = made(0, (6, 8), (8, 1))
    small = [made(4 * 100 * n, (2, 3), (8, 1)) for n in range(1, 40)]
    parts = Parts([*small, whole])
    assert parts.add(made(0, (6, 4), (8, 1)))
    assert parts.add(made(16, (6, 4), (8, 1)))


@pytest.mark.parametrize(("larger", "seen"), [(15, True), (16, False)])
def test_of_sixteen_wholes_parts_are_told_apart(larger: int, seen: bool) -> None:
    others = [made(4 * 100 * n, (6, 9), (9, 1)) for n in range(1, larger + 1)]
    parts = Parts([made(0, (6, 8), (8, 1)), *others])
    assert parts.add(made(0, (6, 4), (8, 1)))
    assert parts.add(made(16, (6, 4), (8, 1))) is seen
