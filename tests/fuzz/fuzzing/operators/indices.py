"""Operators that read and write by index, and those that find indices."""

import numpy as np

from fuzzing.builder import Builder, Range, Rejected, Value
from fuzzing.operators.registry import axis_of, floats, maybe, move, one_of
from fuzzing.operators.rows import rows


def index_for(builder: Builder, shape: list[int | str], size: int) -> Value:
    """Indices of an axis, constant or an input; negative ones count from the end."""
    kind = one_of(builder, (np.int64, np.int64, np.int32))
    if all(isinstance(n, int) for n in shape) and builder.random.random() < 0.4:
        low = -size if builder.random.random() < 0.5 else 0
        return builder.ints(builder.rng().integers(low, size, shape), kind)
    return builder.input(shape, kind, Range(0, size))


def inner_axis(builder: Builder, x: Value) -> int:
    """An axis; mostly not the batch where that is free."""
    return axis_of(builder, x, 1 if x.is_free and builder.random.random() < 0.9 else 0)


@move("GatherElements", weight=1.5)
def gather_elements(builder: Builder) -> None:
    """As many or fewer elements along an axis, or more."""
    x = rows(builder)
    axis = inner_axis(builder, x)
    shape = list(x.shape)
    shape[axis] = one_of(builder, (1, 2, 5))
    index = index_for(builder, shape, x.arrays[0].shape[axis])
    builder.add("GatherElements", [x, index], axis=axis)


@move("GatherND", weight=1)
def gather_nd(builder: Builder) -> None:
    """Slices by one or two numbers; in batches, too."""
    x = rows(builder)
    batch = 1 if x.is_free or (builder.opset >= 12 and builder.random.random() < 0.3) else 0
    if batch and builder.opset < 12:
        raise Rejected("no batches yet")
    numbers = one_of(builder, range(1, x.rank - batch + 1))
    size = min(x.arrays[0].shape[batch : batch + numbers])
    shape = [*x.shape[:batch], one_of(builder, (1, 3)), numbers]
    index = index_for(builder, shape, size)
    builder.add("GatherND", [x, index], batch_dims=batch or None)


@move("ScatterElements", weight=1)
def scatter_elements(builder: Builder) -> None:
    """Each place at most once where nothing is summed."""
    x = rows(builder)
    axis = inner_axis(builder, x)
    reductions = {18: ("add", "mul", "max", "min"), 16: ("add", "mul")}
    known = next((each for since, each in reductions.items() if builder.opset >= since), ())
    reduction = one_of(builder, (None, *known))
    shape, size = list(x.shape), x.arrays[0].shape[axis]
    shape[axis] = one_of(builder, (1, 1, 2)) if reduction else 1
    index = index_for(builder, shape, size)
    updates = builder.input(shape, x.dtype)
    builder.add("ScatterElements", [x, index, updates], axis=axis, reduction=reduction)


@move("ScatterND", weight=1)
def scatter_nd(builder: Builder) -> None:
    """Slices of what has no free batch."""
    x = rows(builder)
    if x.is_free:
        x = builder.input([3, 4, 6])
    numbers = one_of(builder, range(1, x.rank + 1))
    sizes = x.arrays[0].shape[:numbers]
    reduction = one_of(builder, (None, "add")) if builder.opset >= 16 else None
    count = one_of(builder, (1, 2)) if reduction else 1
    index = index_for(builder, [count, numbers], min(sizes))
    updates = builder.input([count, *x.arrays[0].shape[numbers:]], x.dtype)
    builder.add("ScatterND", [x, index, updates], reduction=reduction)


@move("OneHot", weight=0.7)
def one_hot(builder: Builder) -> None:
    """A new axis anywhere behind the batch."""
    depth = one_of(builder, (2, 5, 8))
    shape = [one_of(builder, (1, 3)), one_of(builder, (2, 4))]
    index = builder.input(shape, np.int64, Range(0, depth))
    values = builder.constant(np.array([0.0, one_of(builder, (1.0, -2.0))], np.float32))
    axis = one_of(builder, (None, -1, 1, -2, 0))
    builder.add("OneHot", [index, builder.ints(depth), values], axis=axis)


@move("ArgMax", "ArgMin", weight=1)
def first_of_rows(builder: Builder) -> None:
    """Along any axis; the last of equals, too."""
    x = floats(builder)
    if x.rank == 0:
        raise Rejected("a scalar")
    last = maybe(builder, 1, 0.3) if builder.opset >= 12 else None
    builder.add(
        one_of(builder, ("ArgMax", "ArgMin")),
        [x],
        axis=inner_axis(builder, x),
        keepdims=maybe(builder, 0),
        select_last_index=last,
    )


@move("TopK", weight=1)
def top(builder: Builder) -> None:
    """Values, indices or both."""
    x = rows(builder)
    axis = inner_axis(builder, x)
    size = x.arrays[0].shape[axis]
    count = one_of(builder, [n for n in (1, 2, 4, size) if n <= size])
    largest = maybe(builder, one_of(builder, (0, 1))) if builder.opset >= 11 else None
    given = [x, builder.ints([count])]
    builder.add_many("TopK", given, outputs=2, axis=axis, largest=largest)


@move("Trilu", "EyeLike", weight=0.7)
def triangle(builder: Builder) -> None:
    """Of matrices; an identity matrix added to one."""
    x = rows(builder, 2, 3)
    if builder.opset >= 14 and builder.random.random() < 0.7:
        given = [x, builder.ints(one_of(builder, (-1, 0, 2)))]
        chosen = given if builder.random.random() < 0.7 else given[:1]
        builder.add("Trilu", chosen, upper=maybe(builder, 0))
        return
    if x.rank != 2 or x.is_free:
        x = builder.input([4, 6])
    eye = builder.add("EyeLike", [x], k=maybe(builder, 1), keep=False)
    builder.add("Add", [x, eye])


@move("ReverseSequence", weight=0.4)
def reversed_sequences(builder: Builder) -> None:
    """Batches in front or behind the steps; every length."""
    x = rows(builder, 2, 3)
    first = x.is_free or builder.random.random() < 0.5
    batch, steps = x.arrays[0].shape[:2] if first else x.arrays[0].shape[1::-1]
    if x.is_free:
        lengths = builder.input([x.shape[0]], np.int64, Range(1, steps + 1))
    else:
        lengths = builder.ints(builder.rng().integers(1, steps + 1, batch))
    axes = {"batch_axis": 0, "time_axis": 1} if first else {}
    builder.add("ReverseSequence", [x, lengths], **axes)


@move("CumSum", weight=0.7)
def running(builder: Builder) -> None:
    """Along any axis, in both directions."""
    x = rows(builder)
    builder.add(
        "CumSum",
        [x, builder.ints(inner_axis(builder, x))],
        exclusive=maybe(builder, 1),
        reverse=maybe(builder, 1),
    )
