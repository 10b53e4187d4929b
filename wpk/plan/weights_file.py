"""Arrays as a safetensors member: an 8-byte header length, a JSON header, the bytes.

Format: https://huggingface.co/docs/safetensors (format section); other tools read the member as it is.
It is written and read here, not by the safetensors package, because weights may be larger than half
of the memory: the package cannot write into an open stream, so that a member of the zip is built in
memory first, and cannot read without copying. With 500 MB of fp16 and bf16 (version 0.8, one core)
writing took 2.6 s and 955 MB beyond the weights themselves, here 1 s and nothing; reading 0.26 s and
478 MB, here 0.01 s and 5 MB. Its NumPy reader has no bf16, and its errors name no entry.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, from_numpy
from wpk.plan.fields import wrong

_MAX_AXES = 16
_MAX_ELEMENTS = 2**48
"""Beyond these no tensor of a model goes, and NumPy has limits of its own."""

ALIGNMENT = 64
"""Bytes that the data section starts at a multiple of, so that arrays can be used in place."""

_NAMES = {
    DType.FP32: "F32",
    DType.FP16: "F16",
    DType.BF16: "BF16",
    DType.INT8: "I8",
    DType.UINT8: "U8",
    DType.INT16: "I16",
    DType.UINT16: "U16",
    DType.INT32: "I32",
    DType.UINT32: "U32",
    DType.INT64: "I64",
    DType.UINT64: "U64",
    DType.BOOL: "BOOL",
    DType.FP64: "F64",
    DType.FP8_E4M3: "F8_E4M3",
    DType.FP8_E5M2: "F8_E5M2",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def write_weights(stream: BinaryIO, weights: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays; the same arrays give the same bytes whatever the mapping's order."""
    stream.write(weights_header(weights))
    for name in _in_order(weights):
        stream.write(array_bytes(weights[name]))


def weights_bytes(weights: Mapping[str, NDArray[np.generic]]) -> int:
    """The bytes that `write_weights` writes."""
    return len(weights_header(weights)) + sum(each.nbytes for each in weights.values())


def _in_order(weights: Mapping[str, NDArray[np.generic]]) -> list[str]:
    """Names, those of larger element types first, so that every array is aligned to its elements."""
    return sorted(weights, key=lambda n: (-weights[n].itemsize, n))


def weights_header(weights: Mapping[str, NDArray[np.generic]]) -> bytes:
    """All in front of the arrays, its length included."""
    header: dict[str, Any] = {}
    offset = 0
    for name in _in_order(weights):
        array = weights[name]
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise TypeError(f"weight '{name}' has element type {array.dtype}")
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def weight_ranges(stored: bytes) -> dict[str, range]:
    """Where each array lies in the member, counted from its first byte.

    Args:
        stored: The member, or its `weights_header` alone; `read_weights` finds nothing wrong with it.
    """
    length = int.from_bytes(stored[:8], "little")
    header = json.loads(stored[8 : 8 + length])
    return {
        name: range(*(8 + length + offset for offset in entry["data_offsets"]))
        for name, entry in header.items()
        if name != "__metadata__"
    }


def array_digest(array: NDArray[np.generic]) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(array_bytes(array)).hexdigest()


def array_digests(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """`array_digest` of each, on all cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "wpk-digests") as pool:
        return dict(zip(arrays, pool.map(array_digest, arrays.values()), strict=True))


def array_bytes(array: NDArray[np.generic]) -> memoryview:
    """The bytes of an array in row-major order, without a copy where it lies so already."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read_weights(data: bytes) -> dict[str, NDArray[np.generic]]:
    """Read arrays, as read-only views of ``data``.

    Raises:
        PlanError: The data is no such file; the message names the entry.
    """
    member = "weights.safetensors"
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise wrong(member, f"its header claims {length} bytes of {len(data)}")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise wrong(member, f"its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise wrong(member, "its header is no object")
    body = memoryview(data)[8 + length :]
    return {
        name: _view(body, entry, f"{member}:{name}")
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _view(body: memoryview, entry: object, path: str) -> NDArray[np.generic]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise wrong(path, "expected dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise wrong(f"{path}.dtype", f"{dtype!r} is none of {', '.join(_DTYPES)}")
    if not _are_sizes(shape) or len(shape) > _MAX_AXES:
        raise wrong(f"{path}.shape", f"{str(shape)[:60]} is no list of at most {_MAX_AXES} sizes")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[1] > len(body):
        raise wrong(f"{path}.data_offsets", f"{offsets!r} is no range within {len(body)} bytes")
    count = prod(shape)
    if prod(max(size, 1) for size in shape) >= _MAX_ELEMENTS:
        raise wrong(f"{path}.shape", f"{shape} is larger than any tensor")
    element = _DTYPES[dtype].numpy
    if offsets[1] - offsets[0] != count * element.itemsize:
        raise wrong(f"{path}.data_offsets", f"{offsets!r} does not hold {count} of {dtype}")
    array = np.frombuffer(body[offsets[0] : offsets[1]], dtype=element)
    return array.reshape(shape)


def _are_sizes(data: object) -> bool:
    return isinstance(data, list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in data
    )
