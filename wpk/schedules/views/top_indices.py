"""A `TopIndices` problem as its kernels see it."""

from math import prod

from wpk.problems import TopIndices
from wpk.schedules.strided import cpp_tensor, why_unaddressable
from wpk.schedules.unit import Members, Type

OUTER_AXES = 4


def why_not(problem: TopIndices) -> str | None:
    """Say what no kernel carries: too many axes, offsets of 64 bits, padded indices."""
    if len(problem.outer) > OUTER_AXES:
        return f"{len(problem.outer)} outer axes, at most {OUTER_AXES} are carried"
    if problem.y.padding:
        return f"the indices are padded by {problem.y.padding}"
    reason = why_unaddressable([problem.x], (*problem.outer, problem.size))
    return reason or why_unaddressable([problem.y], (*problem.outer, problem.count))


def rows(problem: TopIndices) -> int:
    """Rows at one leading index."""
    return prod(problem.outer[1:])


def key_bytes(problem: TopIndices) -> int:
    """Bytes of what decides an element's place: ``wpk::rankingKey``."""
    dtype = problem.x.dtype
    is_wide = dtype.bytes == 8 or (dtype.bytes == 4 and dtype.numpy.kind == "u")
    return 8 if is_wide else 4


def members(problem: TopIndices, *, with_count: bool) -> Members:
    """Members of the unit's ``Problem``.

    Args:
        problem: The problem.
        with_count: Whether y has an axis of the indices of a row.
    """
    rank = len(problem.outer)
    order = (0, *(None for _ in range(OUTER_AXES - rank)), *range(1, rank))
    first, second, third = ((1,) * OUTER_AXES + problem.outer[1:])[-(OUTER_AXES - 1) :]
    return {
        "X": Type(cpp_tensor(problem.x, (*order, rank))),
        "Y": Type(cpp_tensor(problem.y, (*order, rank) if with_count else order)),
        "o1": first,
        "o2": second,
        "o3": third,
        "size": problem.size,
        "largest": problem.largest,
        "last": problem.last,
    }
