"""Problems as cuDNN graphs, described without cuDNN: one node, its tensors, the pointwise steps.

cuDNN says broadcasting with extents of 1, and describes sizes by the values that a problem was tuned
for: a free dimension of another size needs another graph.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from wpk.dtypes import DType
from wpk.libraries.cudnn_pointwise import PointwiseCall
from wpk.problems import Problem, Tensor

P = TypeVar("P", bound=Problem)


CUDNN = "cuDNN"
"""What plans, stores and reports call the library."""

GRAPH = "graph"
"""Name in a configuration: which description of the problem, counted from 0."""

ENGINE = "engine"
"""Name in a configuration: cuDNN's number of the engine; all other names are knobs of it."""


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
class AttentionNode:
    """Attention of the first three inputs: queries, keys, values.

    Attributes:
        scale: What the products are multiplied by.
        biased: Whether the fourth input is added to the scaled products.
        scores: What happens to the products instead, over them and the inputs behind the third.
    """

    scale: float
    biased: bool
    scores: tuple[PointwiseCall, ...]


@dataclass(frozen=True)
class SoftmaxNode:
    """A softmax over the last axis, or its logarithm, of reductions and pointwise operations."""

    log: bool


@dataclass(frozen=True)
class ReductionNode:
    """A reduction of what the steps make of the inputs; as it is where there are none.

    Attributes:
        mode: Of ``cudnn.reduction_mode``.
        steps: Over the inputs that are not the epilogue's; they count from 1.
    """

    mode: str
    steps: tuple[PointwiseCall, ...]


@dataclass(frozen=True)
class PointwiseNode:
    """Nothing but the description's steps, over all inputs; they count from 1."""


Node = (
    ConvolutionNode
    | MatmulNode
    | NormNode
    | AttentionNode
    | SoftmaxNode
    | ReductionNode
    | PointwiseNode
)


@dataclass(frozen=True)
class Description:
    """What to build a graph from.

    Attributes:
        node: What is computed, from the first inputs.
        inputs: Of the operator, in its order.
        output: Of the operator.
        operands: How many of the inputs, the last ones, belong to the steps.
        steps: What follows.
        layout: Of the constant operand, None if there is none.
        strict: Whether products must not round their operands (fp32 that is not tf32).
    """

    node: Node
    inputs: tuple[GraphTensor, ...]
    output: GraphTensor
    operands: int = 0
    steps: tuple[PointwiseCall, ...] = ()
    layout: str | None = None
    strict: bool = False


@dataclass(frozen=True)
class Translation(Generic[P]):
    """How cuDNN is told of one kind of problem.

    Attributes:
        why_not: Why it cannot be asked for a problem, in words; None if it can.
        describe: The graphs to try for a problem that it can be asked for.
    """

    why_not: Callable[[P], str | None]
    describe: Callable[[P], tuple[Description, ...]]


def graph_tensor(tensor: Tensor, shape: tuple[int, ...]) -> GraphTensor:
    """Return a tensor over a domain: axes along which it is broadcast get extent 1."""
    dims = tuple(n if s else 1 for n, s in zip(shape, tensor.strides, strict=True))
    whole = max(n * s for n, s in zip(dims, tensor.strides, strict=True)) or 1
    return GraphTensor(dims, tuple(s or whole for s in tensor.strides), tensor.dtype)


def with_axes(tensor: GraphTensor, count: int) -> GraphTensor:
    """Return the tensor with axes of extent 1 in front, so many axes in all, if it has fewer."""
    more = max(0, count - len(tensor.dims))
    whole = max(n * s for n, s in zip(tensor.dims, tensor.strides, strict=True))
    return GraphTensor((1,) * more + tensor.dims, (whole,) * more + tensor.strides, tensor.dtype)
