"""Siblings of a problem with odd, small sizes: what a kernel that is right only for whole tiles gets wrong.

Kernels are specialised on their sizes, so those of a problem that tiles divide never execute what a
generator makes of ragged edges. A sibling has the same types, precision, expressions, window and kind
of layout; only sizes differ. Which one a schedule is legal for, its template says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from wpk.extent import Extent
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Epilogue,
    Matmul,
    Normalisation,
    Problem,
    Tensor,
)
from wpk.problems.resized_layout import resized

BATCH = 3
"""Of what is free, or one: no power of two."""

_FEW_CHANNELS = 4
"""Images with so many are read in other ways than those with more: their channels stay."""

_ABOVE = (65, 9)
"""Rows and columns: above tiles of 64, so that there is a whole one and a ragged one; and few, for
schedules of small tiles that are legal for few tiles alone."""

_QUERIES = (65, 129)
"""Likewise, for blocks of 64 queries and of 128."""

_LEAST = 33
"""Of what is summed: more than a vector, and than one step of most schedules."""

_ROWS = (9, 5)
_COLUMNS = (7, 10, 12, 24)
"""Odd; then twice, four and eight times an odd number, for rows whose strides are aligned."""

Shape = tuple[int, ...]


def odd_shapes(problem: Problem) -> Iterator[Problem]:
    """Siblings of a problem, the smallest and most ragged first; none of a kind without any."""
    match problem:
        case Convolution():
            found: Iterator[Problem | None] = _convolutions(problem)
        case Matmul():
            found = _matmuls(problem)
        case Attention():
            found = _attentions(problem)
        case Normalisation():
            found = _normalisations(problem)
        case _:
            return
    yield from (each for each in found if each is not None and each != problem)


def ragged(size: int, unit: int, least: int = 1) -> tuple[int, ...]:
    """Odd multiples of a unit, plus what the size has beyond whole units: from ``least`` on, growing.

    The last two are the nearest ones below and above the size.
    """
    whole, rest, found = size // unit, size % unit, list[int]()
    below, count = (whole - 2) | 1, -(-least // unit) | 1
    while count < below:
        found.append(count)
        count = 2 * count - 1 if count > 1 else 3
    found += [below] * (unit * below >= least) + [(whole + 1) | 1]
    return tuple(unit * each + rest for each in found)


def above(least: int, size: int, unit: int) -> int:
    """The like of a size that is ragged and no smaller than ``least``."""
    return (-(-least // unit) | 1) * unit + size % unit


def _extent(extent: Extent, size: int) -> Extent:
    """An extent of another size, decided by the same free dimension if it is free."""
    if extent.free is None:
        return Extent(size)
    factor = size // BATCH if extent.factor > 1 else 1
    return Extent(BATCH * factor if extent.factor > 1 else size, extent.free, factor)


def _epilogue(epilogue: Epilogue, before: Shape, after: Shape) -> Epilogue | None:
    operands = _all([resized(each, before, after) for each in epilogue.operands])
    return None if operands is None else replace(epilogue, operands=operands)


def _all(tensors: Sequence[Tensor | None]) -> tuple[Tensor, ...] | None:
    found = tuple(each for each in tensors if each is not None)
    return found if len(found) == len(tensors) else None


def _unit(axis: int, *tensors: Tensor) -> int:
    """Elements along an axis whose multiples keep all alignments."""
    return max(
        (each.vector(axis) for each in tensors if sum(map(bool, each.strides)) > 1), default=1
    )


def _convolutions(problem: Convolution) -> Iterator[Convolution | None]:
    for groups, c, k in _channels(problem):
        for p in (1,) if problem.h == problem.p == 1 else (*_ROWS, problem.p):
            for q in (*_COLUMNS, problem.q):
                yield _convolution(problem, groups, c, k, (p, q))


def _channels(problem: Convolution) -> Iterator[tuple[int, int, int]]:
    """Groups, channels and filters."""
    of_x = _unit(1, problem.x)
    of_y = _unit(1, problem.y, *problem.epilogue.operands)
    if problem.is_depthwise:
        many = problem.k // problem.c
        for c in ragged(problem.c, max(of_x, of_y), 40):
            yield c, c, c * many
    elif problem.groups > 1:
        each_c, each_k = problem.c // problem.groups, problem.k // problem.groups
        for groups in dict.fromkeys((min(3, problem.groups), problem.groups)):
            for each in (*ragged(each_c, of_x), each_c):
                for filters in (ragged(each_k, of_y)[0], each_k):
                    yield groups, groups * each, groups * filters
    else:
        few = problem.c <= _FEW_CHANNELS
        for least in _ABOVE:
            for c in (problem.c,) if few else ragged(problem.c, of_x, _LEAST):
                yield 1, c, above(least, problem.k, of_y)


def _convolution(
    problem: Convolution, groups: int, c: int, k: int, size: tuple[int, int]
) -> Convolution | None:
    """The sibling whose smaller image, y or for a transposed one x, has this size."""
    few = (problem.h, problem.w) if problem.transposed else (problem.p, problem.q)
    many = (problem.p, problem.q) if problem.transposed else (problem.h, problem.w)
    down, right = problem.stride
    reached = many[0] + down * (size[0] - few[0]), many[1] + right * (size[1] - few[1])
    (h, w), (p, q) = (size, reached) if problem.transposed else (reached, size)
    if min(h, w, p, q) < 1:
        return None
    n = problem.n.value
    of_x = (n, problem.c, problem.h, problem.w), (BATCH, c, h, w)
    of_y = (n, problem.k, problem.p, problem.q), (BATCH, k, p, q)
    x, y = resized(problem.x, *of_x, spread=True), resized(problem.y, *of_y, spread=True)
    epilogue = _epilogue(problem.epilogue, *of_y)
    if x is None or y is None or epilogue is None:
        return None
    found = replace(
        problem,
        n=_extent(problem.n, BATCH),
        c=c,
        h=h,
        w=w,
        k=k,
        p=p,
        q=q,
        groups=groups,
        x=x,
        y=y,
        epilogue=epilogue,
    )
    if isinstance(found, ClampedConvolution):
        limits = _all([resized(each, *of_x) for each in found.limits])
        if limits is None:
            return None
        found = replace(found, lower=limits[0], upper=limits[1] if limits[1:] else None)
    return found


def _matmuls(problem: Matmul) -> Iterator[Matmul | None]:
    y_like = (problem.y, *problem.epilogue.operands)
    strided_b = () if problem.b_constant else (problem.b,)
    of_m = _unit(2, problem.a, *y_like)
    of_n, of_k = _unit(3, *strided_b, *y_like), max(_unit(3, problem.a), _unit(2, *strided_b))
    outer, heads = problem.batch
    single = outer.value == heads == 1 and outer.free is None
    batch = (1, 1) if single else (BATCH, min(heads, 3))
    for least in _ABOVE:
        rows, n = above(least, problem.m.value, of_m), above(least, problem.n, of_n)
        if problem.m.free is not None and problem.m.factor > 1:
            rows = BATCH * (rows | 1)
        for k in ragged(problem.k, of_k, _LEAST):
            yield _matmul(problem, batch, rows, n, k)


def _matmul(problem: Matmul, batch: tuple[int, int], m: int, n: int, k: int) -> Matmul | None:
    outer = (problem.batch[0].value, problem.batch[1])
    of_y = (*outer, problem.m.value, problem.n), (*batch, m, n)
    a = resized(problem.a, (*outer, problem.m.value, problem.k), (*batch, m, k), spread=True)
    before, after = (*outer, problem.k, problem.n), (*batch, k, n)
    b: Tensor | None = replace(problem.b, strides=(0, 0, n, 1))
    if not problem.b_constant:
        b = resized(problem.b, before, after, spread=True)
    y, epilogue = resized(problem.y, *of_y, spread=True), _epilogue(problem.epilogue, *of_y)
    if a is None or b is None or y is None or epilogue is None:
        return None
    extents = _extent(problem.batch[0], batch[0]), batch[1]
    rows = _extent(problem.m, m)
    return replace(problem, batch=extents, m=rows, n=n, k=k, a=a, b=b, y=y, epilogue=epilogue)


def _attentions(problem: Attention) -> Iterator[Attention | None]:
    masks = problem.scores.operands
    of_row = _unit(2, problem.q, problem.y, *masks)
    of_key = max(_unit(2, problem.k, problem.v), _unit(3, *masks))
    of_depth = _unit(3, problem.q, problem.k, problem.v, problem.y)
    same = problem.depth == problem.width
    depths = [n for n in ragged(problem.depth, of_depth, _LEAST) if n < problem.depth]
    for least, depth in product(_QUERIES, (*depths[:1], problem.depth)):
        for keys in ragged(problem.keys, of_key, _LEAST):
            rows, width = above(least, problem.queries, of_row), depth if same else problem.width
            yield _attention(problem, rows, keys, depth, width)


def _attention(
    problem: Attention, queries: int, keys: int, depth: int, width: int
) -> Attention | None:
    heads = problem.batch[1]
    old, new = (problem.batch[0].value, heads), (BATCH, min(heads, 3))
    of_rows, of_keys = (problem.queries, queries), (problem.keys, keys)
    of_depth, of_width = (problem.depth, depth), (problem.width, width)

    def put(tensor: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor | None:
        before, after = ((*b, r, c) for b, r, c in zip((old, new), rows, columns, strict=True))
        return resized(tensor, before, after, spread=True)

    q, k = put(problem.q, of_rows, of_depth), put(problem.k, of_keys, of_depth)
    v, y = put(problem.v, of_keys, of_width), put(problem.y, of_rows, of_width)
    scores = _epilogue(problem.scores, (*old, problem.queries, problem.keys), (*new, queries, keys))
    if q is None or k is None or v is None or y is None or scores is None:
        return None
    return replace(
        problem,
        batch=(_extent(problem.batch[0], BATCH), new[1]),
        queries=queries,
        keys=keys,
        depth=depth,
        width=width,
        q=q,
        k=k,
        v=v,
        scores=scores,
        y=y,
    )


def _normalisations(problem: Normalisation) -> Iterator[Normalisation | None]:
    column = len(problem.outer)
    of_cols = _unit(column, *problem.inputs, problem.y, *problem.epilogue.operands)
    for cols in ragged(problem.cols, of_cols, _LEAST):
        leading = _extent(problem.leading, BATCH if column > 1 else 5 * BATCH)
        outer = (leading.value, *(min(n, 5) for n in problem.outer[1:]))
        shapes = (*problem.outer, problem.cols), (*outer, cols)
        inputs = _all([resized(each, *shapes, spread=True) for each in problem.inputs])
        y, epilogue = resized(problem.y, *shapes, spread=True), _epilogue(problem.epilogue, *shapes)
        if inputs is None or y is None or epilogue is None:
            continue
        yield replace(
            problem,
            leading=leading,
            outer=outer,
            cols=cols,
            inputs=inputs,
            y=y,
            epilogue=epilogue,
        )
