"""Matrix products as cuDNN's nodes: which ones it can say, and how."""

from math import prod

from wpk.dtypes import Precision
from wpk.expression import Expression
from wpk.libraries.constant_layouts import layout_strides
from wpk.libraries.cudnn_description import (
    Description,
    GraphTensor,
    MatmulNode,
    Translation,
    graph_tensor,
)
from wpk.libraries.cudnn_epilogue import orders, why_no_epilogue
from wpk.libraries.cudnn_pointwise import pointwise_steps
from wpk.problems import Matmul, Tensor


def _why_not(problem: Matmul) -> str | None:
    storage = problem.precision.storage
    types = {problem.a.dtype, storage if problem.b_constant else problem.b.dtype}
    if types != {storage}:
        return f"its factors are {' and '.join(sorted(types))}: cuDNN takes {storage}"
    return why_no_epilogue(problem.epilogue)


def _describe(problem: Matmul) -> tuple[Description, ...]:
    layouts = ("kn", "nk") if problem.b_constant else (None,)
    found = orders(problem.epilogue)
    return tuple(_description(problem, each, layout) for each in found for layout in layouts)


def _description(problem: Matmul, expression: Expression, layout: str | None) -> Description:
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
        tensors[-1],
        len(epilogue.operands),
        pointwise_steps(expression, len(epilogue.operands)),
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


MATMUL = Translation(_why_not, _describe)
