"""Which problems cuDNN's graphs can say, and how: one file a kind of problem, and here the table of kinds."""

from typing import Any

from wpk.dtypes import DType
from wpk.libraries.cudnn_attention import ATTENTION
from wpk.libraries.cudnn_convolution import CONVOLUTION
from wpk.libraries.cudnn_description import Description, Translation
from wpk.libraries.cudnn_matmul import MATMUL
from wpk.libraries.cudnn_norms import NORMALISATION
from wpk.libraries.cudnn_reductions import ELEMENTWISE, REDUCTION
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Gather,
    Matmul,
    MomentsMatmul,
    Normalisation,
    NormedMatmul,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
    Tensor,
)

_TRANSLATIONS: dict[type[Problem], Translation[Any]] = {
    Convolution: CONVOLUTION,
    Matmul: MATMUL,
    Attention: ATTENTION,
    Normalisation: NORMALISATION,
    Reduction: REDUCTION,
    Elementwise: ELEMENTWISE,
}

_NO_GRAPH: dict[type[Problem], str] = {
    ClampedConvolution: "cuDNN does not clamp what a convolution reads",
    MomentsMatmul: "cuDNN stores no moments of rows beside a product",
    NormedMatmul: "cuDNN does not normalise what a product reads",
    Pooling: "cuDNN pools by resampling, which its Python frontend does not offer",
    Resize: "cuDNN resizes by resampling, which its Python frontend does not offer",
    Gather: "cuDNN's graphs have no gather",
    Pad: "cuDNN's graphs pad inside convolutions only",
}
"""Kinds of problems that cuDNN cannot be asked for, whatever their sizes."""


def why_not(problem: Problem) -> str | None:
    """Say why cuDNN cannot be asked for a problem, in words; None if it can.

    It may still have no engine for it: only the library on the GPU knows.
    """
    kind = type(problem)
    if kind not in _TRANSLATIONS:
        return _NO_GRAPH.get(kind, f"cuDNN's graphs have no {kind.__name__.lower()}")
    free = next((each.free for each in problem.extents if each.free is not None), None)
    if free is not None:
        return f"its size {free} is free, and cuDNN's plans are made for one size"
    touched = (*problem.reads(), *problem.writes())
    if any(each is not None and each.tensor.dtype is DType.FP64 for each in touched):
        return "it has tensors of fp64: cuDNN is asked for 16 and 32 bits only"
    if (precision := problem.matrix_precision) is not None and precision.is_quantised:
        return f"products of bytes ({precision.value}): cuDNN is asked for 16 and 32 bits only"
    return _TRANSLATIONS[kind].why_not(problem) or _why_not_output(problem.y)


def describe(problem: Problem) -> tuple[Description, ...]:
    """The graphs that compute a problem: every order of its epilogue, and layout of a constant, to try.

    Raises:
        ValueError: `why_not` has a reason.
    """
    reason = why_not(problem)
    if reason is not None:
        raise ValueError(reason)
    return _TRANSLATIONS[type(problem)].describe(problem)


def _why_not_output(y: Tensor) -> str | None:
    if not y.dtype.is_float:
        return f"its output is {y.dtype}"
    if y.padding:
        return f"cuDNN does not write the {y.padding} zeros after every row of the output"
    return None
