"""Free dimensions while a model is lowered: sizes that no tensor has.

Lowering looks at shapes as numbers, and a free dimension has no number: taken at its tuned size, a
batch of 1, a slice of four rows would be the whole, a batch of matrices no batch, and a Reshape to
one row nothing at all. So a free dimension enters as one of `STAND_INS`, primes above every size that
wpk carries: it equals no constant, divides no other size, and is cut by every slice that cuts some
batch. A size is free if and only if it is a multiple of one, and which dimensions decide it are its
factors (`extent_of`). Only the first axes of a tensor may be free (`require_leading`); those of a
problem must have joined into one. Until then the n-th dimension is called ``#n``. The finished
problems and values get names and tuned sizes (`sized`, `sized_value`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from itertools import pairwise, zip_longest
from math import prod

from wpk.dims import DimExpr, product, renamed
from wpk.extent import Extent
from wpk.lowering.program import Buffer, Value
from wpk.lowering.refusal import RefusedError
from wpk.problems import Problem

STAND_INS = (2**31 + 11, 2**31 + 45, 2**31 + 65, 2**31 + 95)
"""The first primes above the elements of the largest tensor (`wpk.model_checks.MAX_ELEMENTS`): as many
free dimensions as a model may have."""

_LED_BY_THE_FREE_AXIS = ("shape", "outer", "x_shape", "y_shape")
"""Fields of problems that list extents, the leading one first."""


def stand_in(size: int | str, free: Sequence[str]) -> int:
    """Return a size of a graph's tensor while lowering; a name is one of the free dimensions."""
    return STAND_INS[free.index(size)] if isinstance(size, str) else int(size)


def extent_of(size: int) -> Extent:
    """Return a size while lowering as an extent, free if it is a multiple of stand-ins."""
    names, factor = list[DimExpr](), size
    for number, prime in enumerate(STAND_INS):
        while factor and factor % prime == 0:
            names.append(f"#{number}")
            factor //= prime
    return Extent(size, reduce(product, names), factor) if names else Extent(size)


def is_free(size: int) -> bool:
    """Tell whether a free dimension decides a size."""
    return size > 0 and any(size % prime == 0 for prime in STAND_INS)


def free_among(shape: Sequence[int], axes: Iterable[int]) -> str | None:
    """Return the free dimension of the first of some axes that has one; None if none has."""
    names = (name for axis in axes for name in extent_of(shape[axis]).names)
    return next(names, None)


def require_leading(shape: Sequence[int], leading: Extent) -> None:
    """Check that no axes of ``shape`` are free but the first ones, as ``leading`` says.

    Raises:
        RefusedError: Another axis would be free.
    """
    for axis, size in enumerate(shape):
        if is_free(size) and not all(map(is_free, shape[:axis])):
            raise RefusedError(
                f"axis {axis} of shape {tuple(shape)} would be free; only the first ones of a "
                "tensor may be, by themselves or with fixed axes behind them"
            )
    first = extent_of(shape[0]) if shape else Extent(1)
    if leading.free != first.free:
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
    """Return a message with the free dimensions' names in place of their stand-ins."""

    def named(number: int) -> str:
        return names[number] if number < len(names) else "free"

    def word(match: re.Match[str]) -> str:
        extent = extent_of(int(match[0]))
        factors = [named(int(name[1:])) for name in extent.names]
        if not factors:
            return match[0]
        return "*".join(factors if extent.factor == 1 else [str(extent.factor), *factors])

    return re.sub(r"'#(\d)'", lambda m: f"'{named(int(m[1]))}'", re.sub(r"\d{10,}", word, text))


def sized(problem: Problem, tuned: Mapping[str, int]) -> Problem:
    """Return the problem with names and tuned sizes of the free dimensions.

    Raises:
        RefusedError: A free dimension decides something that kernels take as a constant.
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
            changes[field.name] = _tuned_shape(value, tuned)
    tuned_problem = replace(problem, **changes)
    if _holds_free(tuned_problem):
        raise RefusedError("a free dimension decides more than the first extent")
    return tuned_problem


def flattened(value: Value) -> Value:
    """Return a value whose free axes are one, since kernels take one extent at run time.

    Raises:
        RefusedError: They do not lie in each other.
    """
    shape, strides = joined(value.name, value.shape, value.strides)
    leading = extent_of(shape[0]) if shape != value.shape else value.leading
    return replace(value, leading=leading, shape=shape, strides=strides)


def joined(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape and the strides of a tensor with its free axes as one.

    Raises:
        RefusedError: They do not lie in each other; ``name`` says whose.
    """
    count = sum(map(is_free, shape))
    if any(strides[a] != strides[b] * shape[b] for a, b in pairwise(range(count))):
        raise RefusedError(
            f"'{name}' of shape {shape} has its free axes apart in memory, at strides {strides}"
        )
    if count < 2:
        return shape, strides
    return (prod(shape[:count]), *shape[count:]), strides[count - 1 :]


def sized_value(value: Value, tuned: Mapping[str, int]) -> Value:
    """Return a value with names and tuned sizes of the free dimensions."""
    flat = flattened(value)
    return replace(
        flat,
        leading=sized_extent(flat.leading, tuned),
        shape=tuple(sized_extent(extent_of(size), tuned).value for size in flat.shape),
        logical_shape=tuple(
            sized_extent(extent_of(size), tuned).expression if isinstance(size, int) else size
            for size in value.logical_shape
        ),
    )


def sized_buffer(buffer: Buffer, tuned: Mapping[str, int]) -> Buffer:
    """Return a buffer whose size has the names of the free dimensions."""
    return replace(buffer, bytes=named(buffer.bytes, tuned))


def named(expression: DimExpr, tuned: Mapping[str, int]) -> DimExpr:
    """Return an expression with the names of the free dimensions."""
    return renamed(expression, {f"#{number}": name for number, name in enumerate(tuned)})


def sized_extent(extent: Extent, tuned: Mapping[str, int]) -> Extent:
    """Return an extent with names and tuned sizes of the free dimensions."""
    if extent.free is None:
        return extent
    sizes = list(tuned.values())
    value = extent.factor * prod(sizes[int(name[1:])] for name in extent.names)
    return Extent(value, named(extent.free, tuned), extent.factor)


def _tuned_shape(shape: tuple[int, ...], tuned: Mapping[str, int]) -> tuple[int, ...]:
    """Return a shape with the tuned size of its first axis."""
    return (sized_extent(extent_of(shape[0]), tuned).value, *shape[1:]) if shape else shape


def _holds_free(part: object) -> bool:
    """Tell whether a number anywhere in a problem still comes from the stand-in."""
    if isinstance(part, int):
        return is_free(part)
    if isinstance(part, tuple):
        return any(_holds_free(each) for each in part)
    if is_dataclass(part):
        return any(_holds_free(getattr(part, field.name)) for field in fields(part))
    return False
