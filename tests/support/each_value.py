"""A grid of cases of which the tests try a diagonal by default: every value of every axis, but not with all others."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from typing import Any

import pytest

_Places = tuple[int, ...]
"""Of a case, on each axis."""


def each_value(*axes: Collection[Any]) -> list[Any]:
    """All combinations, for `pytest.mark.parametrize`; those beside the diagonal are marked exhaustive.

    Args:
        axes: Values of each parameter. The diagonal is as long as the longest; shorter ones begin again.
    """
    values = [list(axis) for axis in axes]
    diagonal = _diagonal([len(axis) for axis in values])
    beside = [pytest.mark.exhaustive]
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(values, places, strict=True)),
            marks=[] if places in diagonal else beside,
        )
        for places in product(*(range(len(axis)) for axis in values))
    ]


def mark_beside_diagonals(items: Iterable[pytest.Item]) -> None:
    """Mark exhaustive what is beside the diagonal of each test that is parametrized several times.

    A test of which every combination is a claim of its own is marked `every_combination`.
    """
    grids: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        is_case = isinstance(item, pytest.Function) and hasattr(item, "callspec")
        kept = any(map(item.get_closest_marker, ("exhaustive", "every_combination")))
        if is_case and not kept:
            grids[item.nodeid.split("[")[0]].append(item)
    for grid in grids.values():
        places = _places(grid)
        diagonal = _diagonal([1 + max(axis) for axis in zip(*places, strict=True)])
        for item, place in zip(grid, places, strict=True):
            if place not in diagonal:
                item.add_marker("exhaustive")


def _diagonal(lengths: Sequence[int]) -> set[_Places]:
    return {tuple(step % length for length in lengths) for step in range(max(lengths))}


def _places(grid: Sequence[pytest.Function]) -> list[_Places]:
    """Of each case; values lie on their axis in the order in which they come."""
    together = [mark.args[0] for mark in grid[0].iter_markers("parametrize")]
    axes = [name.replace(",", " ").split() if isinstance(name, str) else name for name in together]
    named = {name for axis in axes for name in axis}
    axes += [[name] for name in grid[0].callspec.params if name not in named]
    seen: list[dict[_Places, int]] = [{} for _ in axes]
    return [
        tuple(
            on_axis.setdefault(tuple(id(item.callspec.params[n]) for n in axis), len(on_axis))
            for axis, on_axis in zip(axes, seen, strict=True)
        )
        for item in grid
    ]
