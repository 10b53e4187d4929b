"""Formulas that exporters write out, for passes to recognise: Gelu, LayerNorm, Softmax, attention."""

import numpy as np

from fuzzing.builder import Builder, Value
from fuzzing.operators.registry import floats, move, one_of
from fuzzing.operators.rows import linear, reduce, rows


def number(builder: Builder, x: Value, value: float) -> Value:
    """A scalar constant of the type of ``x``, in one of its forms."""
    return builder.constant(np.full(one_of(builder, [(), (), (1,)]), value, x.dtype))


def swapped(builder: Builder, op: str, x: Value, y: Value) -> Value:
    """A commutative operator with its operands in any order."""
    pair = [x, y]
    builder.random.shuffle(pair)
    return builder.add(op, pair)


@move("Erf", "Tanh", "Pow", weight=3)
def gelu(builder: Builder) -> None:
    """X (1 + erf(x / sqrt 2)) / 2, or with tanh; nearly so, at times."""
    x = floats(builder)
    if builder.random.random() < 0.6:
        inner = builder.add("Erf", [builder.add("Div", [x, number(builder, x, 2**0.5)])])
    else:
        cube = builder.add("Pow", [x, number(builder, x, 3.0)])
        scaled = swapped(builder, "Mul", cube, number(builder, x, 0.044715))
        both = swapped(builder, "Add", x, scaled)
        factor = number(builder, x, one_of(builder, [(2 / np.pi) ** 0.5] * 4 + [0.8]))
        inner = builder.add("Tanh", [swapped(builder, "Mul", both, factor)])
    one = swapped(builder, "Add", inner, number(builder, x, 1.0))
    if builder.random.random() < 0.5:
        swapped(builder, "Mul", swapped(builder, "Mul", x, one), number(builder, x, 0.5))
    else:
        swapped(builder, "Mul", swapped(builder, "Mul", x, number(builder, x, 0.5)), one)


@move("Clip", "HardSigmoid", weight=2)
def hard_swish(builder: Builder) -> None:
    """X clip(x + 3, 0, 6) / 6."""
    x = floats(builder)
    if builder.random.random() < 0.3:
        swapped(builder, "Mul", x, builder.add("HardSigmoid", [x], alpha=1 / 6, beta=0.5))
        return
    moved = swapped(builder, "Add", x, number(builder, x, 3.0))
    limits = [builder.constant(np.asarray(v, x.dtype)) for v in (0.0, 6.0)]
    clipped = builder.add("Clip", [moved, *limits])
    if builder.random.random() < 0.5:
        builder.add("Div", [swapped(builder, "Mul", x, clipped), number(builder, x, 6.0)])
    else:
        swapped(builder, "Mul", x, builder.add("Div", [clipped, number(builder, x, 6.0)]))


@move("Exp", "Div", weight=2)
def logistic(builder: Builder) -> None:
    """1 / (1 + exp(-x)), and x times it."""
    x = floats(builder)
    grown = builder.add("Exp", [builder.add("Neg", [x])])
    below = swapped(builder, "Add", grown, number(builder, x, 1.0))
    above = x if builder.random.random() < 0.5 else number(builder, x, 1.0)
    builder.add("Div", [above, below])


@move("Exp", "ReduceSum", "ReduceMax", weight=2)
def written_softmax(builder: Builder) -> None:
    """exp(x - max) / sum."""
    x = rows(builder)
    axis = one_of(builder, (-1, -1, x.rank - 1, 1))
    if builder.random.random() < 0.7:
        x = builder.add("Sub", [x, reduce(builder, "ReduceMax", x, [axis], keepdims=1)])
    grown = builder.add("Exp", [x])
    builder.add("Div", [grown, reduce(builder, "ReduceSum", grown, [axis], keepdims=1)])


@move("ReduceMean", "Sqrt", "Pow", weight=4)
def written_layer_norm(builder: Builder) -> None:
    """(x - mean) / sqrt(var + eps) times scale plus shift."""
    x = rows(builder, 2, 3, 4)
    axes = [-1] if builder.random.random() < 0.8 else [-2, -1]
    mean = reduce(builder, "ReduceMean", x, axes, keepdims=1)
    centred = builder.add("Sub", [x, mean])
    if builder.random.random() < 0.5:
        square = builder.add("Pow", [centred, number(builder, x, 2.0)])
    else:
        square = builder.add("Mul", [centred, centred])
    variance = reduce(builder, "ReduceMean", square, axes, keepdims=1)
    shifted = swapped(builder, "Add", variance, number(builder, x, one_of(builder, (1e-5, 0.1))))
    made = builder.add("Div", [centred, builder.add("Sqrt", [shifted])])
    if builder.random.random() < 0.8:
        width = x.arrays[0].shape[-1]
        made = swapped(builder, "Mul", made, builder.weight(width, dtype=x.dtype))
        swapped(builder, "Add", made, builder.weight(width, dtype=x.dtype))


@move("MatMul", "Softmax", weight=4)
def written_attention(builder: Builder) -> None:
    """Scores, scale, mask, softmax, and the product with the values; heads split, at times."""
    x = rows(builder, 3)
    length, width = x.inner
    if builder.random.random() < 0.5 and width % 2 == 0:
        parts = [_heads(builder, linear(builder, x, width), length, width) for _ in range(3)]
    else:
        parts = [linear(builder, x, width) for _ in range(3)]
    q, k, v = parts
    order = [*range(q.rank - 2), q.rank - 1, q.rank - 2]
    across = builder.add("Transpose", [k], perm=order)
    if builder.random.random() < 0.3:
        q = swapped(builder, "Mul", q, number(builder, q, 0.35))
    scores = builder.add("MatMul", [q, across])
    if builder.random.random() < 0.6:
        scores = builder.add("Div", [scores, number(builder, x, width**0.5)])
    if builder.random.random() < 0.4:
        mask = np.triu(np.full((length, length), one_of(builder, (-1e4, -10.0))), 1)
        scores = swapped(builder, "Add", scores, builder.constant(mask.astype(x.dtype)))
    made = builder.add("MatMul", [builder.add("Softmax", [scores], axis=-1), v])
    if made.rank == 4:
        made = builder.add("Transpose", [made], perm=[0, 2, 1, 3])
        builder.add("Reshape", [made, builder.ints([0, length, width])])


def _heads(builder: Builder, x: Value, length: int, width: int) -> Value:
    split = builder.add("Reshape", [x, builder.ints([0, length, 2, width // 2])])
    return builder.add("Transpose", [split], perm=[0, 2, 1, 3])


@move("Add", "Mul", "Relu", "Clip", weight=3)
def constant_chain(builder: Builder) -> None:
    """Arithmetic with constants, one after the other; limits of limits."""
    x = floats(builder)
    if builder.random.random() < 0.7:
        op = one_of(builder, ("Add", "Mul", "Sub", "Div"))
        for _ in range(one_of(builder, (2, 2, 3))):
            value = one_of(builder, (0.5, 2.0, 3.0, -1.5, 4.0))
            pair = [x, number(builder, x, value)]
            x = builder.add(op, pair)
        return
    for _ in range(2):
        if builder.random.random() < 0.4:
            x = builder.add("Relu", [x])
            continue
        limits = [
            builder.constant(np.asarray(v, x.dtype)) for v in (-1.0, one_of(builder, (0.5, 6.0)))
        ]
        x = builder.add(
            "Clip", [x, *(v if builder.random.random() < 0.8 else None for v in limits)]
        )
