"""Lanes beside the rows of the graph."""

from hypothesis import given
from hypothesis import strategies as st

from wpk.report.plans.page.lanes import Lane, assign_lanes


def test_a_chain_runs_along_the_spine() -> None:
    assert assign_lanes([(), (0,), (1,)]) == [Lane(0, 0, (1,)), Lane(0, 1, (2,))]


def test_a_residual_gets_a_lane_beside_the_spine() -> None:
    lanes = assign_lanes([(), (0,), (1, 0), (2,)])
    assert Lane(1, 0, (2,)) in lanes
    assert sum(lane.place == 0 for lane in lanes) == 3


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(1, 25))
    return [
        tuple(sorted(draw(st.sets(st.integers(0, row - 1), max_size=3)))) if row else ()
        for row in range(count)
    ]


@given(graphs())
def test_no_two_lines_run_in_one_place(reads: list[tuple[int, ...]]) -> None:
    lanes = assign_lanes(reads)
    used: set[tuple[int, int]] = set()
    for lane in lanes:
        gaps = {(lane.place, row) for row in range(lane.first, lane.last)}
        assert not gaps & used
        used |= gaps


@given(graphs())
def test_every_reader_is_reached_once(reads: list[tuple[int, ...]]) -> None:
    drawn = sorted((lane.first, row) for lane in assign_lanes(reads) for row in lane.readers)
    assert drawn == sorted((source, row) for row, made in enumerate(reads) for source in made)
