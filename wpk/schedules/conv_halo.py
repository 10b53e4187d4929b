"""Convolution by warpgroups over filters and patches kept in shared memory (conv_halo.cuh), on sm_90a.

conv_wgmma brings a pixel to shared memory once for each tap that reads it, and filters once for each tile;
where filters are few, that is what large batches wait for. Here a block brings its filters once, and the
pixels under a tile of the output, the halo included, once for all taps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wpk.dims import DimExpr, ceil_div, minimum, product
from wpk.dtypes import Precision
from wpk.launch import TensorMapArgument
from wpk.performance import Columns, Work
from wpk.problems import ClampedConvolution, Convolution
from wpk.schedules import convolution_copies
from wpk.schedules.limit import Limit
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.template import Schedule
from wpk.schedules.tiles import halo
from wpk.schedules.tiles.halo import HaloTiles, carries
from wpk.schedules.tiles.matrix import target_limits, up_to
from wpk.schedules.unit import Type
from wpk.schedules.views.convolution import ConvolutionView, why_too_large
from wpk.schedules.wgmma.costs import WHOLE_WARPGROUPS
from wpk.schedules.wgmma.group import GROUP_ROWS
from wpk.schedules.wgmma.persistent import persistent_limits
from wpk.schedules.wgmma.tensor_copies import SWIZZLE, box_depth, map_strides
from wpk.targets import Target

_MOST_TAPS = 9  # the loop over them is unrolled
_OF_SM = (1, 2, 3)  # persistent blocks


@dataclass(frozen=True)
class HaloSchedule(Schedule):
    """Tiles of output pixels, and the teams of warpgroups that compute them.

    Attributes:
        tile_p: Rows of output pixels of a tile.
        tile_q: Columns of output pixels of a tile.
        block_n: Filters of a block.
        teams: Of a block: each computes tiles of its own.
        patches: Stages of a team's pipeline, each with 128 bytes of channels of a patch's pixels.
        carry: 1 where warps carry rows on in registers: the lower ones under a tap are the upper ones under
            the tap below.
        persistent: Persistent blocks, which compute tiles one after another; 0 where each tile has a team.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    tile_p: int
    tile_q: int
    block_n: int
    teams: int = 1
    patches: int = 1
    carry: int = 0
    persistent: int = 0
    early: int = 0


_SMALLEST = HaloSchedule(tile_p=4, tile_q=14, block_n=16)


class ConvHaloTemplate(SingleKernelTemplate[Convolution, HaloSchedule]):
    """Plain, grouped, strided and dilated convolutions of several taps over channels-last images, without fp32."""

    name: ClassVar[str] = "conv_halo"
    version: ClassVar[int] = 8
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Convolution
    schedule_type = HaloSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        reason = convolution_copies.why_not(problem, target)
        if (reason := reason or convolution_copies.why_no_groups(problem)) is not None:
            return reason
        if isinstance(problem, ClampedConvolution):
            return "limits of the input: a patch is multiplied as it lies"
        if problem.precision is Precision.INT8:
            return "bytes: a patch's rows go through registers, as floating point"
        if problem.precision is Precision.FP32:
            return "fp32: its products are three, of parts that a patch does not hold"
        taps = problem.filter[0] * problem.filter[1]
        if not 2 <= taps <= _MOST_TAPS:
            return f"{taps} taps: patches stay for 2 to {_MOST_TAPS}"
        smallest = HaloTiles(problem, _SMALLEST.columns()).shared_bytes[0]
        if smallest > target.max_shared_block:
            return (
                f"{_SMALLEST.block_n} filters of {taps} taps and {problem.c // problem.groups} channels take {smallest:.0f} "
                f"bytes with a patch, a block has {target.max_shared_block}"
            )
        return why_too_large(problem)

    def _axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the image are left out."""
        return {
            "tile_p": up_to((1, 2, 4, 7, 8, 14, 16), problem.p),
            "tile_q": up_to((4, 7, 8, 14, 16, 28, 32), problem.q),
            "block_n": up_to((16, 32, 64, 128, 256), problem.k // problem.groups),
            "teams": (1, 2, 3, 4, 6),
            "patches": (1, 2, 3),
            "carry": (0, 1) if carries(problem) else (0,),
            "persistent": _persistent_axis(problem, target),
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        return halo.limits(problem)

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        return (
            *halo.useful_limits(problem),
            *target_limits(target, WHOLE_WARPGROUPS),
            *persistent_limits(target),
        )

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`."""
        return HaloTiles(problem, columns).work(target)

    def packing(self, problem: Convolution, schedule: HaloSchedule) -> str:
        """Return conv_wgmma's packing, so that both share it."""
        del schedule  # every schedule reads the same rows
        return convolution_copies.packing(problem)

    def kernel(self, problem: Convolution, schedule: HaloSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        tiles = HaloTiles(problem, schedule.columns())
        view = ConvolutionView(problem, vector=1)
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                **view.dilation_members(),
                "groups": problem.groups,
            },
            grid=(_blocks(problem, tiles, schedule), int(tiles.across[0]), problem.groups),
            threads=int(tiles.threads[0]),
            shared_bytes=int(tiles.shared_bytes[0]),
            tensor_maps=(
                _patch_map(problem, tiles),
                convolution_copies.filter_map(problem, schedule.block_n),
            ),
        )


def _persistent_axis(problem: Convolution, target: Target) -> tuple[int, ...]:
    """Values to try: no persistent blocks where each SM has one warpgroup's pixels."""
    pixels = problem.n.value * problem.p * problem.q
    if pixels <= GROUP_ROWS * target.sm_count:
        return (0,)
    return (0, *(count * target.sm_count for count in _OF_SM))


def _blocks(problem: Convolution, tiles: HaloTiles, schedule: HaloSchedule) -> DimExpr:
    """Along the grid's first axis: those of one tile of a group's filters."""
    all_tiles = product(problem.n.expression, int(tiles.tiles_of_image[0]))
    needed = ceil_div(all_tiles, schedule.teams)
    persistent = schedule.persistent // int(tiles.across[0] * problem.groups)
    return minimum(needed, persistent) if persistent else needed


def _patch_map(problem: Convolution, tiles: HaloTiles) -> TensorMapArgument:
    """Of the input: (c, w, h, n); a copy brings a patch, zeros where it reaches beyond the image."""
    n, _, h, w = map_strides(problem.x.strides, problem.x.dtype.bytes)
    height, width = (int(side[0]) for side in tiles.patch)
    return TensorMapArgument(
        index=0,
        shape=(problem.c, problem.w, problem.h, problem.n.expression),
        strides=(w, h, n),
        box=(box_depth(problem.precision), width, height, 1),
        swizzle=SWIZZLE,
        to_tf32=problem.precision is Precision.TF32,
    )
