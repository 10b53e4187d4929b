"""Reductions, softmax and element-wise work as graphs of pointwise operations and reductions.

Only cuDNN's run-time compiler takes such graphs, and not all of them: the library on the GPU says
which. cuDNN 9.28 takes element-wise work on Hopper, and no reduction without a product in front.
"""

from dataclasses import replace

from wpk.expression import Operand
from wpk.libraries.cudnn_description import (
    Description,
    GraphTensor,
    PointwiseNode,
    ReductionNode,
    SoftmaxNode,
    Translation,
    graph_tensor,
    with_axes,
)
from wpk.libraries.cudnn_epilogue import why_no_operands
from wpk.libraries.cudnn_pointwise import PointwiseCall, pointwise_steps, why_no_steps
from wpk.problems import Elementwise, Normalisation, NormKind, ReduceKind, Reduction, Tensor

_AXES = 4
"""The least number of axes that tensors are described with; no engine takes fewer than three."""

_MOST_AXES = 5

_MODES = {
    ReduceKind.SUM: "ADD",
    ReduceKind.MEAN: "AVG",
    ReduceKind.MAX: "MAX",
    ReduceKind.MIN: "MIN",
    ReduceKind.PROD: "MUL",
}

SOFTMAXES = (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX)


def why_no_softmax(problem: Normalisation) -> str | None:
    """Say why cuDNN cannot be asked for a softmax, in words; None if it can."""
    if problem.prologue != Operand(0) or len(problem.inputs) != 1:
        return "it computes something before the softmax"
    return (
        why_no_operands(problem.inputs, "an input of it")
        or why_no_steps(problem.epilogue.expression)
        or why_no_operands(problem.epilogue.operands)
    )


def describe_softmax(problem: Normalisation) -> Description:
    """Return the graph that computes a softmax that `why_no_softmax` has nothing against."""
    domain, operands = (*problem.outer, problem.cols), problem.epilogue.operands
    return Description(
        SoftmaxNode(problem.kind is NormKind.LOG_SOFTMAX),
        (_tensor(problem.inputs[0], domain), *(_tensor(each, domain) for each in operands)),
        _tensor(problem.y, domain),
        len(operands),
        pointwise_steps(problem.epilogue.expression, len(operands)),
    )


def _why_no_reduction(problem: Reduction) -> str | None:
    axes = len(problem.outer) + len(problem.inner)
    if axes > _MOST_AXES:
        return f"it has {axes} axes, and cuDNN's fused graphs at most {_MOST_AXES}"
    return (
        why_no_operands(problem.inputs, "an input of it")
        or why_no_steps(problem.prologue)
        or why_no_steps(problem.epilogue.expression)
        or why_no_operands(problem.epilogue.operands)
    )


def _describe_reduction(problem: Reduction) -> tuple[Description, ...]:
    domain, operands = (*problem.outer, *problem.inner), problem.epilogue.operands
    ones = (1,) * len(problem.inner)

    def reduced(tensor: Tensor) -> GraphTensor:
        outer = graph_tensor(tensor, problem.outer)
        strides = (*outer.strides, *ones)
        return with_axes(GraphTensor((*outer.dims, *ones), strides, tensor.dtype), _AXES)

    steps: tuple[PointwiseCall, ...] = ()
    if problem.prologue != Operand(0):
        steps = pointwise_steps(problem.prologue, len(problem.inputs))
    description = Description(
        ReductionNode(_MODES[problem.kind], steps),
        (*(_tensor(each, domain) for each in problem.inputs), *map(reduced, operands)),
        reduced(problem.y),
        len(operands),
        pointwise_steps(problem.epilogue.expression, len(operands)),
    )
    return (description,)


def _why_no_elementwise(problem: Elementwise) -> str | None:
    if not problem.inputs:
        return "it reads nothing"
    return why_no_operands(problem.inputs, "an input of it") or why_no_steps(problem.expression)


def _describe_elementwise(problem: Elementwise) -> tuple[Description, ...]:
    order = _channels_second(problem.y, problem.shape)
    ones = (1,) * (_AXES - 1 - len(order))  # behind: a batch of one is in front of the channels
    shape = (*(problem.shape[axis] for axis in order), *ones)

    def turned(tensor: Tensor) -> GraphTensor:
        strides = (*(tensor.strides[axis] for axis in order), *(0 for _ in ones))
        return _tensor(replace(tensor, strides=strides), shape)

    description = Description(
        PointwiseNode(),
        tuple(map(turned, problem.inputs)),
        turned(problem.y),
        len(problem.inputs),
        pointwise_steps(problem.expression, len(problem.inputs)),
    )
    return (description,)


def _channels_second(y: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An order of the axes in which the one whose elements are neighbours is the second of four.

    As the channels of an image in channels-last memory, the one layout that engines for Hopper take.
    """
    axes = range(len(shape))
    inner = min(axes, key=lambda axis: (shape[axis] == 1, y.strides[axis]))
    others = [axis for axis in axes if axis != inner]
    before = min(1, max(0, len(shape) - 3))
    return (*others[:before], inner, *others[before:])


def _tensor(tensor: Tensor, shape: tuple[int, ...]) -> GraphTensor:
    return with_axes(graph_tensor(tensor, shape), _AXES)


REDUCTION = Translation(_why_no_reduction, _describe_reduction)
ELEMENTWISE = Translation(_why_no_elementwise, _describe_elementwise)
