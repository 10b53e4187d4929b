"""Operators that move numbers: views, cuts, joins, tables, padding."""

from math import prod

import numpy as np

from fuzzing.builder import FREE, Builder, Range, Rejected, Value
from fuzzing.operators.registry import axis_of, floats, maybe, move, one_of, pick, some_axes


@move("Transpose", weight=3)
def transpose(builder: Builder) -> None:
    """Any order; the batch stays in front, mostly."""
    x = pick(builder, lambda v: v.rank > 1)
    order = list(range(x.rank))
    if builder.random.random() < 0.8:
        rest = order[1:]
        builder.random.shuffle(rest)
        order = [0, *rest]
    else:
        builder.random.shuffle(order)
    builder.add("Transpose", [x], perm=maybe(builder, order, 0.95))


def factors(builder: Builder, count: int, most: int = 3) -> list[int]:
    """Sizes whose product is ``count``."""
    sizes = []
    while len(sizes) < most - 1 and count > 1 and builder.random.random() < 0.7:
        divisor = one_of(builder, [d for d in range(1, count + 1) if count % d == 0])
        sizes.append(divisor)
        count //= divisor
    return [*sizes, count]


@move("Reshape", weight=3)
def reshape(builder: Builder) -> None:
    """To sizes with 0 and -1."""
    x = pick(builder)
    if isinstance(x.shape[0], str) if x.rank else False:
        inner = prod(x.inner)
        target = [one_of(builder, (0, 0, -1)), *factors(builder, inner)]
        if builder.random.random() < 0.1:
            target = [-1, one_of(builder, [d for d in range(1, inner + 1) if inner % d == 0])]
    else:
        target = factors(builder, x.arrays[0].size, 4)
        if builder.random.random() < 0.5 and x.rank and target[0] == x.arrays[0].shape[0]:
            target[0] = 0
        if builder.random.random() < 0.4:
            target[builder.random.randrange(len(target))] = -1
    allow = maybe(builder, 0, 0.1) if builder.opset >= 14 else None
    builder.add("Reshape", [x, builder.ints(target)], allowzero=allow)


@move("Flatten", weight=1.5)
def flatten(builder: Builder) -> None:
    """At any axis, from the front or from behind."""
    x = pick(builder)
    axis = builder.random.randint(-x.rank, x.rank)
    if isinstance(x.shape[0] if x.rank else 0, str) and builder.random.random() < 0.8:
        axis = 1
    builder.add("Flatten", [x], axis=maybe(builder, axis, 0.8))


def by_axes(builder: Builder, op: str, x: Value, axes: list[int] | None) -> Value:
    """A node whose axes are an attribute or an input, as the opset has it."""
    if axes is None:
        return builder.add(op, [x])
    if builder.opset < 13:
        return builder.add(op, [x], axes=axes)
    return builder.add(op, [x, builder.ints(axes)])


@move("Squeeze", "Unsqueeze", weight=2)
def squeeze(builder: Builder) -> None:
    """Axes of size 1 removed or added."""
    x = pick(builder)
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if ones and builder.random.random() < 0.6:
        chosen = builder.random.sample(ones, builder.random.randint(1, len(ones)))
        axes = [a - x.rank if builder.random.random() < 0.5 else a for a in chosen]
        by_axes(builder, "Squeeze", x, axes if builder.random.random() < 0.85 else None)
        return
    count = one_of(builder, (1, 1, 2))
    rank = x.rank + count
    if rank > 5:
        raise Rejected("too many axes")
    begin = 1 if x.is_free and builder.random.random() < 0.9 else 0
    chosen = builder.random.sample(range(begin, rank), count)
    axes = [a - rank if builder.random.random() < 0.5 else a for a in chosen]
    by_axes(builder, "Unsqueeze", x, axes)


@move("Expand", weight=1)
def expand(builder: Builder) -> None:
    """Sizes of 1 grown; in front, too."""
    x = pick(builder)
    grown = [1 if isinstance(n, str) else one_of(builder, (2, 3)) if n == 1 else n for n in x.shape]
    target = [one_of(builder, (1, 1, 2)), *grown] if builder.random.random() < 0.15 else grown
    builder.add("Expand", [x, builder.ints(target or [1])])


@move("Slice", weight=3)
def cut(builder: Builder) -> None:
    """Bounds from both ends, beyond them, with steps; axes left out."""
    x, draw = pick(builder, lambda v: v.rank > 0), builder.random
    axes = some_axes(builder, x)
    if draw.random() < 0.15:
        axes = list(range(draw.randint(1, x.rank)))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.arrays[0].shape[axis]
        start, end = sorted((draw.randrange(size), draw.randint(1, size)))
        starts.append(start - size if draw.random() < 0.3 else start)
        ends.append(draw.choice([end, end, end - size or 1, 2**31 - 1, 2**63 - 1, size + 3]))
        steps.append(draw.choice([1, 1, 1, 2, 3]))
    if draw.random() < 0.05:
        steps[0], starts[0], ends[0] = -1, -1, -(2**31)
    with_steps = any(s != 1 for s in steps) or draw.random() < 0.3
    with_axes = axes != list(range(len(axes))) or draw.random() < 0.7
    kind = one_of(builder, (np.int64, np.int64, np.int32))
    given = [starts, ends, axes if with_axes else None, steps if with_steps else None]
    if kind is np.int32:
        given = [None if g is None else [min(n, 2**31 - 1) for n in g] for g in given]
    builder.add("Slice", [x, *(None if g is None else builder.ints(g, kind) for g in given)])


@move("Concat", weight=3)
def concat(builder: Builder) -> None:
    """Two to four tensors that differ along one axis; one of them twice, or a constant."""
    x = pick(builder, lambda v: v.rank > 0)
    axis = axis_of(builder, x, 1 if x.rank > 1 and builder.random.random() < 0.9 else 0)
    place = axis % x.rank
    mates = [
        v for v in builder.values
        if v.dtype == x.dtype and v.rank == x.rank
        and all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)) if i != place)
    ]  # fmt: skip
    parts = [x, *(one_of(builder, mates) for _ in range(builder.random.choice([0, 1, 1, 1, 2, 3])))]
    if not x.is_free and builder.random.random() < 0.15 and x.is_float:
        parts.append(builder.weight(*x.arrays[0].shape, dtype=x.dtype))
    builder.random.shuffle(parts)
    builder.add("Concat", parts, axis=axis)


@move("Split", weight=2)
def split(builder: Builder) -> None:
    """Into equal or given parts; not all of them need be read."""
    x = pick(builder, lambda v: v.rank > 0 and max(v.arrays[0].shape) > 1)
    axis = axis_of(builder, x, 1 if x.is_free and builder.random.random() < 0.9 else 0)
    size = x.arrays[0].shape[axis]
    count = builder.random.choice([1, 2, 2, 2, 3, 4])
    if size < count:
        raise Rejected("too few to split")
    attributes: dict[str, object] = {"axis": maybe(builder, axis, 0.9) if axis == 0 else axis}
    if size % count == 0 and builder.random.random() < 0.5:
        if builder.opset >= 18:
            attributes["num_outputs"] = count
        builder.add_many("Split", [x], outputs=count, **attributes)
        return
    cuts = sorted(builder.random.sample(range(1, size), count - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    if builder.opset < 13:
        builder.add_many("Split", [x], outputs=count, split=sizes, **attributes)
    else:
        builder.add_many("Split", [x, builder.ints(sizes)], outputs=count, **attributes)


@move("Gather", weight=2.5)
def gather(builder: Builder) -> None:
    """Rows by constant numbers, or by an input; negative ones count from behind."""
    x, draw = pick(builder, lambda v: v.rank > 0), builder.random
    axis = axis_of(builder, x, 1 if x.is_free and draw.random() < 0.9 else 0)
    size = x.arrays[0].shape[axis]
    kind = one_of(builder, (np.int64, np.int64, np.int32))
    shape = one_of(builder, [(), (), (1,), (2,), (3,), (2, 2), (1, 1)])
    if draw.random() < 0.8:
        picks = builder.rng().integers(-size if draw.random() < 0.4 else 0, size, shape)
        builder.add("Gather", [x, builder.ints(picks, kind)], axis=maybe(builder, axis, 0.95))
        return
    index = builder.input(shape, kind, Range(0, size))
    builder.add("Gather", [x, index], axis=axis)


@move("Gather", weight=1)
def embedding(builder: Builder) -> None:
    """A constant table, and an input that numbers its rows."""
    rows, width = one_of(builder, (2, 5, 11)), one_of(builder, (4, 8))
    batch = one_of(builder, [FREE, 1, 2])
    shape = [batch, *one_of(builder, [(), (4,), (7,)])]
    index = builder.input(shape, one_of(builder, (np.int64, np.int32)), Range(0, rows))
    builder.add("Gather", [builder.weight(rows, width), index], axis=0)


@move("Pad", weight=2.5)
def pad(builder: Builder) -> None:
    """Every mode; negative amounts crop."""
    x, draw = floats(builder), builder.random
    if x.rank == 0:
        raise Rejected("a scalar")
    modes = ["constant", "constant", "constant", "reflect", "edge"]
    mode = draw.choice([*modes, "wrap"] if builder.opset >= 19 else modes)
    amounts = [draw.choice([0, 0, 1, 2, -1]) for _ in range(2 * x.rank)]
    if draw.random() < 0.9 and x.rank > 1:
        amounts[0] = amounts[x.rank] = 0
    if draw.random() < 0.6 and x.rank > 2:
        amounts[1] = amounts[x.rank + 1] = 0
    value = builder.constant(np.asarray(draw.choice([0.0, 1.5, -1.0]), x.dtype))
    given = [x, builder.ints(amounts), value if draw.random() < 0.5 else None]
    if builder.opset >= 18 and draw.random() < 0.3:
        axes = draw.sample(range(x.rank), draw.randint(1, x.rank))
        both = [amounts[a] for a in axes] + [amounts[a + x.rank] for a in axes]
        signed = [a - x.rank if draw.random() < 0.5 else a for a in axes]
        given = [x, builder.ints(both), given[2], builder.ints(signed)]
    builder.add("Pad", given, mode=maybe(builder, mode, 0.9) if mode == "constant" else mode)


@move("Tile", weight=0.3)
def tile(builder: Builder) -> None:
    """Repeats along axes; of constants, too."""
    x = floats(builder) if builder.random.random() < 0.5 else builder.weight(1, 4)
    if x.rank == 0:
        raise Rejected("a scalar")
    repeats = [1, *(one_of(builder, (1, 1, 2)) for _ in range(x.rank - 1))]
    made = builder.add("Tile", [x, builder.ints(repeats)])
    if x.constant:
        builder.add("Add", [made, builder.input([one_of(builder, [FREE, 1]), 1])])
