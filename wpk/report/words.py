"""Families of problems and of ONNX operators, and schedules in a few words."""

import re
from collections.abc import Sequence
from itertools import groupby

from wpk.expression import Operand
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Matmul,
    Normalisation,
    Pooling,
    Problem,
    Reduction,
)
from wpk.problems.signs import TIMES

_AXIS = re.compile(r"(.+)_[a-z]")


def kind_of(problem: Problem) -> str:
    """The family that a problem belongs to, for colours and counts: one of `KINDS`."""
    match problem:
        case Convolution():
            return "depthwise" if problem.is_depthwise else "convolution"
        case Matmul():
            return "matrix product"
        case Attention():
            return "attention"
        case Pooling():
            return "pooling"
        case Reduction():
            return "reduction"
        case Normalisation():
            return "normalisation"
        case Elementwise():
            return "movement" if isinstance(problem.expression, Operand) else "element-wise"
        case _:
            return "movement"


KINDS = (
    "convolution",
    "depthwise",
    "matrix product",
    "attention",
    "pooling",
    "reduction",
    "normalisation",
    "element-wise",
    "movement",
)
"""Families of problems and of ONNX operators."""

_ONNX_KINDS = (
    ("convolution", r".*Conv.*"),
    ("matrix product", r"MatMul.*|Gemm|Einsum"),
    ("attention", r"Attention"),
    ("reduction", r"Reduce.*|Global.*Pool|ArgM.*|CumSum|TopK"),
    ("pooling", r".*Pool"),
    ("normalisation", r".*Softmax|.*Normalization|LRN"),
    (
        "movement",
        (
            r"Reshape|Transpose|Flatten|Squeeze|Unsqueeze|Concat|Split|Slice|Gather.*|Scatter.*|"
            r"Pad|Resize|Upsample|Expand|Tile|Identity|Shape|Size|Constant.*|Range|DepthToSpace|"
            r"SpaceToDepth|OneHot|Cast.*"
        ),
    ),
)


def kind_of_onnx(operator: str) -> str:
    """The family of an ONNX operator, in the words of `kind_of`."""
    for kind, pattern in _ONNX_KINDS:
        if re.fullmatch(pattern, operator):
            return kind
    return "element-wise"


def schedule_words(schedule: Sequence[tuple[str, int]]) -> str:
    """A schedule's numbers, axes of one thing together: ``block 64×64×32, warps 2×2, stages 4``."""
    words = []
    for name, group in groupby(schedule, key=_stem):
        words.append(f"{name.replace('_', ' ')} {TIMES.join(str(value) for _, value in group)}")
    return ", ".join(words)


def _stem(parameter: tuple[str, int]) -> str:
    axis = _AXIS.fullmatch(parameter[0])
    return parameter[0] if axis is None else axis[1]
