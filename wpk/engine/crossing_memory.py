"""Tensors of host steps, between the device's memory and the machine's."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wpk.dims import evaluate
from wpk.execution import Device
from wpk.problems import Crossing
from wpk.strided import strided

Array = NDArray[np.generic]


def read_crossing(
    device: Device, address: int, crossing: Crossing, dims: Mapping[str, int]
) -> Array:
    """The ONNX tensor that lies at an address."""
    access = crossing.access
    memory = device.read(address, access.span_bytes(dims))
    item = access.tensor.dtype.bytes
    extents = tuple(evaluate(each, dims) for each in access.extents)
    strides = tuple(stride * item for stride in access.tensor.strides)
    array = strided(memory.view(access.tensor.dtype.numpy), extents, strides)
    return array.reshape([evaluate(each, dims) for each in crossing.shape])


def write_crossing(device: Device, address: int, crossing: Crossing, array: Array) -> None:
    """Write an ONNX tensor, of the crossing's shape, to an address, row-major and in the type of memory."""
    dense = np.ascontiguousarray(array.astype(crossing.tensor.dtype.numpy, copy=False))
    device.write(address, dense.reshape(-1).view(np.uint8))
