"""Problems as cuDNN graphs, described without cuDNN: one node, its tensors, the pointwise steps.

cuDNN says broadcasting with extents of 1, and describes sizes by the values that a problem was tuned
for: a free dimension of another size needs another graph.
"""

from dataclasses import dataclass

from wpk.dtypes import DType
from wpk.libraries.cudnn_pointwise import Step


@dataclass(frozen=True)
class GraphTensor:
    """A tensor as cuDNN is told of it."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class ConvolutionNode:
    """A convolution; ``backward`` computes its image from its result (a transposed convolution)."""

    before: tuple[int, int]
    after: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    backward: bool


@dataclass(frozen=True)
class MatmulNode:
    """A matrix product over the last two axes."""


@dataclass(frozen=True)
class NormNode:
    """A normalisation over the second axis; ``method`` of ``cudnn.pygraph``.

    Its scale, and its shift where ``shifted``, are its second and third input.
    """

    method: str
    epsilon: float
    shifted: bool


@dataclass(frozen=True)
class Description:
    """What to build a graph from.

    Attributes:
        node: What is computed, from the first inputs.
        inputs: Of the operator, in its order.
        operands: How many of the inputs, the last ones, belong to the steps.
        steps: What follows.
        output: Of the operator.
        layout: Of the constant operand, None if there is none.
        strict: Whether products must not round their operands (fp32 that is not tf32).
    """

    node: ConvolutionNode | MatmulNode | NormNode
    inputs: tuple[GraphTensor, ...]
    operands: int
    steps: tuple[Step, ...]
    output: GraphTensor
    layout: str | None
    strict: bool
