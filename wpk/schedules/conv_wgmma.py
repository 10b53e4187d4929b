"""Convolution by warpgroups as an implicit matrix product (conv_wgmma.cuh), on sm_90a.

Rows are output pixels (n, p, q), columns filters, the reduction runs over (r, s, c). The unit that
copies tensors finds the pixels of a tap by itself (im2col mode), so a step costs the threads nothing
but the wait for it.
"""

from collections.abc import Sequence
from typing import ClassVar

from wpk.dims import product
from wpk.dtypes import Precision
from wpk.launch import Im2col, TensorMapArgument
from wpk.performance.work import Columns, Work
from wpk.problems.clamped_convolution import ClampedConvolution
from wpk.problems.convolution import Convolution
from wpk.schedules import packings, wgmma_costs, wgmma_tiles
from wpk.schedules.convolution_view import ConvolutionView, why_too_large
from wpk.schedules.mma_tiles import MULTIPLY_TYPES
from wpk.schedules.single_kernel import Kernel, SingleKernelTemplate
from wpk.schedules.template import Constraint
from wpk.schedules.unit import Type
from wpk.schedules.wgmma_share import Sharing
from wpk.schedules.wgmma_tiles import (
    ALIGNMENT,
    SWIZZLE,
    Warpgroups,
    WgmmaSchedule,
    box_depth,
)
from wpk.targets.target import Target

_CORNERS = range(-128, 128)  # of a window, in pixels (wpk.tensor_maps)
_MOST_TAP = 255
_MOST_STEP = 8


class ConvWgmmaTemplate(Warpgroups, SingleKernelTemplate[Convolution, WgmmaSchedule]):
    """Plain, strided and dilated convolutions in all precisions over channels-last images."""

    name: ClassVar[str] = "conv_wgmma"
    version: ClassVar[int] = 9
    problem_type = Convolution
    schedule_type = WgmmaSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if (reason := wgmma_tiles.needs(target)) is not None:
            return reason
        if problem.groups > 1:
            return f"{problem.groups} groups: a tile would have the channels of several"
        if problem.transposed:
            return "transposed: tensor copies do not spread pixels"
        if not problem.y.dtype.is_float:
            return f"the output is {problem.y.dtype.value}; products are stored as floating point"
        x, (n, c, h, w) = problem.x, problem.x.strides
        stored = problem.precision.storage
        reason = wgmma_tiles.why_not_copied("x", x.dtype, stored, x.alignment, (c, n, h, w))
        reason = reason or _why_no_strides(problem) or _why_no_windows(problem)
        return reason or why_too_large(problem)

    def axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`."""
        rows = problem.n.value * problem.p * problem.q
        return wgmma_tiles.axes(
            rows, problem.k, _view(problem).reduction, problem.precision, target
        )

    def constraints(self, problem: Convolution, target: Target) -> Sequence[Constraint]:
        """See `ScheduleTemplate.constraints`."""
        view = _view(problem)
        return wgmma_tiles.constraints(
            lambda c: view.product(c, target), _sharing(view), problem.precision, target
        )

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        view = _view(problem)
        tiles = view.product(columns, target)
        limited = isinstance(problem, ClampedConvolution)
        return wgmma_costs.work(
            *(tiles, _sharing(view), problem.precision, columns, target), keeps_limits=limited
        )

    def packing(self, problem: Convolution, schedule: WgmmaSchedule) -> str:
        """Filters as rows of (r, s, c), taps of whole vectors; conv_mma's, so that both share them."""
        del schedule  # every schedule reads the same rows
        rounded = "_tf32" if problem.precision is Precision.TF32 else ""
        return f"krsc_pad{_tap_vector(problem)}{rounded}"

    def kernel(self, problem: Convolution, schedule: WgmmaSchedule) -> Kernel:
        """See `SingleKernelTemplate.kernel`."""
        view = _view(problem)
        grid = schedule.grid(view.grid(schedule.block_m, schedule.block_n, schedule.split))
        return Kernel(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                "x_is_matrix": _is_matrix(problem),
            },
            inputs=view.inputs,
            leading=problem.leading,
            grid=grid,
            threads=schedule.threads,
            shared_bytes=wgmma_costs.block_bytes(schedule, problem.precision),
            partials=schedule.partials(grid),
            cluster=schedule.cluster_shape,
            tensor_maps=(_input_map(problem, schedule), _filter_map(problem, schedule)),
            attributes=schedule.attributes,
        )


def _view(problem: Convolution) -> ConvolutionView:
    return ConvolutionView(problem, box_depth(problem.precision), store_width=8)


def _sharing(view: ConvolutionView) -> Sharing:
    return Sharing(view.rows.value, view.stored_columns)


def _tap_vector(problem: Convolution) -> int:
    """Elements of 16 bytes, which the strides of packed filters are multiples of; 1 where they are so."""
    vector = ALIGNMENT // problem.precision.storage.bytes
    return 1 if problem.c % vector == 0 else vector


def _is_matrix(problem: Convolution) -> bool:
    """Whether the input is a matrix of all pixels: taps are single, and pixels lie densely."""
    n, _, h, w = problem.x.strides
    single = problem.filter == (1, 1) and problem.stride == (1, 1) and problem.pad == (0, 0)
    same = (problem.p, problem.q) == (problem.h, problem.w)
    dense = w > 0 and h == w * problem.w and (n == h * problem.h or _is_one_image(problem))
    return single and same and dense


def _is_one_image(problem: Convolution) -> bool:
    """Whether the batch is 1 and stays so: then images have no stride."""
    return problem.n.free is None and problem.n.value == 1


def _why_no_strides(problem: Convolution) -> str | None:
    """Why a tensor map cannot walk along the input's axes; None if it can."""
    n, _, h, w = problem.x.strides
    for name, stride, extent in (("w", w, problem.w), ("h", h, problem.h)):
        if stride == 0 and extent > 1:
            return f"x is the same all along {name}; tensor copies need a stride"
    if n == 0 and not _is_one_image(problem):
        return "x is the same in every image; tensor copies need a stride"
    return None


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
    n, _, h, w = wgmma_tiles.map_strides(problem.x.strides, size)
    box = (box_depth(problem.precision), schedule.block_m // schedule.parts_a)
    rounds = problem.precision is Precision.TF32
    if _is_matrix(problem):
        pixels = product(problem.n.expression, problem.h * problem.w)
        return TensorMapArgument(0, (problem.c, pixels), (w,), box, SWIZZLE, to_tf32=rounds)
    shape = (problem.c, problem.w, problem.h, problem.n.expression)
    return TensorMapArgument(0, shape, (w, h, n), box, SWIZZLE, _windows(problem), rounds)


def _filter_map(problem: Convolution, schedule: WgmmaSchedule) -> TensorMapArgument:
    """Of the packed filters: (c, tap, k); channels behind the last one are not there, so zero."""
    size = problem.precision.storage.bytes
    tap, row = packings.filter_row(problem, _tap_vector(problem), size)
    taps = problem.filter[0] * problem.filter[1]
    box = (box_depth(problem.precision), 1, schedule.block_n // schedule.parts_b)
    return TensorMapArgument(1, (tap, taps, problem.k), (tap * size, row * size), box, SWIZZLE)
