"""A grid of cases of which the tests try a diagonal by default: every value of every axis, but not with all others."""

from collections.abc import Collection
from itertools import product
from typing import Any

import pytest


def each_value(*axes: Collection[Any]) -> list[Any]:
    """All combinations, for `pytest.mark.parametrize`; those beside the diagonal are marked exhaustive.

    Args:
        axes: Values of each parameter. The diagonal is as long as the longest; shorter ones begin again.
    """
    values = [list(axis) for axis in axes]
    steps = range(max(map(len, values)))
    diagonal = {tuple(step % len(axis) for axis in values) for step in steps}
    beside = [pytest.mark.exhaustive]
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(values, places, strict=True)),
            marks=[] if places in diagonal else beside,
        )
        for places in product(*(range(len(axis)) for axis in values))
    ]
