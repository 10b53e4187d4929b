"""Problems and schedules in a few words, as a person would write them on a whiteboard."""

import re
from collections.abc import Sequence
from itertools import groupby
from math import prod

from wpk.expression import Operand
from wpk.extent import Extent
from wpk.problems import (
    Convolution,
    Elementwise,
    Gather,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
)
from wpk.report.expression_words import epilogue_words, formula
from wpk.report.signs import TIMES

_AXIS = re.compile(r"(.+)_[a-z]")


def problem_words(problem: Problem) -> str:
    """What a problem computes: ``conv 3×3/1 64→64 56² +res relu``."""
    match problem:
        case Convolution():
            words = [_convolution(problem), epilogue_words(problem.epilogue), _batch(problem.n)]
        case Matmul():
            words = [_matmul(problem), epilogue_words(problem.epilogue)]
        case Pooling():
            size = f"{_by(problem.window)}/{_stride(problem.stride)}"
            words = [f"{problem.kind} pool {size} {problem.c}ch {_area(problem.p, problem.q)}"]
            words += [epilogue_words(problem.epilogue), _batch(problem.n)]
        case Reduction():
            of = "" if isinstance(problem.prologue, Operand) else f" of {formula(problem.prologue)}"
            words = [
                f"{problem.kind}{of}, {prod(problem.outer)} {TIMES} {problem.reduction} elements"
            ]
            words.append(epilogue_words(problem.epilogue))
        case Normalisation():
            words = [_normalisation(problem), epilogue_words(problem.epilogue)]
        case Elementwise():
            words = [f"{_elementwise(problem)} {_by(problem.shape)}"]
        case _:
            words = [_movement(problem)]
    return " ".join(filter(None, words))


def kind_of(problem: Problem) -> str:
    """The family that a problem belongs to, for colours and counts: one of `KINDS`."""
    match problem:
        case Convolution():
            return "depthwise" if problem.is_depthwise else "convolution"
        case Matmul():
            return "matrix product"
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
    "pooling",
    "reduction",
    "normalisation",
    "element-wise",
    "movement",
)
"""Families of problems and of ONNX operators."""

_ONNX_KINDS = (
    ("convolution", r".*Conv.*"),
    ("matrix product", r"MatMul.*|Gemm|Einsum|Attention"),
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


def _convolution(problem: Convolution) -> str:
    depthwise = problem.is_depthwise and problem.k == problem.c
    name = "depthwise conv" if depthwise else "transposed conv" if problem.transposed else "conv"
    words = [name, f"{_by(problem.filter)}/{_stride(problem.stride)}"]
    words.append(f"{problem.c}ch" if depthwise else f"{problem.c}→{problem.k}")
    words.append(_area(problem.p, problem.q))
    if problem.dilation != (1, 1):
        words.append(f"dilation {_stride(problem.dilation)}")
    if problem.groups > 1 and not depthwise:
        words.append(f"{problem.groups} groups")
    return " ".join(words)


def _matmul(problem: Matmul) -> str:
    outer, heads = problem.batch
    count = TIMES.join(_extent(each) for each in (outer, Extent(heads)) if each != Extent(1))
    times = f"{count} of " if count else ""
    return f"matmul {times}{_extent(problem.m)}{TIMES}{problem.k} · {problem.k}{TIMES}{problem.n}"


def _normalisation(problem: Normalisation) -> str:
    before = "" if isinstance(problem.prologue, Operand) else f" of {formula(problem.prologue)}"
    name = {"layer": "layer norm", "rms": "RMS norm", "log_softmax": "log-softmax"}
    word = name.get(problem.kind, problem.kind)
    return f"{word}{before}, {prod(problem.outer)} rows of {problem.cols}"


def _elementwise(problem: Elementwise) -> str:
    if not isinstance(problem.expression, Operand):
        return formula(problem.expression)
    source = problem.inputs[problem.expression.index]
    if source.dtype is not problem.y.dtype:
        return f"cast {source.dtype}→{problem.y.dtype}"
    if any(a == 0 and size > 1 for a, size in zip(source.strides, problem.shape, strict=True)):
        return "expand"
    order = [_order(strides, problem.shape) for strides in (source.strides, problem.y.strides)]
    return "copy" if order[0] == order[1] else "transpose"


def _order(strides: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Axes longer than one, outermost in memory first."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    return sorted(axes, key=lambda axis: -strides[axis])


def _movement(problem: Gather | Pad | Resize) -> str:
    match problem:
        case Gather():
            rows = f"{_extent(problem.count)} of {problem.axis_size} rows of {problem.inner}"
            outer = "" if problem.outer == Extent(1) else f"{_extent(problem.outer)} times "
            return f"gather {outer}{rows}"
        case Pad():
            return f"pad ({problem.mode}) {_by(problem.x_shape)} → {_by(problem.y_shape)}"
        case Resize():
            sizes = f"{_area(problem.h, problem.w)} → {_area(problem.p, problem.q)}"
            return f"resize ({problem.mode}) {problem.c}ch {sizes}{_batch(problem.n)}"


def _batch(extent: Extent) -> str:
    return "" if extent == Extent(1) else f"batch {_extent(extent)}"


def _extent(extent: Extent) -> str:
    if extent.free is None:
        return str(extent.value)
    return extent.free if extent.factor == 1 else f"{extent.factor}{extent.free}"


def _area(height: int, width: int) -> str:
    return f"{height}²" if height == width else f"{height}{TIMES}{width}"


def _by(sizes: Sequence[int]) -> str:
    return TIMES.join(map(str, sizes))


def _stride(steps: tuple[int, int]) -> str:
    return str(steps[0]) if steps[0] == steps[1] else _by(steps)
