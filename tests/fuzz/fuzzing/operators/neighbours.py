"""Products with what passes look for beside them: normalisations, limits, pools, padding, siblings."""

import numpy as np

from fuzzing.builder import Builder, Rejected, Value
from fuzzing.operators.elementwise import positive
from fuzzing.operators.formulas import swapped
from fuzzing.operators.registry import CHANNELS, maps, move, one_of
from fuzzing.operators.rows import linear, rows
from fuzzing.operators.windows import batch_norm, conv, window


def pointwise(builder: Builder, x: Value, channels: int | None = None) -> Value:
    """A convolution with a 1 x 1 kernel."""
    return conv(builder, x, channels, kernel_shape=[1] * (x.rank - 2))


@move("Conv", "BatchNormalization", weight=6)
def normalised_convolution(builder: Builder) -> None:
    """A normalisation in front of or behind a convolution."""
    x = maps(builder)
    kind = builder.random.random()
    if kind < 0.6:
        made = batch_norm(builder, conv(builder, x, **window(builder, x.rank - 2)))
        if builder.random.random() < 0.6:
            builder.add(one_of(builder, ("Relu", "LeakyRelu", "Sigmoid")), [made])
    elif kind < 0.8:
        conv(builder, batch_norm(builder, x), **window(builder, x.rank - 2))
    else:
        made = builder.add("Relu", [batch_norm(builder, x)])
        pointwise(builder, made)


@move("Conv", "Clip", weight=4)
def clamped_product(builder: Builder) -> None:
    """An affine map and a limit in front of a product."""
    x = maps(builder, 4)
    x = builder.add("MaxPool", [x], kernel_shape=[1, 1]) if builder.random.random() < 0.3 else x
    shape = (x.arrays[0].shape[1], 1, 1)
    made = x
    if builder.random.random() < 0.8:
        made = swapped(builder, "Mul", made, builder.weight(*shape, dtype=x.dtype))
    if builder.random.random() < 0.8:
        made = swapped(builder, "Add", made, builder.weight(*shape, dtype=x.dtype))
    if builder.random.random() < 0.5:
        made = builder.add("Relu", [made])
    else:
        limits = [builder.constant(np.asarray(v, x.dtype)) for v in (0.0, 6.0)]
        made = builder.add("Clip", [made, *limits])
    pointwise(builder, made)
    if builder.random.random() < 0.3:
        builder.add("Sigmoid", [x])


@move("Conv", "Concat", weight=5)
def siblings(builder: Builder) -> None:
    """Products that read one tensor, and what is behind them."""
    x = maps(builder, 4)
    act = one_of(builder, [None, "Relu", "Relu", "Sigmoid", "Tanh"])
    made = []
    attributes = window(builder, 2)
    for _ in range(one_of(builder, (2, 2, 3))):
        each = conv(builder, x, one_of(builder, (4, 8, 8, 3)), **attributes)
        if act and builder.random.random() < 0.9:
            each = builder.add(act, [each])
        made.append(each)
    if builder.random.random() < 0.6:
        builder.add("Concat", made, axis=one_of(builder, (1, -3)))


@move("MatMul", weight=3)
def sibling_rows(builder: Builder) -> None:
    """Query, key and value, or a gate and what it opens."""
    x = rows(builder, 2, 3)
    width = one_of(builder, (4, 8))
    made = [linear(builder, x, width) for _ in range(one_of(builder, (2, 3)))]
    if builder.random.random() < 0.5:
        swapped(builder, "Mul", made[0], builder.add("Sigmoid", [made[1]]))


@move("AveragePool", "Conv", weight=3)
def pooled_product(builder: Builder) -> None:
    """Pooling in front of or behind a 1 x 1 convolution."""
    x = maps(builder, 4)
    size = one_of(builder, (2, 2, 3))
    pool = {"kernel_shape": [size, size], "strides": one_of(builder, [[size, size], [1, 1], None])}
    if builder.random.random() < 0.3:
        pool |= {"pads": [size // 2] * 4, "count_include_pad": one_of(builder, (0, 1))}
    if builder.random.random() < 0.5:
        builder.add("AveragePool", [pointwise(builder, x)], **pool)
    else:
        pooled = builder.add("AveragePool", [x], **pool)
        pointwise(builder, pooled, one_of(builder, (1, 3)))


@move("Pad", "Conv", "AveragePool", "MaxPool", weight=3)
def padded_window(builder: Builder) -> None:
    """Padding that a window could do itself."""
    x = maps(builder, 3, 4, 4)
    rank = x.rank - 2
    amounts = [one_of(builder, (0, 1, 1, 2, -1)) for _ in range(2 * rank)]
    pads = [0, 0, *amounts[:rank], 0, 0, *amounts[rank:]]
    value = None
    if builder.random.random() < 0.4:
        value = builder.constant(np.asarray(one_of(builder, (0.0, 0.0, 1.0, -np.inf)), x.dtype))
    padded = x
    if value is None or np.isfinite(value.arrays[0]).all():
        padded = builder.add("Pad", [x, builder.ints(pads), value])
    if builder.random.random() < 0.6:
        conv(builder, padded, **window(builder, rank))
    else:
        attributes = window(builder, rank)
        attributes.pop("dilations", None)
        builder.add(one_of(builder, ("MaxPool", "AveragePool")), [padded], **attributes)


@move("Add", weight=4)
def residual(builder: Builder) -> None:
    """A branch added to what it began with."""
    x = maps(builder, 4)
    made = conv(builder, x, x.arrays[0].shape[1], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    if builder.random.random() < 0.5:
        made = batch_norm(builder, made)
    if builder.random.random() < 0.5:
        gate = builder.add("GlobalAveragePool", [made])
        gate = builder.add(
            one_of(builder, ("Sigmoid", "Relu")),
            [pointwise(builder, gate, made.arrays[0].shape[1])],
        )
        made = swapped(builder, "Mul", made, gate)
    made = swapped(builder, "Add", made, x)
    if builder.random.random() < 0.5:
        builder.add("Relu", [made])


@move("Conv", "Mul", "Add", weight=3)
def scaled_product(builder: Builder) -> None:
    """Constants by channel behind or in front of a product."""
    x = maps(builder, 3, 4, 4)
    ones = [1] * (x.rank - 2)
    op = one_of(builder, ("Mul", "Add", "Sub", "Div"))
    if builder.random.random() < 0.5:
        made = conv(builder, x, one_of(builder, CHANNELS), **window(builder, x.rank - 2))
        other = builder.weight(made.arrays[0].shape[1], *ones, dtype=x.dtype)
        other = positive(builder, other) if op == "Div" else other
        builder.add(op, [made, other])
    else:
        other = builder.weight(x.arrays[0].shape[1], *ones, dtype=x.dtype)
        other = positive(builder, other) if op == "Div" else other
        conv(builder, builder.add(op, [x, other]), **window(builder, x.rank - 2))


@move("Transpose", "Conv", weight=3)
def channels_last(builder: Builder) -> None:
    """An exporter that keeps channels last, and turns around every product."""
    x = maps(builder, 4)
    turned = builder.add("Transpose", [x], perm=[0, 3, 1, 2])
    if builder.random.random() < 0.7:
        turned = conv(builder, turned, **window(builder, 2))
    else:
        turned = builder.add(one_of(builder, ("Relu", "Softmax")), [turned])
    builder.add("Transpose", [turned], perm=[0, 2, 3, 1])


@move("Concat", "Slice", "Split", weight=2)
def joined_and_cut(builder: Builder) -> None:
    """A part taken out of what was joined before."""
    x = maps(builder, 3, 4)
    c = x.arrays[0].shape[1]
    joined = builder.add("Concat", [x, builder.add("Relu", [x]), builder.add("Neg", [x])], axis=1)
    if builder.random.random() < 0.5:
        begin = one_of(builder, (0, c, 2 * c, 1))
        given = [builder.ints([n]) for n in (begin, begin + c, 1)]
        builder.add("Slice", [joined, *given])
        return
    if builder.opset < 13:
        builder.add_many("Split", [joined], outputs=3, axis=1, split=[c, c, c])
    else:
        sizes = one_of(builder, ([c, c, c], [c, 2 * c - 1, 1]))
        builder.add_many("Split", [joined, builder.ints(sizes)], outputs=3, axis=1)


@move("Reshape", "Transpose", weight=2)
def shuffled_channels(builder: Builder) -> None:
    """Channels in groups, exchanged."""
    x = maps(builder, 4)
    c, h, w = x.inner
    if c % 2:
        raise Rejected("an odd number of channels")
    split = builder.add("Reshape", [x, builder.ints([0, 2, c // 2, h, w])])
    turned = builder.add("Transpose", [split], perm=[0, 2, 1, 3, 4])
    builder.add("Reshape", [turned, builder.ints([0, c, h, w])])
