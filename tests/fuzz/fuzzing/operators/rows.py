"""Products of matrices, reductions, softmax and normalisations along axes."""

import numpy as np

from fuzzing.builder import Builder, Rejected, Value
from fuzzing.operators.registry import (
    LENGTHS,
    WIDTHS,
    axis_of,
    batch,
    floats,
    maybe,
    move,
    one_of,
    pick,
    some_axes,
)
from fuzzing.operators.windows import weights

REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip


def rows(builder: Builder, *ranks: int) -> Value:
    """A matrix, or several; an input is added where there is none."""
    wanted = ranks or (2, 3, 3, 4)
    try:
        return pick(builder, lambda v: v.is_float and v.rank in wanted)
    except Rejected:
        middle = [one_of(builder, LENGTHS) for _ in range(one_of(builder, wanted) - 2)]
        return builder.input([batch(builder), *middle, one_of(builder, WIDTHS)])


@move("Det", weight=0.4)
def determinants(builder: Builder) -> None:
    """Of small matrices, mostly of a batch."""
    size = one_of(builder, (1, 2, 3, 5))
    x = builder.input([*([batch(builder)] if builder.random.random() < 0.8 else []), size, size])
    builder.add("Det", [x])


def linear(builder: Builder, x: Value, width: int | None = None) -> Value:
    """A product with a constant matrix; with a bias, mostly."""
    k = x.arrays[0].shape[-1]
    n = width or one_of(builder, WIDTHS)
    w = weights(builder, n, k, dtype=x.dtype)
    if builder.random.random() < 0.3:
        w = builder.add("Transpose", [w], perm=[1, 0], keep=False)
    else:
        w = weights(builder, k, n, dtype=x.dtype)
    made = builder.add("MatMul", [x, w])
    if builder.random.random() < 0.6:
        pair = [made, builder.weight(n, dtype=x.dtype)]
        builder.random.shuffle(pair)
        made = builder.add("Add", pair)
    return made


@move("MatMul", weight=4)
def product(builder: Builder) -> None:
    """With a constant, or of two tensors; a vector at times."""
    x, kind = rows(builder), builder.random.random()
    k = x.arrays[0].shape[-1]
    if kind < 0.5:
        linear(builder, x)
    elif kind < 0.8:
        mates = [v for v in builder.values if v.dtype == x.dtype and v.rank > 1 and _fits(v, k)]
        if mates:
            builder.add("MatMul", [x, one_of(builder, mates)])
            return
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        across = builder.add("Transpose", [x], perm=order)
        builder.add("MatMul", [x, across] if builder.random.random() < 0.5 else [across, x])
    elif kind < 0.9:
        first = builder.weight(one_of(builder, (1, 4)), x.arrays[0].shape[-2], dtype=x.dtype)
        builder.add("MatMul", [first, x])
    else:
        shape = one_of(builder, [(k,), (1, k, 4), (1, 1, k, 8)])
        builder.add("MatMul", [x, builder.weight(*shape, dtype=x.dtype, scale=k**-0.5)])


def _fits(value: Value, k: int) -> bool:
    return value.shape[-2] == k


@move("Gemm", weight=3)
def gemm(builder: Builder) -> None:
    """Every attribute, and every shape that C may have."""
    x, draw = rows(builder, 2), builder.random
    trans_a = 1 if draw.random() < 0.1 and not x.is_free else 0
    m, k = x.arrays[0].shape[:: -1 if trans_a else 1]
    n = one_of(builder, WIDTHS)
    trans_b = one_of(builder, (0, 1, 1))
    w = weights(builder, *((n, k) if trans_b else (k, n)), dtype=x.dtype)
    forms = [(n,), (n,), (1, n), (1,), (), (1, 1)] + ([] if x.is_free else [(m, n), (m, 1)])
    c = builder.weight(*one_of(builder, forms), dtype=x.dtype) if draw.random() < 0.7 else None
    builder.add(
        "Gemm",
        [x, w, c],
        transA=trans_a or maybe(builder, 0, 0.3),
        transB=trans_b or None,
        alpha=maybe(builder, one_of(builder, (0.5, 2.0, 1.0)), 0.25),
        beta=maybe(builder, one_of(builder, (0.5, 1.0, 0.0)), 0.15),
    )


@move(*REDUCTIONS, weight=4)
def reduction(builder: Builder) -> None:
    """Over any axes; all of them where none is given."""
    x = floats(builder)
    op = one_of(builder, REDUCTIONS)
    axes = some_axes(builder, x) if x.rank and builder.random.random() < 0.92 else None
    reduce(builder, op, x, axes, keepdims=maybe(builder, one_of(builder, (0, 0, 1)), 0.75))


def reduce(
    builder: Builder, op: str, x: Value, axes: list[int] | None, **attributes: object
) -> Value:
    """A reduction whose axes are an attribute or an input, as the opset has it."""
    if op == "ReduceLogSum":
        x = builder.add("Abs", [x], keep=False)
    since = 13 if op == "ReduceSum" else 18
    if builder.opset < since:
        return builder.add(op, [x], axes=axes, **attributes)
    given = builder.ints(axes) if axes is not None else None
    if given is None and builder.random.random() < 0.3:
        attributes = {**attributes, "noop_with_empty_axes": 1}
    return builder.add(op, [x, given], **attributes)


@move("Softmax", "LogSoftmax", weight=3)
def softmax(builder: Builder) -> None:
    """Along any axis; before opset 13 from an axis on."""
    x = floats(builder)
    op = one_of(builder, ("Softmax", "Softmax", "LogSoftmax"))
    first = 1 if x.rank > 1 and builder.random.random() < 0.9 else 0
    builder.add(op, [x], axis=maybe(builder, axis_of(builder, x, first), 0.85))


@move("LayerNormalization", "RMSNormalization", weight=2.5)
def layer_norm(builder: Builder) -> None:
    """From an axis on; the shift may be left out, the scale have fewer axes."""
    x = rows(builder, 2, 3, 3, 4)
    axis = axis_of(builder, x, max(1, x.rank - 2))
    shape = x.arrays[0].shape[axis % x.rank :]
    scale = builder.weight(*shape, dtype=x.dtype)
    shift = builder.weight(*shape, dtype=x.dtype) if builder.random.random() < 0.6 else None
    epsilon = maybe(builder, one_of(builder, (1e-5, 1e-3, 0.1)))
    given = None if axis == -1 and builder.random.random() < 0.4 else axis
    if builder.opset >= 23 and builder.random.random() < 0.5:
        builder.add("RMSNormalization", [x, scale], axis=given, epsilon=epsilon)
    else:
        builder.add("LayerNormalization", [x, scale, shift], axis=given, epsilon=epsilon)


@move("Attention", weight=1)
def attention(builder: Builder) -> None:
    """The operator of opset 23."""
    if builder.opset < 23:
        raise Rejected("opset 23 has it")
    draw, first = builder.random, batch(builder)
    heads, queries, keys, depth = (
        one_of(builder, each) for each in ((1, 2), (1, 4), (4, 7), (4, 8))
    )
    attributes: dict[str, object] = {
        "scale": maybe(builder, 0.3, 0.3),
        "is_causal": maybe(builder, 1, 0.3),
        "softcap": maybe(builder, 2.0, 0.1),
    }
    if draw.random() < 0.5:
        shapes = [[first, heads, n, depth] for n in (queries, keys, keys)]
    else:
        shapes = [[first, n, heads * depth] for n in (queries, keys, keys)]
        attributes |= {"q_num_heads": heads, "kv_num_heads": heads}
    given = [builder.input(shape) for shape in shapes]
    mask = None
    if draw.random() < 0.4:
        mask = builder.weight(queries, keys)
        if draw.random() < 0.5:
            seen = builder.rng().random((queries, keys)) < 0.7
            seen[:, 0] = True
            mask = builder.constant(np.asarray(seen))
    builder.add("Attention", [*given, mask], **attributes)
