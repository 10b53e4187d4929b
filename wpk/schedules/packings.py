"""Packings: how constant operands are laid out for a template, by name, each with its inverse.

Logical arrays have ONNX's shapes: (k, c / groups, r, s), transposed convolutions (c, k / groups, r,
s), matrices (k, n). A packing never changes what a name means: another layout is another name.
Packings that round (``_tf32``) are undone up to that rounding; ``_nearest`` is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.problems import Convolution, Matmul
from wpk.schedules.group_fragments import fragments_shape, pack_fragments, unpack_fragments

Array = NDArray[Any]

_ROW_BYTES = 16
"""Rows of packed matrices are multiples of this, so that every row can be copied in whole chunks."""

CHANNELS = 4
"""Channels of a pixel in shared memory, zero where an image has fewer."""

CHUNK_BYTES = 16

_TURNED = 64
"""Columns of a matrix that are turned at once: what they read of a row is whole lines of a cache."""


@dataclass(frozen=True)
class Packing:
    """One named layout.

    Attributes:
        pack: Logical array and problem to packed array.
        unpack: The inverse.
        shape: Problem and bytes of an element to the packed array's shape.
    """

    pack: Callable[[Array, Any], Array]
    unpack: Callable[[Array, Any], Array]
    shape: Callable[[Any, int], tuple[int, ...]]


def pack(name: str, array: Array, problem: Any) -> Array:
    """Return the packed form of a constant operand, contiguous.

    Raises:
        KeyError: No packing has this name.
    """
    return np.ascontiguousarray(PACKINGS[name].pack(array, problem))


def unpack(name: str, packed: Array, problem: Any) -> Array:
    """Return the logical array of a packed one.

    Raises:
        KeyError: No packing has this name.
    """
    return np.ascontiguousarray(PACKINGS[name].unpack(packed, problem))


def packed_shape(name: str, problem: Any, element_bytes: int) -> tuple[int, ...]:
    """Return the shape that `pack` gives, from the problem alone.

    Raises:
        KeyError: No packing has this name.
    """
    return PACKINGS[name].shape(problem, element_bytes)


def round_up(value: int, multiple: int) -> int:
    """Return the smallest multiple that is not below ``value``."""
    return -(-value // multiple) * multiple


def filter_row(problem: Convolution, vector: int, element_bytes: int) -> tuple[int, int]:
    """Return the channels of a filter tap, and elements of a packed filter, under ``krsc_pad<vector>``."""
    tap = round_up(problem.c // problem.groups, vector)
    r, s = problem.filter
    return tap, round_up(r * s * tap, _ROW_BYTES // element_bytes)


def matrix_row(problem: Matmul, element_bytes: int) -> int:
    """Return the elements of a packed column of ``b`` under ``nk_pad``."""
    return round_up(problem.k, _ROW_BYTES // element_bytes)


def depthwise_row(problem: Convolution, element_bytes: int) -> int:
    """Return the elements of a packed row: the output channels, rounded up to 16 bytes."""
    return round_up(problem.k, _ROW_BYTES // element_bytes)


def taps_a_chunk(element_bytes: int) -> int:
    """Count the neighbouring taps, each of four channels, that lie in 16 bytes."""
    return CHUNK_BYTES // (CHANNELS * element_bytes)


def chunks_a_row(problem: Convolution, element_bytes: int) -> int:
    """Count the chunks of a row of a filter; the last one may be cut."""
    return -(-problem.filter[1] // taps_a_chunk(element_bytes))


def product_steps(problem: Convolution, element_bytes: int) -> int:
    """Count the pairs of chunks of a filter: the steps of a tensor core."""
    return -(-problem.filter[0] * chunks_a_row(problem, element_bytes) // 2)


def round_to_tf32(array: Array) -> Array:
    """Round fp32 to 10 bits of mantissa, nearest, ties to even, as sm_90 rounds."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    finite = (bits & 0x7F800000) != 0x7F800000
    rounded = (bits + np.uint32(0xFFF) + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    return np.where(finite, rounded, bits).view(np.float32)


def to_nearest(array: Array) -> Array:
    """Return fp32 whose upper 19 bits are the tf32 number nearest to it: the unit, which cuts the others, rounds.

    The lower 13 bits stay; as a number in two's complement they are what is left. Zero stays zero.
    """
    bits = np.where(np.isnan(array), np.float32(np.nan), array).astype(np.float32).view(np.uint32)
    return (bits + ((bits & np.uint32(0x1000)) << 1)).view(np.float32)


def from_nearest(array: Array) -> Array:
    """Return the inverse of `to_nearest`."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    return (bits - ((bits & np.uint32(0x1000)) << 1)).view(np.float32)


def _pack_krsc(array: Array, problem: Convolution, vector: int) -> Array:
    """Filters as rows of (r, s, c): taps padded to ``vector`` channels, rows to 16 bytes; zeros."""
    groups, (r, s) = problem.groups, problem.filter
    per_group, channels = problem.k // groups, problem.c // groups
    if problem.transposed:
        krsc = array.reshape(groups, channels, per_group, r, s).transpose(0, 2, 3, 4, 1)
    else:
        krsc = array.reshape(groups, per_group, channels, r, s).transpose(0, 1, 3, 4, 2)
    tap, row = filter_row(problem, vector, array.itemsize)
    taps = np.zeros((problem.k, r, s, tap), array.dtype)
    taps[..., :channels] = krsc.reshape(problem.k, r, s, channels)
    packed = np.zeros((problem.k, row), array.dtype)
    packed[:, : r * s * tap] = taps.reshape(problem.k, -1)
    return packed


def _unpack_krsc(packed: Array, problem: Convolution, vector: int) -> Array:
    groups, (r, s) = problem.groups, problem.filter
    per_group, channels = problem.k // groups, problem.c // groups
    tap, _ = filter_row(problem, vector, packed.itemsize)
    taps = packed[:, : r * s * tap].reshape(groups, per_group, r, s, tap)[..., :channels]
    if problem.transposed:
        return taps.transpose(0, 4, 1, 2, 3).reshape(problem.c, per_group, r, s)
    return taps.transpose(0, 1, 4, 2, 3).reshape(problem.k, channels, r, s)


def _pack_nk(array: Array, problem: Matmul) -> Array:
    """Columns of ``b`` as rows, each padded with zeros to 16 bytes."""
    packed = np.zeros((problem.n, matrix_row(problem, array.itemsize)), array.dtype)
    for start in range(0, problem.n, _TURNED):
        columns = slice(start, start + _TURNED)
        packed[columns, : problem.k] = array[:, columns].T
    return packed


def _unpack_nk(packed: Array, problem: Matmul) -> Array:
    return packed[:, : problem.k].T


def _depthwise_shape(problem: Convolution, element_bytes: int) -> tuple[int, ...]:
    """Shape of the packed filters."""
    return (*problem.filter, depthwise_row(problem, element_bytes))


def _pack_depthwise(array: Array, problem: Convolution) -> Array:
    """(k, 1, r, s), or (c, k / c, r, s) where transposed, to (r, s, row); zeros after channel k."""
    r, s = problem.filter
    packed = np.zeros(_depthwise_shape(problem, array.itemsize), array.dtype)
    packed[..., : problem.k] = array.reshape(problem.k, r, s).transpose(1, 2, 0)
    return packed


def _unpack_depthwise(packed: Array, problem: Convolution) -> Array:
    """Inverse of `_pack_depthwise`."""
    krs = packed[..., : problem.k].transpose(2, 0, 1)
    multiplier = problem.k // problem.c
    shape = (problem.c, multiplier) if problem.transposed else (problem.k, 1)
    return krs.reshape(*shape, *problem.filter)


def _patch_shape(problem: Convolution, element_bytes: int) -> tuple[int, ...]:
    """Shape of the packed filters."""
    steps, taps = product_steps(problem, element_bytes), taps_a_chunk(element_bytes)
    return (problem.k, steps * 2, taps, CHANNELS)


def _pack_patch(array: Array, problem: Convolution) -> Array:
    """(k, c, r, s) to (k, chunks, taps, 4): zeros behind the last tap, channel and chunk."""
    (r, s), size = problem.filter, array.itemsize
    chunks, taps = chunks_a_row(problem, size), taps_a_chunk(size)
    rows = np.zeros((problem.k, r, chunks * taps, CHANNELS), array.dtype)
    rows[:, :, :s, : problem.c] = array.transpose(0, 2, 3, 1)
    packed = np.zeros(_patch_shape(problem, size), array.dtype)
    packed[:, : r * chunks] = rows.reshape(problem.k, r * chunks, taps, CHANNELS)
    return packed


def _unpack_patch(packed: Array, problem: Convolution) -> Array:
    """Inverse of `_pack_patch`."""
    (r, s), chunks = problem.filter, chunks_a_row(problem, packed.itemsize)
    rows = packed[:, : r * chunks].reshape(problem.k, r, -1, CHANNELS)
    return rows[:, :, :s, : problem.c].transpose(0, 3, 1, 2)


def _krsc(vector: int) -> Packing:
    return Packing(
        lambda array, problem: _pack_krsc(array, problem, vector),
        lambda packed, problem: _unpack_krsc(packed, problem, vector),
        lambda problem, size: (problem.k, filter_row(problem, vector, size)[1]),
    )


def _rounded(packing: Packing) -> Packing:
    return Packing(
        lambda array, problem: packing.pack(round_to_tf32(array), problem),
        packing.unpack,
        packing.shape,
    )


def _nearest(packing: Packing) -> Packing:
    return Packing(
        lambda array, problem: packing.pack(to_nearest(array), problem),
        lambda packed, problem: from_nearest(packing.unpack(packed, problem)),
        packing.shape,
    )


_NK = Packing(_pack_nk, _unpack_nk, lambda problem, size: (problem.n, matrix_row(problem, size)))
_PATCH = Packing(_pack_patch, _unpack_patch, _patch_shape)

PACKINGS: dict[str, Packing] = {
    **{f"krsc_pad{vector}": _krsc(vector) for vector in (1, 2, 4, 8, 16)},
    **{f"krsc_pad{vector}_tf32": _rounded(_krsc(vector)) for vector in (1, 2, 4)},
    **{f"krsc_pad{vector}_nearest": _nearest(_krsc(vector)) for vector in (1, 4)},
    "depthwise_rsk": Packing(_pack_depthwise, _unpack_depthwise, _depthwise_shape),
    "group_mma": Packing(pack_fragments, unpack_fragments, fragments_shape),
    "patch": _PATCH,
    "patch_tf32": _rounded(_PATCH),
    "nk_pad": _NK,
    "nk_pad_tf32": _rounded(_NK),
    "nk_pad_nearest": _nearest(_NK),
}
"""All packings by name."""
