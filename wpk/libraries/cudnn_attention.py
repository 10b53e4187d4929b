"""Attention as cuDNN's node ``sdpa``: which problems it can say, and how.

Scores that are scaled, and then biased, are the node's own words, which all its engines know; what
else happens to them is a graph inside the node.
"""

from wpk.dtypes import Precision
from wpk.expression import Acc, Apply, Expression, Operand, Scalar
from wpk.libraries.cudnn_description import (
    AttentionNode,
    Description,
    Translation,
    graph_tensor,
)
from wpk.libraries.cudnn_epilogue import why_no_operands
from wpk.libraries.cudnn_pointwise import pointwise_steps, why_no_steps
from wpk.problems import Attention


def _why_not(problem: Attention) -> str | None:
    if problem.windows is not None:
        return "its matrices are windows of images, whose rows have no single stride"
    if problem.epilogue is not None:
        return "something happens to its result, which is no part of cuDNN's attention"
    return why_no_operands(problem.scores.operands) or _why_no_node(problem)


def _why_no_node(problem: Attention) -> str | None:
    storage = problem.precision.storage
    factors = {"queries": problem.q, "keys": problem.k, "values": problem.v}
    for name, tensor in factors.items():
        if tensor.dtype is not storage:
            return f"its {name} are {tensor.dtype}: cuDNN takes {storage}"
    for name, tensor in (*factors.items(), ("results", problem.y)):
        if tensor.strides[3] != 1:
            return f"the elements of its {name} do not follow each other in memory"
    batch, heads = problem.batch[0].value, problem.batch[1]
    for name, tensor in factors.items():
        if batch > 1 and tensor.strides[0] == 0:
            return f"its {name} are the same for the whole batch"
    if heads > 1 and problem.q.strides[1] == 0:
        return "its queries are the same for all heads"
    if problem.empty_rows_are_zero and problem.scores.operands:
        return "rows of nothing but -inf become 0 in it, which cuDNN does not promise"
    return why_no_steps(problem.scores.expression)


def _describe(problem: Attention) -> tuple[Description, ...]:
    outer = (problem.batch[0].value, problem.batch[1])
    shared = (problem.batch[0].value, problem.heads_of_keys)  # the node tells by their extents
    rows, columns = problem.queries, problem.keys
    operands = problem.scores.operands
    plain = _scaled(problem.scores.expression)
    steps = () if plain else pointwise_steps(problem.scores.expression, len(operands))
    description = Description(
        AttentionNode(*(plain or (1.0, False)), steps),
        (
            graph_tensor(problem.q, (*outer, rows, problem.depth)),
            graph_tensor(problem.k, (*shared, columns, problem.depth)),
            graph_tensor(problem.v, (*shared, columns, problem.width)),
            *(graph_tensor(each, (*outer, rows, columns)) for each in operands),
        ),
        graph_tensor(problem.y, (*outer, rows, problem.width)),
        strict=problem.precision is Precision.FP32,
    )
    return (description,)


def _scaled(expression: Expression) -> tuple[float, bool] | None:
    """The scale, and whether operand 0 is added after it; None where something else happens."""
    match expression:
        case Acc():
            return 1.0, False
        case Apply("Mul", (Acc(), Scalar(scale))) | Apply("Mul", (Scalar(scale), Acc())):
            return scale, False
        case Apply("Div", (Acc(), Scalar(divisor))) if divisor != 0.0:
            return 1.0 / divisor, False
        case Apply("Add", (scaled, Operand(0))) | Apply("Add", (Operand(0), scaled)):
            inner = _scaled(scaled)
            return None if inner is None or inner[1] else (inner[0], True)
    return None


ATTENTION = Translation(_why_not, _describe)
