"""Integers: shapes computed by the model, index arithmetic, integer tensors that are moved about."""

import numpy as np
import onnx

from fuzzing.builder import FREE, Builder, Range, Value
from fuzzing.operators.registry import floats, move, one_of, pick


@move("Shape", "Gather", "Concat", "Reshape", weight=2)
def computed_reshape(builder: Builder) -> None:
    """The batch read from a shape, as exporters write it."""
    x = pick(builder, lambda v: v.is_float and v.rank > 1)
    shape = builder.add("Shape", [x], keep=False)
    index = builder.ints(one_of(builder, (0, [0])))
    first = builder.add("Gather", [shape, index], axis=0, keep=False)
    if index.rank == 0:
        first = _unsqueezed(builder, first)
    rest = int(np.prod(x.inner))
    tail = one_of(builder, ([rest], [-1], [1, rest], [rest, 1]))
    target = builder.add("Concat", [first, builder.ints(tail)], axis=0, keep=False)
    builder.add("Reshape", [x, target])


def _unsqueezed(builder: Builder, x: Value) -> Value:
    if builder.opset < 13:
        return builder.add("Unsqueeze", [x], axes=[0], keep=False)
    return builder.add("Unsqueeze", [x, builder.ints([0])], keep=False)


@move("Shape", "Slice", "Expand", "ConstantOfShape", weight=1)
def computed_expand(builder: Builder) -> None:
    """A constant grown to the batch, or numbers made for it."""
    x = pick(builder, lambda v: v.is_float and v.rank > 1)
    shape = builder.add("Shape", [x], keep=False)
    if builder.random.random() < 0.5:
        begin, end = builder.ints([0]), builder.ints([1])
        first = builder.add("Slice", [shape, begin, end, begin], keep=False)
        width = one_of(builder, (1, 4))
        target = builder.add("Concat", [first, builder.ints([width])], axis=0, keep=False)
        grown = builder.add("Expand", [builder.weight(1, width), target])
        builder.add("Add", [grown, builder.weight(1, width)])
    else:
        value = onnx.numpy_helper.from_array(np.array([one_of(builder, (0.0, 1.5))], np.float32))
        made = builder.add("ConstantOfShape", [shape], value=value, keep=False)
        builder.add("Add", [x, made])


@move("Shape", "Size", "Cast", "Mul", weight=0.6)
def size_as_number(builder: Builder) -> None:
    """A size that enters arithmetic on floating point numbers."""
    x = floats(builder)
    size = builder.add(one_of(builder, ("Size", "Shape")), [x], keep=False)
    if size.rank:
        index = builder.random.randrange(max(1, x.rank))
        size = builder.add("Gather", [size, builder.ints(index)], axis=0, keep=False)
    number = builder.add("Cast", [size], to=onnx.TensorProto.FLOAT, keep=False)
    builder.add(one_of(builder, ("Div", "Mul")), [x, number])


@move("Cast", "Add", "Mul", "Transpose", "Where", weight=1.2)
def integer_input(builder: Builder) -> None:
    """Integers that are moved, compared, cast, or computed with."""
    high = one_of(builder, (2, 7, 100, 2**26))
    kind = one_of(builder, (np.int64, np.int32, np.int64, np.uint8, np.int8))
    if high > 100 and kind in (np.uint8, np.int8):
        high = 100
    low = -high if kind is not np.uint8 and builder.random.random() < 0.4 else 0
    shape = one_of(builder, [[FREE, 4], [2, 6], [FREE, 7], [1, 8]])
    x = builder.input(shape, kind, Range(low, high))
    match one_of(builder, ("compare", "arithmetic", "cast", "move", "where")):
        case "compare":
            op = one_of(builder, ("Equal", "Less", "Greater", "LessOrEqual"))
            truth = builder.add(op, [x, builder.constant(np.asarray(1, kind))])
            builder.add("Cast", [truth], to=onnx.TensorProto.FLOAT)
        case "arithmetic":
            op = one_of(builder, ("Add", "Mul", "Sub", "Max", "Div", "Mod", "Abs", "Neg"))
            given = [x] if op in ("Abs", "Neg") else [x, builder.constant(np.asarray(3, kind))]
            builder.add(op, given)
        case "cast":
            builder.add("Cast", [x], to=onnx.TensorProto.FLOAT)
        case "move":
            builder.add("Transpose", [x], perm=[0, 1] if FREE in shape else [1, 0])
        case _:
            truth = builder.add("Equal", [x, builder.constant(np.asarray(1, kind))])
            builder.add("Where", [truth, x, builder.constant(np.asarray(2, kind))])


@move("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", weight=0.4)
def bits(builder: Builder) -> None:
    """Integers as rows of bits; what a type does not hold is lost."""
    kind = one_of(builder, (np.uint8, np.uint32, np.uint64))
    x = builder.input(one_of(builder, [[FREE, 4], [2, 6]]), kind, Range(0, 200))
    ops = ("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
    op, other = one_of(builder, ops), builder.constant(np.asarray(5, kind))
    direction = one_of(builder, ("LEFT", "RIGHT")) if op == "BitShift" else None
    builder.add(op, [x] if op == "BitwiseNot" else [x, other], direction=direction)


@move("Not", "Where", weight=0.6)
def truth_input(builder: Builder) -> None:
    """A mask that is given."""
    x = floats(builder)
    sizes = [n if builder.random.random() < 0.7 or isinstance(n, str) else 1 for n in x.shape]
    mask = builder.input(sizes, np.bool_)
    if builder.random.random() < 0.3:
        mask = builder.add("Not", [mask])
    low = builder.constant(np.asarray(one_of(builder, (-100.0, 0.0, -1e4)), x.dtype))
    builder.add("Where", [mask, x, low])


@move("Range", "Gather", weight=0.6)
def counted(builder: Builder) -> None:
    """Positions from a Range, and a table that they number."""
    rows, width = one_of(builder, (4, 7)), one_of(builder, (4, 8))
    bounds = [builder.constant(np.asarray(n, np.int64)) for n in (0, rows, 1)]
    positions = builder.add("Range", bounds)
    found = builder.add("Gather", [builder.weight(rows + 2, width), positions], axis=0)
    mates = [v for v in builder.values if v.dtype == found.dtype and v.shape[-1:] == (width,)]
    if not mates:
        mates = [builder.input([one_of(builder, (FREE, 1)), rows, width])]
    builder.add("Add", [one_of(builder, mates), found])
