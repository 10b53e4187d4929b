"""Convolutions as cuDNN's nodes: which ones it can say, and how."""

from wpk.dtypes import Precision
from wpk.expression import Expression
from wpk.libraries.constant_layouts import layout_strides
from wpk.libraries.cudnn_description import (
    ConvolutionNode,
    Description,
    GraphTensor,
    Translation,
    graph_tensor,
)
from wpk.libraries.cudnn_epilogue import orders, why_no_epilogue
from wpk.libraries.cudnn_pointwise import pointwise_steps
from wpk.problems import Convolution


def _why_not(problem: Convolution) -> str | None:
    storage = problem.precision.storage
    if problem.x.dtype is not storage:
        return f"its input is {problem.x.dtype} and its filters {storage}: cuDNN takes one type"
    if min(_padding_after(problem)) < 0:
        return "it reads only a part of its input, which cuDNN has no negative padding for"
    return why_no_epilogue(problem.epilogue)


def _describe(problem: Convolution) -> tuple[Description, ...]:
    return tuple(_description(problem, each) for each in orders(problem.epilogue))


def _description(problem: Convolution, expression: Expression) -> Description:
    n, epilogue = problem.n.value, problem.epilogue
    filters = problem.constant_shape
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
        graph_tensor(problem.y, y),
        len(epilogue.operands),
        pointwise_steps(expression, len(epilogue.operands)),
        layout,
        problem.precision is Precision.FP32,
    )


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


CONVOLUTION = Translation(_why_not, _describe)
