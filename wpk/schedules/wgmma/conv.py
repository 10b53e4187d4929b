"""Convolution by warpgroups as an implicit matrix product (conv.cuh), on sm_90a.

Rows are output pixels (n, p, q), columns filters of a group, the reduction runs over (r, s, c).
TMA finds the pixels of a tap by itself (im2col mode), so a step costs the threads nothing
but the wait for it.
"""

from collections.abc import Sequence
from typing import ClassVar

from wpk.dims import product
from wpk.dtypes import DType, Precision
from wpk.launch import Im2col, TensorMapArgument
from wpk.problems import ClampedConvolution, Convolution
from wpk.schedules import convolution_copies
from wpk.schedules.limit import Limit
from wpk.schedules.unit import Members
from wpk.schedules.views.convolution import ConvolutionView, why_too_large
from wpk.schedules.wgmma.multicast import ROWS
from wpk.schedules.wgmma.template import WgmmaTemplate
from wpk.schedules.wgmma.tensor_copies import SWIZZLE, box_depth, map_strides
from wpk.schedules.wgmma.tiles import NO_PINGPONG, TWO_WARPGROUPS, WgmmaSchedule
from wpk.targets import Target

_CORNERS = range(-128, 128)  # of a window, in pixels (wpk.tensor_maps)
_MOST_TAP = 255
_MOST_STEP = 8


class ConvWgmmaTemplate(WgmmaTemplate[Convolution]):
    """Plain, grouped, strided and dilated convolutions in all precisions over channels-last images."""

    name: ClassVar[str] = "conv_wgmma"
    header: ClassVar[str] = "wgmma/conv"
    version: ClassVar[int] = 20
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Convolution
    schedule_type = WgmmaSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        reason = convolution_copies.why_not(problem, target)
        reason = reason or convolution_copies.why_no_groups(problem)
        return reason or _why_no_windows(problem) or why_too_large(problem)

    def packing(self, problem: Convolution, schedule: WgmmaSchedule) -> str:
        """Return the packing: filters as rows of (r, s, c), taps of whole vectors; conv_mma's, so that both share them."""
        del schedule  # every schedule reads the same rows
        return convolution_copies.packing(problem)

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        limited = (NO_PINGPONG, TWO_WARPGROUPS) if isinstance(problem, ClampedConvolution) else ()
        grouped = _of_groups(problem) if problem.groups > 1 else ()
        return (*super()._limits(problem), *limited, *grouped)

    def _view(self, problem: Convolution) -> ConvolutionView:
        return ConvolutionView(problem, box_depth(problem.precision))

    def _members(self, problem: Convolution) -> Members:
        dilation = self._view(problem).dilation_members()
        return {**dilation, "x_is_matrix": _is_matrix(problem), "groups": problem.groups}

    def _multiplied(self, problem: Convolution) -> tuple[DType, DType]:
        return problem.x.dtype, problem.precision.storage

    def _maps(
        self, problem: Convolution, schedule: WgmmaSchedule
    ) -> tuple[TensorMapArgument, TensorMapArgument]:
        filters = schedule.block_n // schedule.multicast_b
        return _input_map(problem, schedule), convolution_copies.filter_map(problem, filters)


def _of_groups(problem: Convolution) -> tuple[Limit, ...]:
    """What a tile needs to be of one group, and of the same one as those that it shares pixels with."""
    filters = problem.k // problem.groups
    return (
        Limit("persistent == 0", "persistent blocks count tiles of one group"),
        Limit(
            f"share != {ROWS} or {filters} % (block_n * shared_by) == 0",
            f"blocks that pixels are multicast to have all of the {filters} filters of a group",
        ),
    )


def _is_matrix(problem: Convolution) -> bool:
    """Whether the input is a matrix of all pixels: taps are single, and pixels lie densely."""
    n, _, h, w = problem.x.strides
    single = problem.filter == (1, 1) and problem.stride == (1, 1) and problem.pad == (0, 0)
    same = (problem.p, problem.q) == (problem.h, problem.w)
    dense = (
        w > 0
        and h == w * problem.w
        and (n == h * problem.h or convolution_copies.is_one_image(problem))
    )
    return single and same and dense


def _windows(problem: Convolution) -> Im2col:
    """Where windows begin, just as many as there are output pixels."""
    shape = zip(
        (problem.w, problem.h),
        (problem.q, problem.p),
        problem.stride[::-1],
        problem.pad[::-1],
        strict=True,
    )
    upper = tuple((out - 1) * step - pad - (size - 1) for size, out, step, pad in shape)
    lower = (-problem.pad[1], -problem.pad[0])
    return Im2col(lower, upper, problem.stride[::-1])


def _why_no_windows(problem: Convolution) -> str | None:
    """Why im2col mode cannot walk over the input; None if it can."""
    if _is_matrix(problem):
        return None
    windows = _windows(problem)
    for corner in (*windows.lower, *windows.upper):
        if corner not in _CORNERS:
            return f"windows begin or end {corner} pixels from the image's edge, possible are 128"
    for size, dilation in zip(problem.filter, problem.dilation, strict=True):
        if (reach := (size - 1) * dilation) > _MOST_TAP:
            return f"a window reaches {reach} pixels far, possible are {_MOST_TAP}"
    if max(problem.stride) > _MOST_STEP:
        return f"a stride of {max(problem.stride)}, possible is {_MOST_STEP}"
    return None


def _input_map(problem: Convolution, schedule: WgmmaSchedule) -> TensorMapArgument:
    size = problem.x.dtype.bytes
    n, _, h, w = map_strides(problem.x.strides, size)
    box = (box_depth(problem.precision), schedule.block_m // schedule.multicast_a)
    rounds = problem.precision is Precision.TF32
    if _is_matrix(problem):
        pixels = product(problem.n.expression, problem.h * problem.w)
        return TensorMapArgument(0, (problem.c, pixels), (w,), box, SWIZZLE, to_tf32=rounds)
    shape = (problem.c, problem.w, problem.h, problem.n.expression)
    return TensorMapArgument(0, shape, (w, h, n), box, SWIZZLE, _windows(problem), rounds)
