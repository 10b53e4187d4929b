"""Longer forms that exporters write: parts of attention, views by index, masks, conditions."""

import numpy as np
import onnx

from fuzzing.builder import FREE, Builder, Range, Rejected, Value
from fuzzing.operators.formulas import number, swapped
from fuzzing.operators.registry import floats, maps, move, one_of, pick
from fuzzing.operators.rows import linear, reduce, rows
from fuzzing.operators.windows import weights


@move("Gather", "Reshape", "Range", weight=1)
def strided_view(builder: Builder) -> None:
    """All elements picked by number, in order; at times in another."""
    x = pick(builder, lambda v: v.is_float and v.rank > 1)
    flat = builder.add("Reshape", [x, builder.ints([-1])])
    step = int(np.prod(x.inner))
    count = x.arrays[0].size // step
    inner = np.arange(step).reshape(one_of(builder, ([1, step], [1, 1, step], [1, step, 1])))
    if builder.random.random() < 0.2:
        inner = inner[..., ::-1] if inner.shape[-1] > 1 else inner
    if not x.is_free:
        first = np.arange(count).reshape([count] + [1] * (inner.ndim - 1))
        builder.add("Gather", [flat, builder.ints(first * step + inner)])
        return
    shape = builder.add("Shape", [x], keep=False)
    batch = builder.add("Gather", [shape, builder.ints(0)], keep=False)
    bounds = [builder.ints(0), batch, builder.ints(1)]
    counted = builder.add("Range", bounds, keep=False)
    column = builder.ints([-1] + [1] * (inner.ndim - 1))
    first = builder.add("Reshape", [counted, column], keep=False)
    scaled = builder.add("Mul", [first, builder.ints(step)], keep=False)
    builder.add("Gather", [flat, builder.add("Add", [scaled, builder.ints(inner)], keep=False)])


@move("IsNaN", "Where", "Softmax", weight=1)
def guarded_softmax(builder: Builder) -> None:
    """A softmax whose empty rows are 0, of numbers with a bound or without."""
    if builder.random.random() < 0.5:
        index = builder.input([one_of(builder, (FREE, 2)), 4], np.int64, Range(0, 5))
        x = builder.add("Gather", [builder.weight(5, 8), index])
    else:
        x = rows(builder, 2, 3)
    if builder.random.random() < 0.4 and not x.is_free:
        hidden = np.where(builder.rng().random(x.arrays[0].shape) < 0.3, -1e4, 0.0)
        x = builder.add("Add", [x, builder.constant(hidden.astype(x.dtype))])
    soft = builder.add("Softmax", [x], axis=-1)
    builder.add("Where", [builder.add("IsNaN", [soft]), number(builder, x, 0.0), soft])


@move("ReduceMean", "ReduceMax", "AveragePool", "MaxPool", "GlobalAveragePool", weight=1.5)
def whole_plane(builder: Builder) -> None:
    """Every way to pool all places, and the rows that follow."""
    x = maps(builder, 4)
    kind = builder.random.random()
    if kind < 0.5:
        axes = one_of(builder, ([2, 3], [-1, -2], [3, 2], [-2, -1]))
        op = one_of(builder, ("ReduceMean", "ReduceMean", "ReduceMax"))
        made = reduce(builder, op, x, axes, keepdims=one_of(builder, (0, 1, None)))
    elif kind < 0.8:
        op = one_of(builder, ("AveragePool", "MaxPool"))
        made = builder.add(op, [x], kernel_shape=list(x.inner[1:]))
    else:
        made = builder.add("GlobalAveragePool", [x])
    if made.rank == 4 and builder.random.random() < 0.6:
        made = builder.add("Flatten", [made], axis=1)
    if made.rank == 2:
        linear(builder, made)


def heads(builder: Builder, x: Value, count: int, *, across: bool = False) -> Value:
    """Rows split into heads: (batch, head, row, element), or with rows last."""
    length, width = x.inner
    if width % count:
        raise Rejected("heads of different sizes")
    target = builder.ints([0, length, count, width // count])
    split = builder.add("Reshape", [x, target])
    return builder.add("Transpose", [split], perm=[0, 2, 3, 1] if across else [0, 2, 1, 3])


@move("MatMul", "Reshape", "Transpose", "Softmax", weight=2)
def scaled_attention(builder: Builder) -> None:
    """Factors on queries and keys, before or behind their heads; masks of every kind."""
    x = rows(builder, 3)
    width = x.inner[1]
    made = []
    for across in (False, True):
        each = heads(builder, linear(builder, x, width), 2, across=across)
        if builder.random.random() < 0.6:
            each = swapped(builder, "Mul", each, number(builder, x, one_of(builder, (0.5, 0.6))))
        made.append(each)
    scores = builder.add("MatMul", made)
    scores = _masked(builder, scores, x.inner[0])
    soft = builder.add("Softmax", [scores], axis=one_of(builder, (-1, 3)))
    builder.add("MatMul", [soft, heads(builder, linear(builder, x, width), 2)])


def _masked(builder: Builder, scores: Value, length: int) -> Value:
    low = one_of(builder, (-1e4, -3.4e38, -np.inf))
    seen = np.tril(np.ones((length, length), bool))
    kind = builder.random.random()
    if kind < 0.3:
        low_number = builder.constant(np.asarray(low, scores.dtype))
        return builder.add("Where", [builder.constant(seen), scores, low_number])
    if kind < 0.6:
        mask = np.where(seen, 0.0, -1e4).astype(scores.dtype)
        return swapped(builder, "Add", scores, builder.constant(mask))
    return scores


@move("Gather", "Split", "Squeeze", weight=1.5)
def joint_projection(builder: Builder) -> None:
    """Query, key and value as one product, transposed and taken apart."""
    x = rows(builder, 3)
    length, width = x.inner
    joint = linear(builder, x, 3 * width)
    split = builder.add("Reshape", [joint, builder.ints([0, length, 3, 2, width // 2])])
    turned = builder.add("Transpose", [split], perm=[2, 0, 3, 1, 4])
    if builder.random.random() < 0.5:
        kinds = [builder.ints(n) for n in (0, one_of(builder, (1, -2)), 2)]
        parts = [builder.add("Gather", [turned, index], axis=0) for index in kinds]
    else:
        sizes = {"num_outputs": 3} if builder.opset >= 18 else {}
        parts = builder.add_many("Split", [turned], outputs=3, axis=0, **sizes)
        axes = [builder.ints([0])] if builder.opset >= 13 else []
        given = {} if axes else {"axes": [0]}
        parts = [builder.add("Squeeze", [part, *axes], **given) for part in parts]
    q, k, v = parts
    across = builder.add("Transpose", [k], perm=[0, 1, 3, 2])
    soft = builder.add("Softmax", [builder.add("MatMul", [q, across])], axis=-1)
    builder.add("MatMul", [soft, v])


@move("MatMul", "Mul", "Add", weight=1)
def scaled_rows(builder: Builder) -> None:
    """A factor behind a product and its bias."""
    made = linear(builder, rows(builder, 2, 3))
    if builder.random.random() < 0.5:
        factor = number(builder, made, 0.5)
    else:
        factor = builder.weight(made.arrays[0].shape[-1], dtype=made.dtype)
    swapped(builder, "Mul", made, factor)


@move("Reshape", "Gemm", weight=1)
def flattened_product(builder: Builder) -> None:
    """A Gemm between two Reshapes, as for tensors of three dimensions."""
    x = rows(builder, 3, 4)
    k = x.arrays[0].shape[-1]
    flat = builder.add("Reshape", [x, builder.ints([-1, k])])
    n = one_of(builder, (4, 8))
    trans = one_of(builder, (0, 1))
    w = weights(builder, *((n, k) if trans else (k, n)), dtype=x.dtype)
    bias = builder.weight(n, dtype=x.dtype) if builder.random.random() < 0.7 else None
    made = builder.add("Gemm", [flat, w, bias], transB=trans or None)
    lead = [-1, *x.inner[:-1]] if x.is_free else list(x.arrays[0].shape[:-1])
    builder.add("Reshape", [made, builder.ints([*lead, n])])


@move("Transpose", "MatMul", weight=1)
def sequence_in_front(builder: Builder) -> None:
    """Rows first and the batch second, as torch's attention computes; and back."""
    x = rows(builder, 3)
    made = builder.add("Transpose", [x], perm=[1, 0, 2])
    for _ in range(one_of(builder, (1, 2))):
        kind = builder.random.random()
        if kind < 0.5:
            made = linear(builder, made)
        elif kind < 0.8:
            made = builder.add(one_of(builder, ("Relu", "Tanh", "Sigmoid")), [made])
        else:
            made = builder.add("Softmax", [made], axis=-1)
    builder.add("Transpose", [made], perm=[1, 0, 2])


@move("Trilu", "GatherElements", "ConstantOfShape", "Tile", weight=1)
def computed_constant(builder: Builder) -> None:
    """A constant that a graph computes: a mask, positions, a table's rows."""
    x = rows(builder, 2, 3)
    length = x.arrays[0].shape[-1]
    match one_of(builder, ("mask", "rows", "range", "tile")):
        case "mask":
            value = onnx.numpy_helper.from_array(np.array([1.0], np.float32))
            shape = builder.ints([length, length])
            ones = builder.add("ConstantOfShape", [shape], value=value)
            lower = builder.add("Trilu", [ones], upper=0)
            made = reduce(builder, "ReduceSum", lower, [0], keepdims=0)
        case "rows":
            places = builder.ints(np.arange(length)[None, ::-1])
            made = builder.add("GatherElements", [builder.weight(1, length), places], axis=1)
        case "range":
            bounds = [builder.constant(np.asarray(n, np.float32)) for n in (0, length, 1)]
            made = builder.add("Range", bounds)
        case _:
            made = builder.add("Tile", [builder.weight(1, 1), builder.ints([1, length])])
    swapped(builder, "Add", x, builder.add("Cast", [made], to=onnx.TensorProto.FLOAT))


@move("Slice", "Concat", weight=1)
def rolled(builder: Builder) -> None:
    """Two parts exchanged: a shifted window, or half of a rotation."""
    x = floats(builder, 3, 4)
    axis = builder.random.randrange(1, x.rank)
    size = x.arrays[0].shape[axis]
    if size < 2:
        raise Rejected("nothing to exchange")
    at = one_of(builder, (1, size // 2))
    cuts = [(0, at), (at, 2**31 - 1)]
    parts = [
        builder.add("Slice", [x, *(builder.ints([n]) for n in (begin, end, axis))])
        for begin, end in cuts
    ]
    if builder.random.random() < 0.4:
        parts[1] = builder.add("Neg", [parts[1]])
    builder.add("Concat", parts[::-1], axis=axis)


@move("Relu", "Add", weight=0.7)
def computed_twice(builder: Builder) -> None:
    """One node written twice, and both results read."""
    x = floats(builder)
    op = one_of(builder, ("Relu", "Tanh", "Sigmoid"))
    one, other = (builder.add(op, [x]) for _ in range(2))
    builder.add(one_of(builder, ("Add", "Mul", "Sub")), [one, other])


@move("If", weight=0.5)
def condition(builder: Builder) -> None:
    """An If whose condition is constant, or computed from a shape."""
    x = floats(builder)
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        output = onnx.ValueInfoProto(name=builder.name("b"))
        inner = onnx.helper.make_node(op, [x.name], [output.name], builder.name("n"))
        output = onnx.helper.make_tensor_value_info(
            output.name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), None
        )
        branches[name] = onnx.helper.make_graph([inner], name, [], [output])
    taken = builder.constant(np.asarray(builder.random.random() < 0.5))
    if builder.random.random() < 0.4:
        size = builder.add("Size", [builder.add("Shape", [x], keep=False)], keep=False)
        taken = builder.add("Equal", [size, builder.ints(x.rank)], keep=False)
    builder.add("If", [taken], captured=[x], **branches)
