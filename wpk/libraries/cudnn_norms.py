"""Layer norm and RMS norm as cuDNN's nodes: rows that follow each other, a scale, perhaps a shift.

A softmax, which is a normalisation too, has no node: `wpk.libraries.cudnn_reductions`.
"""

from itertools import pairwise
from math import prod

from wpk.expression import Acc, Apply, Expression, Operand
from wpk.libraries.cudnn_description import Description, GraphTensor, NormNode, Translation
from wpk.libraries.cudnn_reductions import SOFTMAXES, describe_softmax, why_no_softmax
from wpk.problems import Normalisation, NormKind, Tensor

_NORMS = {NormKind.LAYER: "layernorm", NormKind.RMS: "rmsnorm"}


def _why_not(problem: Normalisation) -> str | None:
    return why_no_softmax(problem) if problem.kind in SOFTMAXES else _why_no_norm(problem)


def _describe(problem: Normalisation) -> tuple[Description, ...]:
    return (describe_softmax(problem) if problem.kind in SOFTMAXES else _describe_norm(problem),)


def _why_no_norm(problem: Normalisation) -> str | None:
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


def _describe_norm(problem: Normalisation) -> Description:
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
        table(problem.y),
    )


def _scale_and_shift(expression: Expression) -> bool | None:
    """Whether a shift follows the scale; None if it is not ``acc * operand 0 (+ operand 1)``."""
    match expression:
        case Apply("Mul", (Acc(), Operand(0)) | (Operand(0), Acc())):
            return False
        case Apply("Add", (scaled, Operand(1)) | (Operand(1), scaled)):
            return True if _scale_and_shift(scaled) is False else None
    return None


def _row_stride(tensor: Tensor, outer: tuple[int, ...]) -> int | None:
    """The distance between rows where the outer axes are one in memory; None where they are not."""
    axes = [(n, s) for n, s in zip(outer, tensor.strides, strict=False) if n > 1]
    for (_, slow), (count, fast) in pairwise(axes):
        if slow != count * fast:
            return None
    return axes[-1][1] if axes else max(1, *tensor.strides[: len(outer)])


NORMALISATION = Translation(_why_not, _describe)
