"""Which problems cuDNN's graphs can say, and how."""

from math import prod

from wpk.dtypes import Precision
from wpk.expression import Expression
from wpk.libraries.constant_layouts import layout_strides
from wpk.libraries.cudnn_attention import describe_attention, why_no_attention
from wpk.libraries.cudnn_description import (
    ConvolutionNode,
    Description,
    GraphTensor,
    MatmulNode,
    graph_tensor,
)
from wpk.libraries.cudnn_norms import describe_norm, why_no_norm
from wpk.libraries.cudnn_pointwise import pointwise_steps, tensor_first, why_no_steps
from wpk.libraries.cudnn_reductions import (
    SOFTMAXES,
    describe_elementwise,
    describe_reduction,
    describe_softmax,
    why_no_elementwise,
    why_no_reduction,
    why_no_softmax,
)
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Epilogue,
    Gather,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
    Tensor,
)

ALIGNMENT = 16
"""Bytes that every address given to cuDNN is a multiple of, as its descriptors state."""

_NO_GRAPH: dict[type, str] = {
    ClampedConvolution: "cuDNN does not clamp what a convolution reads",
    Pooling: "cuDNN pools by resampling, which its Python frontend does not offer",
    Resize: "cuDNN resizes by resampling, which its Python frontend does not offer",
    Gather: "cuDNN's graphs have no gather",
    Pad: "cuDNN's graphs pad inside convolutions only",
}
"""Kinds of problems that cuDNN cannot be asked for, whatever their sizes."""

Askable = Convolution | Matmul | Attention | Normalisation | Reduction | Elementwise


def why_not(problem: Problem) -> str | None:
    """Why cuDNN cannot be asked for a problem, in words; None if it can.

    It may still have no engine for it: only the library on the GPU knows.
    """
    kind = _NO_GRAPH.get(type(problem))
    if kind is not None or not isinstance(problem, Askable):
        return kind or f"cuDNN's graphs have no {type(problem).__name__.lower()}"
    if problem.leading.free is not None:
        return f"its size {problem.leading.free} is free, and cuDNN's plans are made for one size"
    return _why_not_kind(problem) or _why_not_output(problem.y)


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
        case Attention():
            return (describe_attention(problem),)
        case Normalisation(kind=kind):
            return (describe_softmax(problem) if kind in SOFTMAXES else describe_norm(problem),)
        case Reduction():
            return (describe_reduction(problem),)
        case Elementwise():
            return (describe_elementwise(problem),)
    raise AssertionError("why_not refuses other problems")


def _why_not_kind(problem: Askable) -> str | None:
    match problem:
        case Convolution():
            return _why_not_convolution(problem) or _why_not_epilogue(problem.epilogue)
        case Matmul():
            return _why_not_matmul(problem) or _why_not_epilogue(problem.epilogue)
        case Attention():
            return _why_not_operands(problem.scores.operands) or why_no_attention(problem)
        case Normalisation(kind=kind) if kind not in SOFTMAXES:
            return why_no_norm(problem)
        case Normalisation():
            return why_no_softmax(problem) or _why_not_operands(problem.epilogue.operands)
        case Reduction():
            return why_no_reduction(problem) or _why_not_operands(problem.epilogue.operands)
        case Elementwise():
            return why_no_elementwise(problem)


def _orders(epilogue: Epilogue) -> tuple[Expression, ...]:
    """The epilogue as it is, and with the residual before the bias."""
    vectors = frozenset(
        index
        for index, operand in enumerate(epilogue.operands)
        if sum(stride != 0 for stride in operand.strides) < 2
    )
    return tuple(dict.fromkeys((epilogue.expression, tensor_first(epilogue.expression, vectors))))


def _why_not_output(y: Tensor) -> str | None:
    if not y.dtype.is_float:
        return f"its output is {y.dtype}"
    if y.padding:
        return f"cuDNN does not write the {y.padding} zeros after every row of the output"
    return None


def _why_not_operands(operands: tuple[Tensor, ...]) -> str | None:
    other = next((o.dtype for o in operands if not o.dtype.is_float), None)
    return None if other is None else f"an operand of its epilogue is {other}"


def _why_not_epilogue(epilogue: Epilogue) -> str | None:
    return _why_not_operands(epilogue.operands) or why_no_steps(epilogue.expression)


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
