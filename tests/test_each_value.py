"""What of a grid is tried by default has every value, and what else there is can be asked for."""

from itertools import product

import pytest
from support.each_value import each_value

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
