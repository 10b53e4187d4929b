"""Problems: frozen, hashable descriptions of an operator's work. Equal problems share one result."""

from wpk.problems.attention import Attention
from wpk.problems.clamped_convolution import ClampedConvolution
from wpk.problems.convolution import Convolution
from wpk.problems.elementwise import Elementwise
from wpk.problems.matmul import Matmul
from wpk.problems.movement import Gather, Pad, Resize
from wpk.problems.normalisation import Normalisation
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.pooling import Pooling
from wpk.problems.problem import Problem
from wpk.problems.reduction import Reduction

__all__ = [
    "Attention",
    "ClampedConvolution",
    "Convolution",
    "Elementwise",
    "Epilogue",
    "Gather",
    "Matmul",
    "Normalisation",
    "Pad",
    "Pooling",
    "Problem",
    "Reduction",
    "Resize",
    "Tensor",
]
