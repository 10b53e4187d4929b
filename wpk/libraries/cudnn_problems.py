"""Which problems cuDNN's graphs can say, and how."""

from itertools import pairwise
from math import prod

from wpk.dtypes import Precision
from wpk.expression import Acc, Expression, Operand, apply
from wpk.libraries.constant_layouts import layout_strides
from wpk.libraries.cudnn_description import (
    ConvolutionNode,
    Description,
    GraphTensor,
    MatmulNode,
    NormNode,
)
from wpk.libraries.cudnn_pointwise import pointwise_steps, tensor_first, why_no_steps
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Epilogue,
    Matmul,
    Normalisation,
    Problem,
    Tensor,
)
from wpk.problems.normalisation import NormKind

ALIGNMENT = 16
"""Bytes that every address given to cuDNN is a multiple of, as its descriptors state."""

_NORMS = {NormKind.LAYER: "layernorm", NormKind.RMS: "rmsnorm"}


def why_not(problem: Problem) -> str | None:
    """Why cuDNN cannot be asked for a problem, in words; None if it can.

    It may still have no engine for it: only the library on the GPU knows.
    """
    common = _why_not_free(problem)
    if common is not None:
        return common
    match problem:
        case ClampedConvolution():
            return "cuDNN does not clamp what a convolution reads"
        case Convolution():
            specific = _why_not_convolution(problem)
        case Matmul():
            specific = _why_not_matmul(problem)
        case Normalisation():
            return _why_not_norm(problem) or _why_not_output(problem.y)
        case _:
            kind = type(problem).__name__.lower()
            return f"cuDNN is asked for convolutions, products and normalisations, not for {kind}"
    return (
        specific
        or _why_not_output(problem.y)
        or _why_not_operands(problem.epilogue.operands)
        or why_no_steps(problem.epilogue.expression)
    )


def describe(problem: Problem) -> tuple[Description, ...]:
    """The graphs that compute a problem: every order of its epilogue, and layout of a constant, to try.

    Raises:
        ValueError: `why_not` has a reason.
    """
    reason = why_not(problem)
    if reason is not None:
        raise ValueError(reason)
    match problem:
        case Convolution():
            return tuple(_convolution(problem, each) for each in _orders(problem.epilogue))
        case Matmul():
            layouts = ("kn", "nk") if problem.b_constant else (None,)
            orders = _orders(problem.epilogue)
            return tuple(_matmul(problem, each, layout) for each in orders for layout in layouts)
        case Normalisation():
            return (_norm(problem),)
    raise AssertionError("why_not refuses other problems")


def graph_tensor(tensor: Tensor, shape: tuple[int, ...]) -> GraphTensor:
    """A tensor over a domain: axes along which it is broadcast get extent 1."""
    dims = tuple(n if s else 1 for n, s in zip(shape, tensor.strides, strict=True))
    whole = max(n * s for n, s in zip(dims, tensor.strides, strict=True)) or 1
    return GraphTensor(dims, tuple(s or whole for s in tensor.strides), tensor.dtype)


def _orders(epilogue: Epilogue) -> tuple[Expression, ...]:
    """The epilogue as it is, and with the residual before the bias."""
    vectors = frozenset(
        index
        for index, operand in enumerate(epilogue.operands)
        if sum(stride != 0 for stride in operand.strides) < 2
    )
    return tuple(dict.fromkeys((epilogue.expression, tensor_first(epilogue.expression, vectors))))


def _why_not_free(problem: Problem) -> str | None:
    """Why cuDNN cannot take the sizes, whatever is computed."""
    match problem:
        case Convolution():
            leading = problem.n
        case Matmul() | Normalisation():
            leading = problem.leading
        case _:
            return None
    if leading.free is not None:
        return f"its size {leading.free} is free, and cuDNN's plans are made for one size"
    return None


def _why_not_output(y: Tensor) -> str | None:
    if not y.dtype.is_float:
        return f"its output is {y.dtype}"
    if y.padding:
        return f"cuDNN does not write the {y.padding} zeros after every row of the output"
    return None


def _why_not_operands(operands: tuple[Tensor, ...]) -> str | None:
    other = next((o.dtype for o in operands if not o.dtype.is_float), None)
    return None if other is None else f"an operand of its epilogue is {other}"


def _why_not_convolution(problem: Convolution) -> str | None:
    storage = problem.precision.storage
    if problem.x.dtype is not storage:
        return f"its input is {problem.x.dtype} and its filters {storage}: cuDNN takes one type"
    if min(_padding_after(problem)) < 0:
        return "it reads only a part of its input, which cuDNN has no negative padding for"
    return None


def _why_not_matmul(problem: Matmul) -> str | None:
    storage = problem.precision.storage
    types = {problem.a.dtype, storage if problem.b_constant else problem.b.dtype}
    if types != {storage}:
        return f"its factors are {' and '.join(sorted(types))}: cuDNN takes {storage}"
    return None


def _why_not_norm(problem: Normalisation) -> str | None:
    if problem.kind not in _NORMS:
        return f"cuDNN has {problem.kind} only inside attention"
    if problem.prologue != Operand(0) or len(problem.inputs) != 1:
        return "it computes something before the normalisation"
    if _scale_and_shift(problem.epilogue.expression) is None:
        return "what follows the normalisation is not a scale and a shift"
    outer = len(problem.outer)
    for operand in problem.epilogue.operands:
        if any(operand.strides[:outer]) or operand.strides[outer] != 1:
            return "its scale or shift is not one vector for all rows"
    for tensor in (problem.inputs[0], problem.y):
        if _row_stride(tensor, problem.outer) is None or tensor.strides[outer] != 1:
            return "its rows do not follow each other evenly in memory"
    return None


def _scale_and_shift(expression: Expression) -> bool | None:
    """Whether a shift follows the scale; None if it is not ``acc * operand 0 (+ operand 1)``."""
    scaled = (apply("Mul", Acc(), Operand(0)), apply("Mul", Operand(0), Acc()))
    if expression in scaled:
        return False
    for product in scaled:
        sums = (apply("Add", product, Operand(1)), apply("Add", Operand(1), product))
        if expression in sums:
            return True
    return None


def _row_stride(tensor: Tensor, outer: tuple[int, ...]) -> int | None:
    """The distance between rows where the outer axes are one in memory; None where they are not."""
    axes = [(n, s) for n, s in zip(outer, tensor.strides, strict=False) if n > 1]
    for (_, slow), (count, fast) in pairwise(axes):
        if slow != count * fast:
            return None
    return axes[-1][1] if axes else max(1, *tensor.strides[: len(outer)])


def _padding_after(problem: Convolution) -> tuple[int, int]:
    """Zeros below and to the right: what the output's size asks for, as before where that fits."""
    image, result = (problem.h, problem.w), (problem.p, problem.q)
    if problem.transposed:
        image, result = result, image

    def after(axis: int) -> int:
        span = (problem.filter[axis] - 1) * problem.dilation[axis] + 1
        read = (result[axis] - 1) * problem.stride[axis] + span
        least = read - problem.pad[axis] - image[axis]
        most = least + problem.stride[axis] - 1  # a stride may leave that many elements unread
        return min(max(problem.pad[axis], least), most)

    return after(0), after(1)


def _convolution(problem: Convolution, expression: Expression) -> Description:
    n, epilogue = problem.n.value, problem.epilogue
    per_group = (problem.k if problem.transposed else problem.c) // problem.groups
    filters = (problem.c if problem.transposed else problem.k, per_group, *problem.filter)
    layout = "krsc" if problem.x.strides[1] == 1 else "kcrs"
    dtype = problem.precision.storage
    y = (n, problem.k, problem.p, problem.q)
    return Description(
        ConvolutionNode(
            problem.pad,
            _padding_after(problem),
            problem.stride,
            problem.dilation,
            problem.transposed,
        ),
        (
            graph_tensor(problem.x, (n, problem.c, problem.h, problem.w)),
            GraphTensor(filters, layout_strides(layout, filters), dtype),
            *(graph_tensor(operand, y) for operand in epilogue.operands),
        ),
        len(epilogue.operands),
        pointwise_steps(expression, len(epilogue.operands)),
        graph_tensor(problem.y, y),
        layout,
        problem.precision is Precision.FP32,
    )


def _matmul(problem: Matmul, expression: Expression, layout: str | None) -> Description:
    b0, b1, m, n, k = (
        *(problem.batch[0].value, problem.batch[1]),
        *(problem.m.value, problem.n, problem.k),
    )
    epilogue = problem.epilogue
    if layout is None:
        b = graph_tensor(problem.b, (b0, b1, k, n))
    else:
        strides = (0, 0, *layout_strides(layout, (k, n)))
        b = graph_tensor(Tensor(problem.precision.storage, strides), (b0, b1, k, n))
    tensors = _fewer_axes(
        (
            graph_tensor(problem.a, (b0, b1, m, k)),
            b,
            *(graph_tensor(operand, (b0, b1, m, n)) for operand in epilogue.operands),
            graph_tensor(problem.y, (b0, b1, m, n)),
        )
    )
    return Description(
        MatmulNode(),
        tensors[:-1],
        len(epilogue.operands),
        pointwise_steps(expression, len(epilogue.operands)),
        tensors[-1],
        layout,
        problem.precision is Precision.FP32,
    )


def _fewer_axes(tensors: tuple[GraphTensor, ...]) -> tuple[GraphTensor, ...]:
    """The two batch axes as one where every tensor allows it: more engines take three axes."""
    for unused in (1, 0):
        if all(t.dims[unused] == 1 for t in tensors):
            return tuple(_without(t, unused) for t in tensors)
    whole = tensors[-1].dims[:2]
    for t in tensors:
        one = t.dims[:2] == (1, 1)
        if not one and (t.dims[:2] != whole or t.strides[0] != t.dims[1] * t.strides[1]):
            return tensors
    return tuple(
        GraphTensor((prod(t.dims[:2]), *t.dims[2:]), t.strides[1:], t.dtype) for t in tensors
    )


def _without(tensor: GraphTensor, axis: int) -> GraphTensor:
    dims = tensor.dims[:axis] + tensor.dims[axis + 1 :]
    return GraphTensor(dims, tensor.strides[:axis] + tensor.strides[axis + 1 :], tensor.dtype)


def _norm(problem: Normalisation) -> Description:
    rows, columns = prod(problem.outer), problem.cols

    def table(tensor: Tensor) -> GraphTensor:
        stride = _row_stride(tensor, problem.outer) or columns
        return GraphTensor((rows, columns, 1, 1), (stride, 1, 1, 1), tensor.dtype)

    vector = ((1, columns, 1, 1), (columns, 1, 1, 1))
    vectors = tuple(GraphTensor(*vector, each.dtype) for each in problem.epilogue.operands)
    shifted = len(vectors) > 1
    return Description(
        NormNode(_NORMS[problem.kind], problem.epsilon, shifted),
        (table(problem.inputs[0]), *vectors),
        0,
        (),
        table(problem.y),
        None,
        False,
    )
