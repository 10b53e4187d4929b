"""Convolution of groups of few channels on the tensor cores (conv_grouped.cuh).

conv_mma has a group a block, and gathers its input once for each tap: of four or eight channels these are 8 or 16
bytes of each sector of 32. Here a block brings the patch under its output pixels once, of several groups side by
side, and each warp multiplies groups by their own filters alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import ClassVar

import numpy as np

from wpk.dims import product
from wpk.dtypes import Precision
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import ClampedConvolution, Convolution, stored_slots
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import passed_bytes
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.groups import CHUNK, GroupTiles, few_channels, few_filters
from wpk.schedules.tiles.matrix import target_limits, up_to
from wpk.schedules.tiles.pixels import (
    THREADS,
    WHOLE_TILES,
    PixelSchedule,
    accumulator_limit,
    patch_sides,
)
from wpk.schedules.unit import Type, Wide
from wpk.schedules.views.convolution import ConvolutionView, why_too_large
from wpk.targets import Target

_PRECISIONS = (Precision.FP16, Precision.BF16)
_MOST_CHANNELS = 32
_MOST_COLUMNS, _MOST_HELD, _MOST_ACCUMULATORS, _MOST_COPIES = 128, 96, 64, 24
_COPY_BYTES = 16


@dataclass(frozen=True)
class GroupedSchedule(PixelSchedule):
    """Parameters of conv_grouped.cuh; filters of a block are those of whole groups.

    Attributes:
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    early: int = 0


class ConvGroupedTemplate(SingleKernelTemplate[Convolution, GroupedSchedule]):
    """Groups of at most 32 channels, of images whose channels lie together, in fp16 and bf16."""

    name: ClassVar[str] = "conv_grouped"
    version: ClassVar[int] = 2
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Convolution
    schedule_type = GroupedSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if isinstance(problem, ClampedConvolution):
            return "limits of the input: a patch is multiplied as it was loaded"
        if problem.groups == 1:
            return "one group: other templates reuse its channels for more filters"
        if problem.precision not in _PRECISIONS:
            return f"products of {problem.precision.value}: a patch holds fp16 or bf16"
        if problem.transposed:
            return "transposed: the taps of an output pixel are no neighbours"
        reason = _why_no_groups(problem) or _why_not_copied(problem)
        reason = reason or mma.needs(problem.x.dtype, problem.precision, target)
        return reason or why_too_large(problem)

    def _axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the image are left out."""
        del target
        filters = problem.k // problem.groups
        groups = range(1, problem.groups + 1)
        columns = [n * filters for n in groups if n * filters <= _MOST_COLUMNS]
        whole = tuple(n for n in columns if n % 16 == 0)
        least = -(-16 // filters) * filters  # of so few groups that no block is full
        return {
            "tile_p": up_to((1, 2, 4, 7, 8, 14, 16), problem.p),
            "tile_q": up_to((8, 16, 32, 56), problem.q),
            "block_n": whole or (least,),
            "warps_m": (1, 2, 4, 8),
            "warps_n": (1, 2, 4),
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        """What tile_groups.cuh can compute."""
        tiles, channels = GroupTiles.of(problem), problem.c // problem.groups
        filters = problem.k // problem.groups
        warp, (rows, columns) = "(block_n // warps_n)", patch_sides(problem)
        return (
            *WHOLE_TILES,
            Limit(
                f"block_n % {filters} == 0 and block_n // {filters} * {channels} % {CHUNK} == 0",
                f"a block has whole groups, and whole chunks of {CHUNK} channels",
            ),
            Limit(
                f"{warp} % {filters} == 0 or {filters} % {warp} == 0",
                "a warp has whole groups, or a part of one",
            ),
            accumulator_limit(_MOST_ACCUMULATORS),
            Limit(
                f"{warp} // 8 * {2 * tiles.steps} <= {_MOST_HELD}",
                f"a thread holds at most {_MOST_HELD} words of filters",
            ),
            Limit(
                f"ceil_div({rows} * {columns} * ceil_div(block_n // {filters} * {channels}, {CHUNK}), {THREADS})"
                f" <= {_MOST_COPIES}",
                f"a thread asks for at most {_MOST_COPIES} chunks of a patch",
            ),
        )

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        return target_limits(target)

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """A block loads its filters and the patch of its groups once: one step."""
        of = GroupTiles(problem, columns)
        stored = of.block_m * columns["block_n"]
        return Work(
            unit=problem.precision,
            element_bytes=problem.x.dtype.bytes,
            blocks=of.tiles_of_image * problem.n.value * of.tiles_of_filters,
            threads=of.threads,
            shared_bytes=of.shared_bytes,
            registers=of.registers,
            block_flops=of.tile_flops,
            thread_flops=of.tile_flops / of.threads,
            end_slots=stored / of.threads * stored_slots(problem),
            block_transactions=of.transactions(target.transaction_bytes),
            thread_loads=of.fragment_loads,
            store_bytes=stored * passed_bytes(problem),
            steps=np.ones_like(of.threads),
            stages=np.ones_like(of.threads),
            early=columns["early"] == 1,
            thread_slots=of.slots,
        )

    def shared_accesses(
        self, problem: Convolution, schedule: GroupedSchedule
    ) -> Sequence[SharedAccess]:
        """Return the loads of a tile's fragments, as a warp makes them."""
        return GroupTiles(problem, schedule.columns()).accesses(schedule.tile_q)

    def packing(self, problem: Convolution, schedule: GroupedSchedule) -> str:
        """Return the packing: filters as rows of (r, s, c), as conv_mma's."""
        del schedule  # every schedule reads the same rows
        return "krsc_pad1"

    def kernel(self, problem: Convolution, schedule: GroupedSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        tiles = GroupTiles(problem, schedule.columns())
        view = ConvolutionView(problem, 1)
        n, _, h, w = problem.x.strides
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                **view.dilation_members(),
                "groups": problem.groups,
                "h": problem.h,
                "w": problem.w,
                "x_n": Wide(n),
                "x_h": h,
                "x_w": w,
            },
            grid=(
                product(problem.n.expression, int(tiles.tiles_of_image[0])),
                int(tiles.tiles_of_filters[0]),
                1,
            ),
            threads=schedule.threads,
            shared_bytes=int(tiles.shared_bytes[0]),
        )


def _why_no_groups(problem: Convolution) -> str | None:
    """Why chunks and tiles do not keep groups apart; None if they do."""
    channels, filters = problem.c // problem.groups, problem.k // problem.groups
    words = f"{problem.groups} groups of {channels} channels and {filters} filters"
    if channels > _MOST_CHANNELS:
        return f"{words}: at most {_MOST_CHANNELS} channels are carried"
    if not few_channels(channels):
        return f"{words}: chunks are of {CHUNK} channels, or of 4 of two taps"
    if not few_filters(filters):
        return f"{words}: tiles have {CHUNK} filters, of one group or of two"
    held = 2 * GroupTiles.of(problem).steps * (lcm(filters, 16) if filters % 16 else 16) // CHUNK
    if held > _MOST_HELD:
        return f"{words}: a thread would hold {held} words of filters, at most {_MOST_HELD} are"
    return None


def _why_not_copied(problem: Convolution) -> str | None:
    """Why chunks of a pixel's channels cannot be copied as they lie; None if they can."""
    x, stored = problem.x, problem.precision.storage
    if x.dtype is not stored:
        return f"x is {x.dtype.value}; a patch is multiplied as it lies, in {stored.value}"
    if x.strides[1] != 1:
        return f"x has a stride of {x.strides[1]} along its channels; chunks lie together"
    if x.alignment % _COPY_BYTES:
        return f"x is aligned to {x.alignment} bytes; chunks have {_COPY_BYTES}"
    return None
