"""The free dimension while a model is lowered: a size that no tensor has.

Lowering looks at shapes as numbers, and a free dimension has no number: taken at its tuned size, a
batch of 1, a slice of four rows would be the whole, a batch of matrices no batch, and a Reshape to
one row nothing at all. So a free dimension enters as `STAND_IN`, a prime above every size that wpk
carries: it equals no constant, divides no other size, and is cut by every slice that cuts some
batch. A size is free if and only if it is a multiple of it, and only a leading one may be
(`require_leading`). The finished problems and values get the tuned size (`sized`, `sized_value`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import zip_longest

from wpk.extent import Extent
from wpk.lowering.program import Value
from wpk.lowering.refusal import RefusedError
from wpk.problems import Problem

STAND_IN = 2**31 + 11
"""The first prime above the elements of the largest tensor (`wpk.model_checks.MAX_ELEMENTS`)."""

_LED_BY_THE_FREE_AXIS = ("shape", "outer", "x_shape", "y_shape")
"""Fields of problems that list extents, the leading one first."""


def free_extent(name: str) -> Extent:
    """Return a free dimension while lowering."""
    return Extent(STAND_IN, name)


def leading_extent(size: int | str) -> Extent:
    """The leading extent of a graph's tensor while lowering; a name is that of the free dimension."""
    return free_extent(size) if isinstance(size, str) else Extent(int(size))


def is_free(size: int) -> bool:
    """Tell whether a free dimension decides a size."""
    return size > 0 and size % STAND_IN == 0


def require_leading(shape: Sequence[int], leading: Extent) -> None:
    """Check that no axis of ``shape`` is free but the first one, and that one as ``leading`` says.

    Raises:
        RefusedError: Another axis would be free.
    """
    for axis, size in enumerate(shape):
        if is_free(size) and (axis or leading.free is None):
            raise RefusedError(
                f"axis {axis} of shape {tuple(shape)} would be free; only the first one of a "
                "tensor may be, by itself or with fixed axes behind it"
            )
    if leading.free is not None and not (shape and is_free(shape[0])):
        raise RefusedError(f"shape {tuple(shape)} would lose the free dimension {leading.free!r}")


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape by NumPy's rules, where a free size fits only itself and 1.

    Raises:
        RefusedError: There is none that holds at every size of the free dimension.
    """
    result = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        several = {size for size in sizes if size != 1}
        if len(several) > 1:
            words = " and ".join(str(tuple(shape)) for shape in shapes)
            raise RefusedError(f"shapes {words} do not fit each other")
        result.append(several.pop() if several else 1)
    return tuple(reversed(result))


def worded(text: str, names: Sequence[str]) -> str:
    """Return a message with the free dimension's name in place of its stand-in."""
    name = next(iter(names), "free")

    def word(match: re.Match[str]) -> str:
        factor, rest = divmod(int(match[0]), STAND_IN)
        if rest or not factor:
            return match[0]
        return name if factor == 1 else f"{factor}*{name}"

    return re.sub(r"\d{10,}", word, text)


def sized(problem: Problem, tuned: Mapping[str, int]) -> Problem:
    """Return the problem with the tuned size of the free dimension.

    Raises:
        RefusedError: The free dimension decides something that kernels take as a constant.
    """
    changes: dict[str, object] = {}
    for field in fields(problem):
        value = getattr(problem, field.name)
        if isinstance(value, Extent):
            changes[field.name] = sized_extent(value, tuned)
        elif field.name == "batch":
            outer, inner = value
            changes[field.name] = (sized_extent(outer, tuned), inner)
        elif field.name in _LED_BY_THE_FREE_AXIS:
            changes[field.name] = _tuned_shape(value, problem.leading, tuned)
    tuned_problem = replace(problem, **changes)
    if _holds_free(tuned_problem):
        raise RefusedError("the free dimension decides more than the first extent")
    return tuned_problem


def sized_value(value: Value, tuned: Mapping[str, int]) -> Value:
    """Return a value with the tuned size of the free dimension."""
    return replace(
        value,
        leading=sized_extent(value.leading, tuned),
        shape=_tuned_shape(value.shape, value.leading, tuned),
        logical_shape=_tuned_shape(value.logical_shape, value.leading, tuned),
    )


def sized_extent(extent: Extent, tuned: Mapping[str, int]) -> Extent:
    """Return an extent with the tuned size of the free dimension."""
    if extent.free is None:
        return extent
    return replace(extent, value=extent.factor * tuned[extent.free])


def _tuned_shape(
    shape: tuple[int, ...], leading: Extent, tuned: Mapping[str, int]
) -> tuple[int, ...]:
    if leading.free is None or not shape:
        return shape
    return (shape[0] // STAND_IN * tuned[leading.free], *shape[1:])


def _holds_free(part: object) -> bool:
    """Tell whether a number anywhere in a problem still comes from the stand-in."""
    if isinstance(part, int):
        return is_free(part)
    if isinstance(part, tuple):
        return any(_holds_free(each) for each in part)
    if is_dataclass(part):
        return any(_holds_free(getattr(part, field.name)) for field in fields(part))
    return False
