"""Execute a lowered program in NumPy: problems by their docstrings, values by their strides.

Shares nothing with the kernels, so a lowering test that agrees with onnxruntime means that problems,
strides, offsets and padding are right before any kernel exists. Memory is poisoned: what nobody
wrote reads as NaN.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import singledispatch
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from support.problems.warpgroup_layers import moments_of

from wpk.dims import evaluate
from wpk.expression import Operand
from wpk.expression import evaluate as express
from wpk.lowering.program import Program, Value
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Epilogue,
    Gather,
    IndexedRead,
    IndexedWrite,
    Matmul,
    MomentsMatmul,
    Normalisation,
    NormedMatmul,
    Pad,
    PlacedRows,
    Pooling,
    PrefixScan,
    Reduction,
    RowPlacing,
    Squeeze,
    Tensor,
    TopIndices,
    moments_of_row,
)
from wpk.problems.normalisation import NormKind
from wpk.problems.pooling import PoolKind
from wpk.problems.reduction import ReduceKind


class Memory:
    """One byte array a buffer, poisoned; constants beside them."""

    def __init__(self, program: Program, dims: Mapping[str, int]) -> None:
        self.program, self.dims = program, dims
        self.buffers = {
            name: np.full(evaluate(buffer.bytes, dims), 0xFF, np.uint8)
            for name, buffer in program.buffers.items()
        }

    def flat(self, name: str) -> Any:
        """The elements from a value's or constant's start to the end of its memory."""
        if name in self.program.constants:
            return np.ascontiguousarray(self.program.constants[name]).reshape(-1)
        value = self.program.values[name]
        return self.buffers[value.buffer][value.offset :][
            : (self.buffers[value.buffer].size - value.offset)
            // value.dtype.bytes
            * value.dtype.bytes
        ].view(value.dtype.numpy)

    def view(self, name: str, tensor: Tensor, shape: tuple[int, ...]) -> Any:
        """An operand as its problem sees it."""
        flat = self.flat(name)
        assert flat.dtype == tensor.dtype.numpy, name
        last = sum((n - 1) * s for n, s in zip(shape, tensor.strides, strict=True))
        assert last + tensor.padding < flat.size, f"{name}: {shape} {tensor} leaves its memory"
        return as_strided(flat, shape, [s * flat.itemsize for s in tensor.strides])

    def value(self, name: str) -> Any:
        """A value as the caller sees it."""
        value: Value = self.program.values[name]
        leading = evaluate(value.leading.expression, self.dims)
        shape = (leading, *value.shape[1:])
        tensor = Tensor(value.dtype, value.strides, value.padding)
        return self.view(name, tensor, shape)


def execute(program: Program, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of the program; free dimensions come from the inputs' sizes."""
    dims = {
        free: size
        for name in program.inputs
        for free, size in zip(program.values[name].logical_shape, inputs[name].shape, strict=True)
        if isinstance(free, str)
    }
    memory = Memory(program, dims)
    for name in program.inputs:
        memory.value(name)[...] = np.asarray(inputs[name]).reshape(memory.value(name).shape)
    for operator in program.operators:
        run(operator.problem, operator, memory)
    outputs = {}
    for name in program.outputs:
        value = program.values[name]
        result = memory.value(name).copy()
        outputs[name] = result.reshape([evaluate(size, dims) for size in value.logical_shape])
    return outputs


def _store(memory: Memory, operator: Any, y: Tensor, result: Any, axis: int | None = None) -> None:
    target = memory.view(operator.outputs[0], y, result.shape)
    target[...] = np.asarray(result).astype(target.dtype)
    if y.padding and 1 not in y.strides:  # rows of one element
        flat = memory.flat(operator.outputs[0])[1:]
        strides = [s * flat.itemsize for s in (*y.strides, 1)]
        as_strided(flat, (*result.shape, y.padding), strides)[...] = 0
    elif y.padding:
        axis = axis if axis is not None and y.strides[axis] == 1 else y.strides.index(1)
        shape = [*result.shape]
        start, shape[axis] = shape[axis], y.padding
        flat = memory.flat(operator.outputs[0])[start:]
        as_strided(flat, shape, [s * flat.itemsize for s in y.strides])[...] = 0


def _epilogue(memory: Memory, operator: Any, first: int, acc: Any) -> Any:
    epilogue = operator.problem.epilogue
    count = len(epilogue.operands)
    operands = [
        _wide(memory.view(name, tensor, acc.shape))
        for name, tensor in zip(
            operator.inputs[first : first + count], epilogue.operands, strict=True
        )
    ]
    return express(epilogue.expression, acc, operands)


def _wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def _size(problem: Any, memory: Memory) -> int:
    return evaluate(problem.leading.expression, memory.dims)


@singledispatch
def run(problem: Any, operator: Any, memory: Memory) -> None:
    """Execute one operator."""
    raise NotImplementedError(type(problem).__name__)


@run.register
def _(problem: Elementwise, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), *problem.shape[1:])
    views = [memory.view(n, t, shape) for n, t in zip(operator.inputs, problem.inputs, strict=True)]
    exact = isinstance(problem.expression, Operand)
    operands = views if exact else [_wide(v) for v in views]
    result = np.broadcast_to(express(problem.expression, None, operands), shape)
    _store(memory, operator, problem.y, result)


@run.register
def _(problem: PlacedRows, operator: Any, memory: Memory) -> None:
    outer, inner, source = (
        evaluate(each.expression, memory.dims)
        for each in (problem.outer, problem.inner, problem.source)
    )
    x = memory.view(operator.inputs[0], problem.x, (source, problem.cols))
    rows = {
        RowPlacing.REPEATED: np.tile(np.arange(inner), outer),
        RowPlacing.SPREAD: np.repeat(np.arange(outer), inner),
        RowPlacing.FIRST: np.arange(outer) * inner,
    }
    _store(memory, operator, problem.y, x[rows[problem.placing]])


@run.register
def _(problem: Convolution, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), problem.c, problem.h, problem.w)
    x = _wide(memory.view(operator.inputs[0], problem.x, shape))
    _convolve(problem, operator, memory, x)


@run.register
def _(problem: ClampedConvolution, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), problem.c, problem.h, problem.w)
    names = operator.inputs[len(operator.inputs) - len(problem.limits) :]
    limits = [memory.view(n, t, shape) for n, t in zip(names, problem.limits, strict=True)]
    x = np.maximum(_wide(memory.view(operator.inputs[0], problem.x, shape)), _wide(limits[0]))
    x = np.minimum(x, _wide(limits[1])) if limits[1:] else x
    _convolve(problem, operator, memory, x)


def _convolve(problem: Convolution, operator: Any, memory: Memory, x: Any) -> None:
    n = len(x)
    weight = _wide(memory.program.constants[operator.inputs[1]])
    acc = np.zeros((n, problem.k, problem.p, problem.q))
    cg, kg = problem.c // problem.groups, problem.k // problem.groups
    (sh, sw), (dh, dw), (ph, pw) = problem.stride, problem.dilation, problem.pad
    for g, r, s in product(range(problem.groups), *map(range, problem.filter)):
        xs, ks = slice(g * cg, (g + 1) * cg), slice(g * kg, (g + 1) * kg)
        tap = weight[xs, :, r, s] if problem.transposed else weight[ks, :, r, s].T
        moving = ((problem.h, sh, ph, r * dh, problem.p), (problem.w, sw, pw, s * dw, problem.q))
        if problem.transposed:
            pairs = [
                [(i, i * st - p + f) for i in range(m) if 0 <= i * st - p + f < o]
                for m, st, p, f, o in moving
            ]
        else:
            pairs = [
                [(o * st - p + f, o) for o in range(q) if 0 <= o * st - p + f < m]
                for m, st, p, f, q in moving
            ]
        for (h, p), (w, q) in product(*pairs):
            acc[:, ks, p, q] += x[:, xs, h, w] @ tap
    _store(memory, operator, problem.y, _epilogue(memory, operator, 2, acc), 1)


@run.register
def _(problem: Squeeze, operator: Any, memory: Memory) -> None:
    n = _size(problem, memory)
    x = _wide(memory.view(operator.inputs[0], problem.x, (n, problem.c, problem.pixels)))
    rest = iter(operator.inputs[3:])

    def then(epilogue: Epilogue, acc: Any) -> Any:
        views = [memory.view(next(rest), each, acc.shape) for each in epilogue.operands]
        return np.broadcast_to(express(epilogue.expression, acc, [*map(_wide, views)]), acc.shape)

    down, up = (
        _wide(memory.program.constants[name][:, :row])
        for name, row in zip(operator.inputs[1:3], (problem.c, problem.hidden_size), strict=True)
    )
    row = np.asarray(express(problem.means, x.mean(axis=2), []))
    gates = then(problem.gates, then(problem.hidden, row @ down.T) @ up.T)
    whole = np.broadcast_to(gates[..., None], (*gates.shape, problem.places))
    _store(memory, operator, problem.y, then(problem.scaled, whole), 1)


@run.register
def _(problem: Matmul, operator: Any, memory: Memory) -> None:
    batch = evaluate(problem.batch[0].expression, memory.dims), problem.batch[1]
    m = evaluate(problem.m.expression, memory.dims)
    a = _wide(memory.view(operator.inputs[0], problem.a, (*batch, m, problem.k)))
    b = _wide(memory.view(operator.inputs[1], problem.b, (*batch, problem.k, problem.n)))
    _store(memory, operator, problem.y, _epilogue(memory, operator, 2, a @ b))


@run.register
def _(problem: MomentsMatmul, operator: Any, memory: Memory) -> None:
    plain = {f.name: getattr(problem, f.name) for f in fields(Matmul)}
    run(Matmul(**plain), SimpleNamespace(**{**vars(operator), "problem": Matmul(**plain)}), memory)
    m = evaluate(problem.m.expression, memory.dims)
    batch = evaluate(problem.batch[0].expression, memory.dims), problem.batch[1]
    rows = _wide(memory.view(operator.outputs[0], problem.y, (*batch, m, problem.n)))
    found = moments_of(rows, problem.kind)
    memory.view(operator.outputs[1], problem.moments, found.shape)[...] = found


@run.register
def _(problem: NormedMatmul, operator: Any, memory: Memory) -> None:
    m = evaluate(problem.m.expression, memory.dims)
    batch = evaluate(problem.batch[0].expression, memory.dims), problem.batch[1]
    a = _wide(memory.view(operator.inputs[0], problem.a, (*batch, m, problem.k)))
    b = _wide(memory.view(operator.inputs[1], problem.b, (*batch, problem.k, problem.n)))
    mean, sums = np.zeros(1), np.zeros(1)
    behind = list(operator.inputs[2 + len(problem.epilogue.operands) :])
    if problem.sums is not None:
        mean = a.mean(axis=-1, keepdims=True)
        sums = _wide(memory.view(behind.pop(0), problem.sums, (*batch, m, problem.n)))
    square = ((a - mean) ** 2).mean(axis=-1, keepdims=True)
    if problem.moments is not None:
        shape = (*batch, m, moments_of_row(problem.k, problem.kind))
        mean, square = _merged(_wide(memory.view(behind.pop(0), problem.moments, shape)), problem)
    assert not behind
    scale = 1 / np.sqrt(square + problem.epsilon)
    product = scale * (a @ b - mean * sums)
    _store(memory, operator, problem.y, _epilogue(memory, operator, 2, product))


def _merged(moments: Any, problem: NormedMatmul) -> tuple[Any, Any]:
    """Mean and mean square of whole rows, of those of their groups."""
    if problem.kind is NormKind.RMS:
        return np.zeros(1), moments.mean(axis=-1, keepdims=True)
    means, squares = moments[..., ::2], moments[..., 1::2]
    mean = means.mean(axis=-1, keepdims=True)
    return mean, (squares + (means - mean) ** 2).mean(axis=-1, keepdims=True)


@run.register
def _(problem: Attention, operator: Any, memory: Memory) -> None:
    batch = evaluate(problem.batch[0].expression, memory.dims), problem.batch[1]
    q, k, v = (
        _wide(memory.view(name, tensor, (batch[0], heads, rows, columns)))
        for name, tensor, heads, rows, columns in zip(
            operator.inputs,
            (problem.q, problem.k, problem.v),
            (batch[1], problem.heads_of_keys, problem.heads_of_keys),
            (problem.queries, problem.keys, problem.keys),
            (problem.depth, problem.depth, problem.width),
            strict=False,
        )
    )
    k, v = (np.repeat(each, problem.sharing or 1, axis=1) for each in (k, v))
    acc = q @ k.swapaxes(-1, -2)
    operands = [
        _wide(memory.view(name, tensor, acc.shape))
        for name, tensor in zip(operator.inputs[3:], problem.scores.operands, strict=True)
    ]
    scores = express(problem.scores.expression, acc, operands)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
    if problem.empty_rows_are_zero:
        weights = np.where(np.isnan(weights), 0.0, weights)
    _store(memory, operator, problem.y, weights @ v)


@run.register
def _(problem: Pooling, operator: Any, memory: Memory) -> None:
    n = _size(problem, memory)
    x = _wide(memory.view(operator.inputs[0], problem.x, (n, problem.c, problem.h, problem.w)))
    acc = np.zeros((n, problem.c, problem.p, problem.q))
    axes = list(
        zip(
            *(getattr(problem, f) for f in ("window", "stride", "dilation", "pad", "pad_end")),
            (problem.h, problem.w),
            strict=True,
        )
    )
    for p, q in product(range(problem.p), range(problem.q)):
        inside, padded = [], []
        for o, (f, s, d, b, e, m) in zip((p, q), axes, strict=True):
            at = [o * s - b + i * d for i in range(f)]
            inside.append([i for i in at if 0 <= i < m])
            padded.append(sum(-b <= i < m + e for i in at))
        window = x[:, :, inside[0]][..., inside[1]].reshape(n, problem.c, -1)
        if problem.kind is PoolKind.MAX:
            acc[:, :, p, q] = window.max(-1)
        else:
            count = padded[0] * padded[1] if problem.count_include_pad else window.shape[-1]
            acc[:, :, p, q] = window.sum(-1) / count
    _store(memory, operator, problem.y, _epilogue(memory, operator, 1, acc), 1)


@run.register
def _(problem: Reduction, operator: Any, memory: Memory) -> None:
    outer = (_size(problem, memory), *problem.outer[1:])
    count = len(problem.inputs)
    x = [
        _wide(memory.view(n, t, (*outer, *problem.inner)))
        for n, t in zip(operator.inputs[:count], problem.inputs, strict=True)
    ]
    kinds = {
        ReduceKind.SUM: np.sum,
        ReduceKind.MEAN: np.mean,
        ReduceKind.MAX: np.max,
        ReduceKind.MIN: np.min,
        ReduceKind.PROD: np.prod,
    }
    values = express(problem.prologue, None, x)
    acc = kinds[problem.kind](values, axis=tuple(range(len(outer), values.ndim)))
    _store(memory, operator, problem.y, _epilogue(memory, operator, count, acc))


@run.register
def _(problem: Normalisation, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), *problem.outer[1:], problem.cols)
    count = len(problem.inputs)
    views = [
        _wide(memory.view(n, t, shape))
        for n, t in zip(operator.inputs[:count], problem.inputs, strict=True)
    ]
    v = express(problem.prologue, None, views)
    if problem.kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX):
        shifted = v - v.max(-1, keepdims=True)
        total = np.exp(shifted).sum(-1, keepdims=True)
        acc = shifted - np.log(total)
        acc = np.exp(acc) if problem.kind is NormKind.SOFTMAX else acc
    else:
        centred = v - v.mean(-1, keepdims=True) if problem.kind is NormKind.LAYER else v
        acc = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + problem.epsilon)
    _store(memory, operator, problem.y, _epilogue(memory, operator, count, acc))


@run.register
def _(problem: Gather, operator: Any, memory: Memory) -> None:
    outer = evaluate(problem.outer.expression, memory.dims)
    count = evaluate(problem.count.expression, memory.dims)
    data = memory.view(operator.inputs[0], problem.data, (outer, problem.axis_size, problem.inner))
    index = memory.view(operator.inputs[1], problem.index, (outer, count))[0]
    _store(memory, operator, problem.y, np.take(data, index, axis=1))


@run.register
def _(problem: IndexedRead, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), *problem.shape[1:])
    data = memory.view(operator.inputs[0], problem.data, (*shape, *problem.sizes))
    index = memory.view(operator.inputs[1], problem.index, (*shape, len(problem.sizes)))
    places = tuple(np.moveaxis(index, -1, 0))
    _store(memory, operator, problem.y, data[(*np.indices(shape, sparse=True), *places)])


@run.register
def _(problem: IndexedWrite, operator: Any, memory: Memory) -> None:
    outer = (_size(problem, memory), problem.outer[1])
    whole, part = (*outer, problem.size, problem.inner), (*outer, problem.count, problem.inner)
    data = memory.view(operator.inputs[0], problem.data, whole)
    index = memory.view(operator.inputs[1], problem.index, (*part, len(problem.sizes)))
    updates = memory.view(operator.inputs[2], problem.updates, part)
    y = data.reshape(*outer, *problem.sizes, problem.inner).copy()
    operations = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    for i, o, j, c in product(*map(range, part)):
        place = index[i, o, j, c] + (j if problem.advance.value != "none" else 0)
        place = place % problem.size if problem.advance.value == "circular" else place
        at = (i, o, *place, c)
        if all(-n <= k < n for n, k in zip(problem.sizes, place, strict=True)):
            update = updates[i, o, j, c]
            y[at] = operations.get(problem.kind.value, lambda _, u: u)(y[at], update)
    _store(memory, operator, problem.y, y.reshape(whole))


@run.register
def _(problem: PrefixScan, operator: Any, memory: Memory) -> None:
    shape = (_size(problem, memory), *problem.outer[1:], problem.size)
    x = memory.view(operator.inputs[0], problem.x, shape)
    x = x[..., ::-1] if problem.reverse else x
    product = problem.kind.value == "prod"
    y = (np.cumprod if product else np.cumsum)(x, axis=-1, dtype=x.dtype)
    if problem.exclusive:
        y = np.concatenate([np.full_like(y[..., :1], product), y[..., :-1]], axis=-1)
    _store(memory, operator, problem.y, y[..., ::-1] if problem.reverse else y)


@run.register
def _(problem: TopIndices, operator: Any, memory: Memory) -> None:
    outer = (_size(problem, memory), *problem.outer[1:])
    x = memory.view(operator.inputs[0], problem.x, (*outer, problem.size)).astype(np.float64)
    x = -x if problem.largest else x
    if problem.last:
        order = problem.size - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")
    else:
        order = np.argsort(x, axis=-1, kind="stable")
    _store(memory, operator, problem.y, order[..., : problem.count])


@run.register
def _(problem: Pad, operator: Any, memory: Memory) -> None:
    n = _size(problem, memory)
    x = memory.view(operator.inputs[0], problem.x, (n, *problem.x_shape[1:]))
    axes = [
        (b, y - n - b)
        for b, n, y in zip(problem.begin, problem.x_shape, problem.y_shape, strict=True)
    ]
    cropped = x[
        tuple(slice(max(0, -b), n - max(0, -e)) for (b, e), n in zip(axes, x.shape, strict=True))
    ]
    amounts = [(max(0, b), max(0, e)) for b, e in axes]
    more = {"constant_values": problem.value} if problem.mode == "constant" else {}
    result = np.pad(cropped, amounts, mode=problem.mode.value, **more)
    _store(memory, operator, problem.y, result)


@pytest.fixture(name="execute")
def fixture_execute() -> Callable[[Program, Mapping[str, Any]], dict[str, Any]]:
    """The NumPy interpreter of lowered programs."""
    return execute
