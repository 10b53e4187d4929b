"""A bound launch in the form that ``cuLaunchKernelEx`` takes: a configuration, and parameters."""

import ctypes
from collections.abc import Sequence
from typing import Any

from wpk.device.tensor_map import DESCRIPTOR_BYTES, encode
from wpk.errors import LaunchError
from wpk.execution import BoundArgument, BoundLaunch, Pointer, TensorMap
from wpk.launch import COOPERATIVE, EARLY_LAUNCH, NO_CLUSTER

_INT32 = range(-(2**31), 2**31)


class Parameters:
    """Values of a kernel's parameters; the launch copies them."""

    def __init__(self, entry: str, arguments: Sequence[BoundArgument]) -> None:
        """Lay the values down.

        Raises:
            LaunchError: One cannot be passed.
        """
        self._values = [_value(entry, argument) for argument in arguments]
        places = [ctypes.addressof(value) for value in self._values]
        self._pointers = (ctypes.c_void_p * max(1, len(places)))(*places)

    @property
    def address(self) -> int:
        """Of the array of pointers to the values; it lives as long as this object."""
        return ctypes.addressof(self._pointers)


def _value(entry: str, argument: BoundArgument) -> Any:
    if isinstance(argument, Pointer):
        return ctypes.c_uint64(argument.address)
    if isinstance(argument, TensorMap):
        return (ctypes.c_char * DESCRIPTOR_BYTES).from_buffer_copy(encode(argument))
    if argument not in _INT32:
        raise LaunchError(
            f"{entry} is given {argument}, which is no int32",
            fix="make the model's tensors smaller than 2^31 elements",
        )
    return ctypes.c_int32(argument)


def configuration(driver: Any, launch: BoundLaunch, stream: int) -> Any:
    """The ``CUlaunchConfig`` of a launch.

    Args:
        driver: ``cuda.bindings.driver``.
        launch: What is launched.
        stream: Handle of the stream.

    Raises:
        LaunchError: It has an attribute that is not known.
    """
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.shared_bytes
    config.hStream = driver.CUstream(stream)
    attributes = [_named(driver, launch.entry, name) for name in launch.attributes]
    if launch.cluster != NO_CLUSTER:
        attributes.append(_cluster(driver, launch.cluster))
    config.numAttrs = len(attributes)
    config.attrs = attributes
    return config


def _cluster(driver: Any, cluster: tuple[int, int, int]) -> Any:
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    blocks = attribute.value.clusterDim
    blocks.x, blocks.y, blocks.z = cluster
    return attribute


def _named(driver: Any, entry: str, name: str) -> Any:
    ids = driver.CUlaunchAttributeID
    attribute = driver.CUlaunchAttribute()
    if name == EARLY_LAUNCH:
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
    elif name == COOPERATIVE:
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
    else:
        raise LaunchError(
            f"{entry} is launched with the attribute {name!r}, which this version does not know",
            fix="optimize the model again with this version of wpk",
        )
    return attribute
