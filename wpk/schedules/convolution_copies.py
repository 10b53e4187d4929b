"""Convolutions whose images and filters tensor copies bring: what conv_wgmma and conv_halo share."""

from wpk.dtypes import Precision
from wpk.launch import TensorMapArgument
from wpk.problems import ClampedConvolution, Convolution
from wpk.schedules import packings
from wpk.schedules.wgmma.tensor_copies import (
    ALIGNMENT,
    PRODUCT_BYTES,
    SWIZZLE,
    box_depth,
    why_no_warpgroups,
    why_not_copied,
    why_not_stored,
)
from wpk.targets import Target

_CUT_BY_THE_UNIT = {Precision.TF32: "_tf32", Precision.FP32: "_nearest"}
"""How constants lie that the unit reads where copies put them, and cuts to tf32."""


def why_not(problem: Convolution, target: Target) -> str | None:
    """Say why warpgroups cannot multiply what tensor copies bring of this problem; None if they can."""
    if (reason := why_no_warpgroups(problem.precision, target)) is not None:
        return reason
    if problem.transposed:
        return "transposed: tensor copies do not spread pixels"
    if (reason := why_not_stored(problem)) is not None:
        return reason
    if problem.precision is Precision.INT8 and isinstance(problem, ClampedConvolution):
        return "bytes between limits would go through registers"
    x, (n, c, h, w) = problem.x, problem.x.strides
    stored = problem.precision.storage
    reason = why_not_copied("x", x.dtype, stored, x.alignment, (c, n, h, w))
    return reason or _why_no_strides(problem)


def why_no_groups(problem: Convolution) -> str | None:
    """Say why boxes do not keep groups apart; None if they do."""
    if problem.groups == 1:
        return None
    channels, depth = problem.c // problem.groups, box_depth(problem.precision)
    product = PRODUCT_BYTES // problem.precision.storage.bytes
    if channels % depth and (channels > depth or channels % product):
        return (
            f"{problem.groups} groups of {channels} channels: products have {product} of them, and boxes {depth}, "
            "which would be of several groups"
        )
    if isinstance(problem, ClampedConvolution):
        return f"{problem.groups} groups of an input between limits, which are those of one"
    return None


def packing(problem: Convolution) -> str:
    """Return the name of the filters' packing: rows of (r, s, c), taps of whole vectors."""
    return f"krsc_pad{_tap_vector(problem)}{_CUT_BY_THE_UNIT.get(problem.precision, '')}"


def filter_map(problem: Convolution, filters: int) -> TensorMapArgument:
    """Return the map of the packed filters: (c, tap, k); channels behind the last one are not there, so zero.

    Args:
        problem: The convolution.
        filters: That a copy brings, of one tap.
    """
    size = problem.precision.storage.bytes
    tap, row = packings.filter_row(problem, _tap_vector(problem), size)
    taps = problem.filter[0] * problem.filter[1]
    box = (box_depth(problem.precision), 1, filters)
    return TensorMapArgument(1, (tap, taps, problem.k), (tap * size, row * size), box, SWIZZLE)


def is_one_image(problem: Convolution) -> bool:
    """Return whether the batch is 1 and stays so: then images have no stride."""
    return problem.n.free is None and problem.n.value == 1


def _tap_vector(problem: Convolution) -> int:
    """Elements of 16 bytes, which the strides of packed filters are multiples of; 1 where they are so."""
    vector = ALIGNMENT // problem.precision.storage.bytes
    return 1 if problem.c // problem.groups % vector == 0 else vector


def _why_no_strides(problem: Convolution) -> str | None:
    """Why a tensor map cannot walk along the input's axes; None if it can."""
    n, _, h, w = problem.x.strides
    for name, stride, extent in (("w", w, problem.w), ("h", h, problem.h)):
        if stride == 0 and extent > 1:
            return f"x is the same all along {name}; tensor copies need a stride"
    if n == 0 and not is_one_image(problem):
        return "x is the same in every image; tensor copies need a stride"
    return None
