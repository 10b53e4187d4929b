"""Tensor maps as a GPU's tensor copies read them: descriptors that the driver encodes."""

import ctypes
from functools import lru_cache
from typing import Any

from wpk.device.graph import bindings, checked
from wpk.errors import LaunchError
from wpk.execution import TensorMap
from wpk.tensor_maps import faults

DESCRIPTOR_BYTES = 128
"""Size of a ``CUtensorMap``."""

_UNREAD = 16
"""A stride in the place of those of a single dimension, which has none: the driver refuses a null pointer."""

_KEPT = 4096
"""Descriptors kept: more than the launches of an engine and of its copies that are measured."""


@lru_cache(maxsize=_KEPT)
def encode(tensor: TensorMap) -> bytes:
    """The descriptor of a tensor map, made once for each address that it is moved to.

    A launch copies it with the kernel's other parameters, and a graph keeps that copy.

    Raises:
        LaunchError: No such descriptor exists, or the driver makes none.
        EngineError: cuda-bindings is not installed.
    """
    found = list(faults(tensor))
    if found:
        raise LaunchError(
            "a tensor map cannot be made: "
            + "; ".join(f"{field}: {what}" for field, what in found),
            fix="this schedule should have been illegal: see the limits of its template",
        )
    driver = bindings()
    name = "cuTensorMapEncodeTiled" if tensor.im2col is None else "cuTensorMapEncodeIm2col"
    made = checked("make a tensor map", getattr(driver, name)(*encoding(driver, tensor)))
    return ctypes.string_at(int(made.getPtr()), DESCRIPTOR_BYTES)


def encoding(driver: Any, tensor: TensorMap) -> tuple[Any, ...]:
    """What ``cuTensorMapEncodeTiled`` takes or, in im2col mode, ``cuTensorMapEncodeIm2col``.

    Elements are unsigned integers of their size: a copy moves bits, whatever they mean, and zero is
    zero in every type; but tf32 where a copy rounds.

    Args:
        driver: ``cuda.bindings.driver``.
        tensor: Without faults.
    """
    kind = "TFLOAT32" if tensor.to_tf32 else f"UINT{8 * tensor.element_bytes}"
    swizzle = f"{tensor.swizzle}B" if tensor.swizzle else "NONE"
    rank, mode = len(tensor.shape), tensor.im2col
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    box: tuple[Any, ...]
    if mode is None:
        box = ([narrow(extent) for extent in tensor.box],)
        steps = [1] * rank
    else:
        channels, pixels = tensor.box
        box = (list(mode.lower), list(mode.upper), channels, pixels)
        steps = [1, *mode.steps, 1]
    return (
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        rank,
        tensor.address,
        [wide(extent) for extent in tensor.shape],
        [wide(stride) for stride in tensor.strides or (_UNREAD,)],
        *box,
        [narrow(step) for step in steps],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
