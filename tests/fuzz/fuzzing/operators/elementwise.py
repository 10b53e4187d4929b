"""Element-wise operators: functions, arithmetic with every way of broadcasting, truth values."""

from typing import Any

import numpy as np
import onnx

from fuzzing.builder import Builder, Value
from fuzzing.operators.registry import floats, maybe, move, one_of, pick
from fuzzing.rounding import BF16

SMOOTH = (
    "Relu", "Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Softplus", "Softsign", "Neg", "Abs", "Identity",
    "Floor", "Ceil", "Round", "Sign", "Exp", "Mish", "HardSwish", "Atan", "Asinh", "Sinh", "Cosh",
    "Tan", "Celu", "ThresholdedRelu",
)  # fmt: skip
POSITIVE = ("Log", "Sqrt", "Reciprocal")
INVERSE = ("Asin", "Acos", "Atanh", "Acosh")
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "PRelu")
COMPARISONS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")


@move(*SMOOTH, weight=6)
def function(builder: Builder) -> None:
    """One input, no attributes."""
    builder.add(one_of(builder, SMOOTH), [floats(builder)])


@move(*POSITIVE, weight=1)
def function_of_positive(builder: Builder) -> None:
    """Defined for positive numbers: made such, mostly."""
    x = floats(builder)
    if builder.random.random() < 0.9:
        x = positive(builder, x)
    builder.add(one_of(builder, POSITIVE), [x])


@move(*INVERSE, weight=0.6)
def inverse_function(builder: Builder) -> None:
    """Defined between -1 and 1, or from 1 on."""
    x, op = floats(builder), one_of(builder, INVERSE)
    numbers = np.asarray(1.5 if op == "Acosh" else 0.9, x.dtype)
    if op == "Acosh":
        inside = builder.add(
            "Add", [builder.add("Abs", [x], keep=False), builder.constant(numbers)]
        )
    else:
        share = builder.add("Tanh", [x], keep=False)
        inside = builder.add("Mul", [share, builder.constant(numbers)], keep=False)
    builder.add(op, [inside])


@move("Hardmax", "LpNormalization", "MeanVarianceNormalization", "IsInf", "Xor", weight=0.5)
def defined_by_others(builder: Builder) -> None:
    """Operators without a kernel of their own, along the last axis."""
    x = floats(builder, 2, 3, 4)
    match one_of(
        builder, ("Hardmax", "LpNormalization", "MeanVarianceNormalization", "IsInf", "Xor")
    ):
        case "MeanVarianceNormalization":
            builder.add("MeanVarianceNormalization", [x], axes=[x.rank - 1])
        case "IsInf":
            truth = builder.add("IsInf", [x], detect_negative=maybe(builder, 0))
            builder.add("Cast", [truth], to=onnx.TensorProto.FLOAT)
        case "Xor":
            zero = builder.constant(np.asarray(0.0, x.dtype))
            pair = [builder.add(op, [x, zero], keep=False) for op in ("Less", "Greater")]
            builder.add("Cast", [builder.add("Xor", pair)], to=onnx.TensorProto.FLOAT)
        case op:
            builder.add(op, [x])


def positive(builder: Builder, x: Value) -> Value:
    """|x| + 0.5."""
    half = builder.constant(np.asarray(0.5, x.dtype))
    return builder.add("Add", [builder.add("Abs", [x], keep=False), half], keep=False)


@move("LeakyRelu", "Elu", "Selu", "HardSigmoid", "Gelu", "Swish", weight=3)
def activation(builder: Builder) -> None:
    """Functions with attributes, which may be left out."""
    x = floats(builder)
    alpha = maybe(builder, round(builder.random.uniform(0.05, 1.5), 3))
    match one_of(builder, ("LeakyRelu", "Elu", "Selu", "HardSigmoid", "Gelu", "Swish")):
        case "LeakyRelu":
            builder.add("LeakyRelu", [x], alpha=alpha)
        case "Elu":
            builder.add("Elu", [x], alpha=alpha)
        case "Selu":
            gamma = maybe(builder, round(builder.random.uniform(0.5, 1.5), 3))
            builder.add("Selu", [x], alpha=alpha, gamma=gamma)
        case "HardSigmoid":
            beta = maybe(builder, round(builder.random.uniform(0.2, 0.8), 3))
            builder.add("HardSigmoid", [x], alpha=alpha, beta=beta)
        case "Gelu":
            kind = maybe(builder, one_of(builder, ("none", "tanh")), 0.7)
            builder.add("Gelu", [x], approximate=kind)
        case _:
            builder.add("Swish", [x], alpha=alpha)


def operand(builder: Builder, x: Value) -> Value:
    """Something that arithmetic with ``x`` broadcasts."""
    kind = builder.random.random()
    if kind < 0.3:
        mates = [v for v in builder.values if v.dtype == x.dtype and _meet(v, x)]
        return one_of(builder, mates)
    if kind < 0.5:
        shape = one_of(builder, [(), (), (1,), (1,) * max(1, x.rank)])
        value = one_of(builder, [0.5, 2.0, 3.0, -1.0, 0.1, 0.0, 1.0, 0.25, 1.7])
        return builder.constant(np.full(shape, value, x.dtype))
    sizes = list(x.arrays[0].shape)
    for axis in range(len(sizes)):
        if builder.random.random() < (0.3 if kind < 0.8 else 0.75) or isinstance(
            x.shape[axis], str
        ):
            sizes[axis] = 1
    keep = builder.random.randint(0, len(sizes)) if builder.random.random() < 0.4 else 0
    while keep and sizes and sizes[0] == 1:
        sizes.pop(0)
        keep -= 1
    return builder.weight(*sizes, dtype=x.dtype)


def _meet(one: Value, other: Value) -> bool:
    pairs = zip(one.shape[::-1], other.shape[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


@move(*ARITHMETIC, weight=8)
def arithmetic(builder: Builder) -> None:
    """Two operands."""
    x = floats(builder)
    y = operand(builder, x)
    op = one_of(builder, [*ARITHMETIC, "Add", "Add", "Mul", "Mul", "Sub"])
    if op == "PRelu":
        builder.add(op, [x, y])
        return
    if op == "Pow":
        if builder.random.random() < 0.7:
            exponent = one_of(builder, [2.0, 3.0, 0.5, -1.0, 1.0, 4.0, 1.5, 0.0, -2.0])
            y = builder.constant(np.asarray(exponent, x.dtype))
        if not y.constant or builder.random.random() < 0.6:
            x = positive(builder, x)
    elif op in ("Div", "Mod") and not (y.constant and builder.random.random() < 0.3):
        y = positive(builder, y)
    pair = [y, x] if builder.random.random() < 0.25 and op not in ("Pow", "Mod", "Div") else [x, y]
    builder.add(op, pair, fmod=one_of(builder, (0, 1)) if op == "Mod" else None)


@move("Sum", "Max", "Min", "Mean", weight=1)
def variadic(builder: Builder) -> None:
    """One to four operands."""
    x = floats(builder)
    others = [operand(builder, x) for _ in range(builder.random.randint(0, 3))]
    op = one_of(builder, ("Sum", "Sum", "Max", "Max", "Min", "Min", "Mean"))
    builder.add(op, [x, *others])


@move("Clip", weight=2)
def clip(builder: Builder) -> None:
    """Any of the limits left out; equal, infinite, exchanged."""
    x = floats(builder)
    low, high = sorted(builder.random.choice([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 6.0]) for _ in "ab")
    if builder.random.random() < 0.05:
        low, high = -np.inf, np.inf
    limits = [builder.constant(np.asarray(each, x.dtype)) for each in (low, high)]
    given = [v if builder.random.random() < 0.75 else None for v in limits]
    builder.add("Clip", [x, *given])


@move(*COMPARISONS, "And", "Or", "Xor", "Not", "IsNaN", "Where", "Cast", weight=2.5)
def choice(builder: Builder) -> None:
    """A condition, what may become of it, and a Where or a Cast behind it."""
    x = floats(builder)
    truth = _condition(builder, x)
    if builder.random.random() < 0.3:
        other = _condition(builder, x)
        truth = builder.add(one_of(builder, ("And", "Or", "Xor")), [truth, other])
    if builder.random.random() < 0.2:
        truth = builder.add("Not", [truth])
    end = builder.random.random()
    if end < 0.6:
        branches = [x, operand(builder, x)]
        builder.random.shuffle(branches)
        builder.add("Where", [truth, *branches])
    elif end < 0.85:
        builder.add("Cast", [truth], to=_code(x.dtype))


def _condition(builder: Builder, x: Value) -> Value:
    given = [v for v in builder.values if v.dtype == np.bool_ and _meet(v, x)]
    if given and builder.random.random() < 0.4:
        return one_of(builder, given)
    if builder.random.random() < 0.1:
        return builder.add("IsNaN", [x])
    return builder.add(one_of(builder, COMPARISONS), [x, operand(builder, x)])


def _code(dtype: Any) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


@move("Cast", weight=1.5)
def cast(builder: Builder) -> None:
    """Between any two types; back again, mostly."""
    x = pick(builder)
    kinds = [
        np.float32,
        np.float16,
        np.float16,
        BF16,
        np.int32,
        np.int64,
        np.bool_,
        np.int8,
        np.uint8,
    ]
    kind = one_of(builder, kinds)
    if x.dtype != np.bool_ and kind in (np.int8, np.uint8):  # what does not fit is not defined
        limits = [builder.constant(np.asarray(n, x.dtype)) for n in (0, 100)]
        x = builder.add("Clip", [x, *limits], keep=False)
    made = builder.add("Cast", [x], to=_code(kind))
    if builder.random.random() < 0.7:
        builder.add("Cast", [made], to=_code(np.float32))


@move("Dropout", weight=0.5)
def dropout(builder: Builder) -> None:
    """As exported for inference; the mask is there at times."""
    x = floats(builder)
    count = 2 if builder.random.random() < 0.15 else 1
    if builder.opset < 12:
        builder.add_many("Dropout", [x], outputs=count, ratio=maybe(builder, 0.3))
        return
    ratio = builder.constant(np.float32(0.3)) if builder.random.random() < 0.5 else None
    training = builder.constant(np.bool_(False)) if builder.random.random() < 0.4 else None
    builder.add_many("Dropout", [x, ratio, training], outputs=count)
