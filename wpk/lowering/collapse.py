"""Merge neighbouring axes that all tensors of a problem step through as one."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from wpk.lowering.free_axis import extent_of
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View


def collapse(
    views: Sequence[View], most: int, row: int | None = None
) -> tuple[tuple[int, ...], list[View]]:
    """Return the smallest common shape, and the views in it.

    All views have the same shape. Axes of extent 1 vanish (never a free one), and neighbouring axes
    merge where every view's outer stride is its inner stride times the inner extent.

    Args:
        views: What steps through the axes.
        most: Axes that may remain.
        row: An axis that stays, whatever its extent: padding is written behind it.

    Raises:
        RefusedError: More than ``most`` axes remain.
    """
    shape = views[0].shape
    free = next((v.leading for v in views if v.leading.free), None)
    groups: list[list[int]] = []
    for axis, extent in enumerate(shape):
        if extent == 1 and axis != row and not (axis == 0 and free):
            continue
        if (
            groups
            and row not in (axis, groups[-1][-1])
            and all(view.strides[groups[-1][-1]] == view.strides[axis] * extent for view in views)
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if len(groups) > most:
        raise RefusedError(f"shape {shape} needs {len(groups)} axes, kernels have {most}")
    new = tuple(prod(shape[a] for a in group) for group in groups) or (1,)
    return new, [_grouped(view, groups, new) for view in views]


def _grouped(view: View, groups: Sequence[Sequence[int]], shape: tuple[int, ...]) -> View:
    strides = tuple(view.strides[group[-1]] for group in groups) or (1,)
    return replace(view, shape=shape, strides=strides, leading=extent_of(shape[0]))
