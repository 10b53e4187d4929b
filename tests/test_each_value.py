"""What of a grid is tried by default has every value, and what else there is can be asked for."""

import os
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest
from support.each_value import each_value, mark_beside_diagonals

AXES = (("a", "b", "c", "d", "e"), ("fp32", "fp16"), (1, 2, 3))


def test_every_value_is_tried_by_default_and_every_combination_is_there() -> None:
    cases = each_value(*AXES)
    assert [each.values for each in cases] == list(product(*AXES))
    usual = [each.values for each in cases if not each.marks]
    assert len(usual) == 5
    for place, axis in enumerate(AXES):
        assert {values[place] for values in usual} == set(axis)
    marks = {mark.name for each in cases for mark in each.marks}
    assert marks == {"exhaustive"}


@pytest.mark.parametrize("axis", AXES)
def test_one_axis_is_tried_whole(axis: tuple[object, ...]) -> None:
    assert [each.marks for each in each_value(axis)] == [[]] * len(axis)


GRIDS = """
import pytest

@pytest.fixture(params=["fast", "checking"])
def mode(request):
    return request.param

@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("m", "n"), [(1, 1), (1, 2), pytest.param(2, 1, marks=pytest.mark.exhaustive), (2, 2)]
)
def test_grid(size, m, n, mode): ...

@pytest.mark.every_combination
@pytest.mark.parametrize("fault", ["a", "b"])
@pytest.mark.parametrize("name", ["x", "y", "z"])
def test_faults(name, fault): ...

@pytest.mark.parametrize("alone", [1, 2, 3])
def test_axis(alone): ...
"""


class Marked:
    """A plugin of pytest: parameters of the cases that are not exhaustive, by test."""

    def __init__(self) -> None:
        self.usual: defaultdict[str, list[dict[str, object]]] = defaultdict(list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        mark_beside_diagonals(items)
        for item in items:
            assert isinstance(item, pytest.Function)
            if item.get_closest_marker("exhaustive") is None:
                self.usual[item.originalname].append(dict(item.callspec.params))


def test_of_several_parametrizations_a_diagonal_is_tried_by_default(tmp_path: Path) -> None:
    (tmp_path / "test_grids.py").write_text(GRIDS)
    marked = Marked()
    options = ["--collect-only", "-qq", "-c", os.devnull, "-p", "no:cacheprovider"]
    pytest.main([*options, "--rootdir", str(tmp_path), str(tmp_path)], plugins=[marked])
    grid = marked.usual["test_grid"]
    assert len(grid) == 5
    assert {each["size"] for each in grid} == {1, 2, 3, 4, 5}
    assert {(each["m"], each["n"]) for each in grid} == {(1, 1), (1, 2), (2, 2)}
    assert {each["mode"] for each in grid} == {"fast", "checking"}
    assert len(marked.usual["test_faults"]) == 6
    assert len(marked.usual["test_axis"]) == 3
