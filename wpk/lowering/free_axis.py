"""Free dimensions while a model is lowered: sizes that no tensor has.

Lowering looks at shapes as numbers, and a free dimension has no number: taken at its tuned size, a
batch of 1, a slice of four rows would be the whole, a batch of matrices no batch, and a Reshape to
one row nothing at all. So a free dimension enters as one of `STAND_INS`, primes above every size that
wpk carries: it equals no constant, divides no other size, and is cut by every slice that cuts some
batch. A size is free if and only if it is a multiple of one, and which dimensions decide it are its
factors (`extent_of`). The free axes of a tensor lie in each other in memory (`joined`); those of a
problem have joined into one, but where its kind takes others (`Problem.extents`). Until then the n-th dimension is called ``#n``. The finished
problems and values get names and tuned sizes (`sized`, `sized_value`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import reduce
from itertools import pairwise, zip_longest
from math import prod

from wpk.dims import DimExpr, product, renamed
from wpk.extent import Extent
from wpk.lowering.program import Buffer, Value
from wpk.lowering.refusal import RefusedError
from wpk.problems import Attention, Problem, Tensor

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
    if isinstance(problem, Attention) and problem.lengths is not None:
        changes |= _tuned_matrices(problem, tuned)
    tuned_problem = replace(problem, **changes)
    more = next(_free_names(tuned_problem), None)
    if more is not None:
        raise RefusedError(f"a free dimension decides more than the first extent: {more!r}")
    for field_name, what in tuned_problem.contradictions():
        raise RefusedError(f"its {field_name} {what}")
    return tuned_problem


def _tuned_matrices(problem: Attention, tuned: Mapping[str, int]) -> dict[str, object]:
    """Queries, keys, and the strides from one matrix to the next, which depend on them."""

    def size(free: int) -> int:
        return sized_extent(extent_of(free), tuned).value

    def apart(tensor: Tensor) -> Tensor:
        outer, *inner = tensor.strides
        return replace(tensor, strides=(size(outer), *inner))

    scores = replace(problem.scores, operands=tuple(map(apart, problem.scores.operands)))
    tensors = {name: apart(getattr(problem, name)) for name in ("q", "k", "v", "y")}
    lengths = {"queries": size(problem.queries), "keys": size(problem.keys)}
    return {**tensors, **lengths, "scores": scores}


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
    if not is_joinable(shape, strides):
        raise RefusedError(
            f"'{name}' of shape {shape} has its free axes apart in memory, at strides {strides}"
        )
    last = _last_free(shape)
    if last < 1:
        return shape, strides
    return (prod(shape[: last + 1]), *shape[last + 1 :]), strides[last:]


def is_joinable(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether the axes up to the last free one follow each other in memory."""
    last = _last_free(shape)
    front = [axis for axis in range(last + 1) if shape[axis] != 1 or axis == last]
    return all(strides[a] == strides[b] * shape[b] for a, b in pairwise(front))


def _last_free(shape: Sequence[int]) -> int:
    return max((axis for axis, size in enumerate(shape) if is_free(size)), default=-1)


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


def _free_names(part: object) -> Iterator[str]:
    """Yield what decides the numbers in a problem that still come from stand-ins."""
    if isinstance(part, int):
        yield from extent_of(part).names if is_free(part) else ()
    elif isinstance(part, tuple):
        for each in part:
            yield from _free_names(each)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _free_names(getattr(part, field.name))
