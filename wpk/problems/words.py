"""Problems in a few words, as a person would write them on a whiteboard."""

from collections.abc import Sequence
from math import prod

from wpk.expression import Acc, Operand
from wpk.extent import Extent
from wpk.problems import (
    Attention,
    ClampedConvolution,
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
from wpk.problems.expression_words import epilogue_words, formula
from wpk.problems.signs import TIMES


def problem_words(problem: Problem) -> str:
    """What a problem computes: ``conv 3×3/1 64→64 56² +res relu``."""
    match problem:
        case Convolution():
            words = [_convolution(problem), epilogue_words(problem.epilogue), _batch(problem.n)]
        case Matmul():
            words = [_matmul(problem), epilogue_words(problem.epilogue)]
        case Attention():
            words = [_attention(problem), _masked(problem)]
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
        case Resize():
            words = [_movement(problem), _batch(problem.n)]
        case _:
            words = [_movement(problem)]
    return " ".join(filter(None, words))


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
    if isinstance(problem, ClampedConvolution):
        words.append("of clamped x")
    return " ".join(words)


def _matmul(problem: Matmul) -> str:
    outer, heads = problem.batch
    count = TIMES.join(_extent(each) for each in (outer, Extent(heads)) if each != Extent(1))
    times = f"{count} of " if count else ""
    return f"matmul {times}{_extent(problem.m)}{TIMES}{problem.k} · {problem.k}{TIMES}{problem.n}"


def _attention(problem: Attention) -> str:
    outer, heads = problem.batch
    count = TIMES.join(_extent(each) for each in (outer, Extent(heads)) if each != Extent(1))
    times = f"{count} of " if count else ""
    width = "" if problem.depth == problem.width else f" · {problem.keys}{TIMES}{problem.width}"
    queries = f"{problem.queries}{TIMES}{problem.depth}"
    return f"attention {times}{queries} · {problem.keys} keys{width}"


def _masked(problem: Attention) -> str:
    """What the softmax is of, besides the products."""
    if isinstance(problem.scores.expression, Acc):
        return ""
    return f"softmax of {formula(problem.scores.expression)}"


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
            return f"resize ({problem.mode}) {problem.c}ch {sizes}"


def _batch(extent: Extent) -> str:
    if extent == Extent(1):
        return ""
    size = _extent(extent)
    return "any batch" if size == "batch" else f"batch {size}"


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
