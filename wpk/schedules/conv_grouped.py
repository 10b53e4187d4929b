"""Convolution of groups of few channels on the tensor cores (conv_grouped.cuh).

conv_mma has a group a block, and gathers its input once for each tap: of four or eight channels these are 8 or 16
bytes of each sector of 32. Here a block brings the patch under its output pixels once, of several groups side by
side. Each warp walks down strips of it, with its filters in registers, and loads a row of the patch once for all of
the output rows that it is under.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dims import ceil_div, product
from wpk.dtypes import Precision
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import ClampedConvolution, Convolution, stored_slots
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import epilogue_members, passed_bytes
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.groups import BANDS, CHUNK, STRIP, GroupTiles, keeps_apart
from wpk.schedules.tiles.matrix import target_limits, up_to
from wpk.schedules.tiles.pixels import THREADS, PixelSchedule, patch_sides
from wpk.schedules.unit import Type, Wide
from wpk.schedules.views.convolution import ConvolutionView, why_too_large
from wpk.targets import Target

_PRECISIONS = (Precision.FP16, Precision.BF16)
_MOST_CHANNELS = 32
_MOST_COLUMNS, _MOST_HELD, _MOST_COPIES = 128, 120, 40
_COPY_BYTES = 16


@dataclass(frozen=True)
class GroupedSchedule(PixelSchedule):
    """Parameters of conv_grouped.cuh; filters of a block are those of whole groups.

    Attributes:
        tiles: Tiles that a block computes one after another.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    tiles: int = 1
    early: int = 0


class ConvGroupedTemplate(SingleKernelTemplate[Convolution, GroupedSchedule]):
    """Groups of at most 32 channels, of images whose channels lie together, in fp16 and bf16."""

    name: ClassVar[str] = "conv_grouped"
    version: ClassVar[int] = 4
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
        whole = tuple(n for n in columns if n % 16 == 0 or filters % 16 == 8 < filters)
        least = -(-16 // filters) * filters  # of so few groups that no block is full
        return {
            "tile_p": up_to((1, 2, 4, 7, 8, 14, 16, 28), problem.p),
            "tile_q": up_to((8, 16, 32, 56), problem.q),
            "block_n": whole or (least,),
            "warps_m": (1, 2, 4, 7, 8),
            "warps_n": (1, 2, 4),
            "tiles": (1, 2, 4, 8) if problem.n.value > 1 else (1, 2),
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        """What tile_groups.cuh can compute."""
        of, (rows, columns) = GroupTiles.of(problem), patch_sides(problem)
        warp, bundle = "(block_n // warps_n)", of.bundle_filters
        chunks = f"ceil_div(block_n // {of.filters} * {of.channels}, {CHUNK})"
        return (
            Limit(f"tile_q % {STRIP} == 0", f"strips are of {STRIP} columns"),
            Limit(
                f"{2 * STRIP} * warps_m % tile_q == 0 or tile_q % ({2 * STRIP} * warps_m) == 0",
                "warps have whole pairs of strips",
            ),
            Limit(f"tile_p % {BANDS} == 0", "strips below each other have as many rows"),
            Limit("block_n % (8 * warps_n) == 0", "a warp has whole tiles of 8 filters"),
            Limit(
                f"block_n % {bundle} == 0 and block_n // {of.filters} * {of.channels} % {CHUNK} == 0",
                f"a block has whole bundles of groups, and whole chunks of {CHUNK} channels",
            ),
            Limit(
                f"{warp} % {bundle} == 0 or {bundle} % {warp} == 0",
                "a warp has whole bundles of groups, or a part of one",
            ),
            Limit("tiles >= 1", "a block has a tile"),
            Limit(
                f"{warp} // 8 * {of.held_and_sums} <= {_MOST_HELD}",
                f"a thread holds at most {_MOST_HELD} words of filters and sums",
            ),
            Limit(f"{chunks} <= {THREADS}", "threads bring whole pixels"),
            Limit(
                f"ceil_div({rows} * {columns}, max(1, {THREADS} // {chunks})) <= {_MOST_COPIES}",
                f"a thread asks for at most {_MOST_COPIES} chunks of a patch",
            ),
        )

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        return target_limits(target)

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """A block loads its filters once and a patch for each of its tiles, which are its steps."""
        of = GroupTiles(problem, columns)
        tiles = of.tiles_of_image * problem.n.value
        steps = np.minimum(columns["tiles"], tiles)
        filters, patch = of.transactions(target.transaction_bytes)
        stored = of.block_m * columns["block_n"] * steps
        return Work(
            unit=problem.precision,
            element_bytes=problem.x.dtype.bytes,
            blocks=np.ceil(tiles / steps) * of.tiles_of_filters,
            threads=of.threads,
            shared_bytes=of.shared_bytes,
            registers=of.registers,
            block_flops=of.tile_flops * steps,
            thread_flops=of.tile_flops * steps / of.threads,
            end_slots=stored / of.threads * stored_slots(problem),
            block_transactions=filters + patch * steps,
            thread_loads=of.fragment_loads * steps,
            store_bytes=of.stored * steps * passed_bytes(problem),
            steps=steps,
            stages=np.where(steps > 1, 2.0, 1.0),
            early=columns["early"] == 1,
            thread_slots=of.block_slots + of.tile_slots * steps,
            slots_beside=True,
            beside_cycles=of.block_port_cycles + of.tile_port_cycles * steps,
            chain_cycles=of.chain_cycles,
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """See `ScheduleTemplate.families`: whether several small blocks of an SM, or a block's patches, hide latencies."""
        return np.asarray(columns["tiles"] > 1, np.int64)

    def shared_accesses(
        self, problem: Convolution, schedule: GroupedSchedule
    ) -> Sequence[SharedAccess]:
        """Return the loads of a tile's fragments, as a warp makes them."""
        return GroupTiles(problem, schedule.columns()).accesses(schedule.tile_q)

    def packing(self, problem: Convolution, schedule: GroupedSchedule) -> str:
        """Return the packing: filters as a warp's lanes hold them."""
        del schedule  # every schedule reads the same tiles
        return "group_mma"

    def kernel(self, problem: Convolution, schedule: GroupedSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        tiles = GroupTiles(problem, schedule.columns())
        view = ConvolutionView(problem, 1)
        whole = schedule.block_n // schedule.warps_n % 16 == 0
        n, _, h, w = problem.x.strides
        all_tiles = product(problem.n.expression, int(tiles.tiles_of_image[0]))
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                # A block's filters are those of several groups; sixteen rows of vectors are shared by all lanes.
                **epilogue_members(replace(problem, groups=1), max_width=8 if whole else 4),
                **view.dilation_members(),
                "groups": problem.groups,
                "h": problem.h,
                "w": problem.w,
                "x_n": Wide(n),
                "x_h": h,
                "x_w": w,
            },
            grid=(
                ceil_div(all_tiles, schedule.tiles),
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
    if not keeps_apart(channels):
        return f"{words}: chunks are of {CHUNK} channels, of one group or of two"
    if not keeps_apart(filters):
        return f"{words}: tiles have {CHUNK} filters, of one group or of two"
    if (held := GroupTiles.of(problem).held_and_sums) > _MOST_HELD:
        return f"{words}: a thread would hold {held} words of filters and sums, at most {_MOST_HELD} are"
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
