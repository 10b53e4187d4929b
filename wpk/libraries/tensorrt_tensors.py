"""How TensorRT is told where a tensor's elements lie.

TensorRT's linear tensors are dense, in the order of their axes. A tensor whose axes lie in another order is told in the
order of memory, and transposed within the network, which TensorRT folds into its neighbours; images with their channels
last have a format of their own where the channels fill its vectors.
"""

from dataclasses import dataclass
from math import prod

from wpk.dtypes import DType
from wpk.libraries.cudnn_description import Description, GraphTensor

_CHANNELS_LAST = (0, 2, 3, 1)
_FORMATS = {DType.FP32: ("HWC", 1), DType.FP16: ("HWC8", 8), DType.BF16: ("HWC8", 8)}
"""Name of the format with channels last, and the channels of a vector."""


@dataclass(frozen=True)
class EngineLayout:
    """A tensor as an engine has it.

    Attributes:
        format: Name of TensorRT's format.
        shape: What the engine's input or output is declared with.
        order: Its axes in the order of memory, where it is transposed; None where it is not.
    """

    format: str
    shape: tuple[int, ...]
    order: tuple[int, ...] | None


def why_not_dense(description: Description) -> str | None:
    """Say why TensorRT cannot be told of a description's tensors, in words; None if it can."""
    names = [f"input {number}" for number in range(len(description.inputs))]
    tensors = (*description.inputs, description.output)
    for name, tensor in zip((*names, "its output"), tensors, strict=True):
        if _order(tensor) is None:
            return f"{name} has gaps between its elements, and TensorRT's tensors have none"
    return None


def layout_of(tensor: GraphTensor) -> EngineLayout:
    """How a tensor is told.

    Raises:
        ValueError: There are gaps between its elements.
    """
    order = _order(tensor)
    if order is None:
        raise ValueError("the tensor is not dense")
    rank = len(tensor.dims)
    if order == tuple(range(rank)):
        return EngineLayout("LINEAR", tensor.dims, None)
    name, vector = _FORMATS[tensor.dtype]
    if order == _CHANNELS_LAST and tensor.dims[1] % vector == 0:
        return EngineLayout(name, tensor.dims, None)
    return EngineLayout("LINEAR", tuple(tensor.dims[axis] for axis in order), order)


def _order(tensor: GraphTensor) -> tuple[int, ...] | None:
    """The axes, outermost in memory first; None where there are gaps.

    An axis of one element lies anywhere: where it is, if the others follow each other so.
    """
    dims, strides = tensor.dims, tensor.strides
    long = [axis for axis, extent in enumerate(dims) if extent > 1]
    sorted_long = sorted(long, key=lambda axis: -strides[axis])
    for number, axis in enumerate(sorted_long):
        if strides[axis] != prod(dims[inner] for inner in sorted_long[number + 1 :]):
            return None
    if sorted_long == long:
        return tuple(range(len(dims)))
    return (*(axis for axis in range(len(dims)) if dims[axis] == 1), *sorted_long)
