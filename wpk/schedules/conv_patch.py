"""Convolution of an image of at most four channels on the tensor cores (conv_patch.cuh).

First layers. conv_mma gathers their input once for each tap, element by element; here a block brings
the patch under its output pixels to shared memory once, coalesced, from any strides and type, four
channels a pixel. The matrix loads take the product's rows straight from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dims import ceil_div, product
from wpk.dtypes import Precision
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import ClampedConvolution, Convolution, stored_slots
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_epilogue import passed_bytes
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.packings import CHANNELS, product_steps
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.matrix import target_limits, up_to
from wpk.schedules.tiles.patch import PatchTiles, patch_pixels
from wpk.schedules.tiles.pixels import THREADS, WHOLE_TILES, PixelSchedule, accumulator_limit
from wpk.schedules.unit import Type
from wpk.schedules.views.convolution import ConvolutionView, why_too_large
from wpk.targets import Target

_MOST_STEPS = 64
_MOST_HELD = 64
_MOST_ACCUMULATORS, _SPLIT_ACCUMULATORS = 128, 64
_VECTOR_BYTES = 16


@dataclass(frozen=True)
class PatchSchedule(PixelSchedule):
    """Parameters of conv_patch.cuh.

    Attributes:
        tiles: Tiles that a block computes one after the other, its filters kept; the next one's
            patch is loaded meanwhile.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    tiles: int = 1
    early: int = 0


class ConvPatchTemplate(SingleKernelTemplate[Convolution, PatchSchedule]):
    """Plain convolutions over images of one to four channels in every precision."""

    name: ClassVar[str] = "conv_patch"
    version: ClassVar[int] = 8
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Convolution
    schedule_type = PatchSchedule

    def why_not(self, problem: Convolution, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if isinstance(problem, ClampedConvolution):
            return "limits of the input: a patch is multiplied as it was loaded"
        if problem.c > CHANNELS:
            return f"{problem.c} channels: a pixel of a patch has {CHANNELS}"
        if problem.precision.is_quantised:
            return f"products of {problem.precision.value}: a patch holds floating point of 16 or 32 bits"
        if problem.groups > 1:
            return f"{problem.groups} groups: a patch is that of all filters"
        if problem.transposed:
            return "transposed: the taps of an output pixel are no neighbours"
        if problem.dilation != (1, 1):
            return f"dilated by {problem.dilation}: the taps of a chunk are neighbours"
        if (steps := product_steps(problem, problem.precision.storage.bytes)) > _MOST_STEPS:
            return f"a filter of {problem.filter} takes {steps} steps, at most {_MOST_STEPS} are"
        reason = mma.needs(problem.x.dtype, problem.precision, target)
        return reason or why_too_large(problem)

    def _axes(self, problem: Convolution, target: Target) -> dict[str, tuple[int, ...]]:
        """See `ScheduleTemplate.axes`; tiles much larger than the image are left out."""
        tiles = (1, 2, 3, 4, 6, 8, 12, 16) if problem.n.value > 1 else (1, 2, 4)
        return {
            "tile_p": up_to((1, 2, 4, 8, 16), problem.p),
            "tile_q": up_to((8, 16, 32, 64), problem.q),
            "block_n": up_to((16, 32, 64, 128), problem.k),
            "warps_m": (1, 2, 4, 8),
            "warps_n": (1, 2, 4),
            "tiles": tiles,
        }

    def _limits(self, problem: Convolution) -> Sequence[Limit]:
        """What tile_patch.cuh can compute."""
        is_split = problem.precision is Precision.FP32
        most = _SPLIT_ACCUMULATORS if is_split else _MOST_ACCUMULATORS
        rows, columns = patch_pixels(problem)
        return (
            *WHOLE_TILES,
            Limit("(block_n & (block_n - 1)) == 0", "filters of a block are a power of two"),
            Limit("tiles >= 1", "a block has a tile"),
            accumulator_limit(most),
            Limit(
                f"ceil_div({rows} * {columns}, {THREADS}) * {problem.c} <= {_MOST_HELD}",
                f"a thread holds at most {_MOST_HELD} values of a patch",
            ),
        )

    def _target_limits(self, problem: Convolution, target: Target) -> Sequence[Limit]:
        return target_limits(target)

    def work(self, problem: Convolution, columns: Columns, target: Target) -> Work:
        """A block loads its filters once and a patch for each of its tiles, which are its steps."""
        of = PatchTiles(problem, columns)
        tiles = of.tiles_of_image * problem.n.value
        steps = np.minimum(columns["tiles"], tiles)
        filters, patch = of.transactions(target.transaction_bytes)
        flops = of.tile_flops * steps
        return Work(
            unit=problem.precision,
            element_bytes=problem.x.dtype.bytes,
            blocks=np.ceil(tiles / steps) * of.tiles_of_filters,
            threads=of.threads,
            shared_bytes=of.shared_bytes,
            registers=of.registers,
            block_flops=flops,
            thread_flops=flops / of.threads,
            end_slots=of.block_m * columns["block_n"] / of.threads * steps * stored_slots(problem),
            block_transactions=filters + patch * steps,
            thread_loads=of.matrix_loads * steps,
            store_bytes=of.block_m * columns["block_n"] * passed_bytes(problem) * steps,
            steps=steps,
            stages=np.where(steps > 1, 2.0, 1.0),
            early=columns["early"] == 1,
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """See `ScheduleTemplate.families`: what keeping the filters saves, L2 knows."""
        return np.asarray(columns["tiles"] > 1, np.int64)

    def shared_accesses(
        self, problem: Convolution, schedule: PatchSchedule
    ) -> Sequence[SharedAccess]:
        """Return the ldmatrix instructions of a tile: eight neighbours lie in all banks, and so do filters.

        Rows of a tile may lie in the same banks, but no phase of the instruction has two of them.
        """
        tiles = PatchTiles(problem, schedule.columns())
        tiles_m = schedule.tile_p * schedule.tile_q // schedule.warps_m // 16
        pairs_n = schedule.block_n // schedule.warps_n // 16
        pitch = (2 * tiles.steps + 1) * 16
        pixels = tuple(lane % 8 * 16 for lane in range(32))
        filters = tuple(
            (lane % 8 + lane // 16 * 8) * pitch + lane // 8 % 2 * 16 for lane in range(32)
        )
        return (
            SharedAccess(pixels, 16, tiles.steps * tiles_m),
            SharedAccess(filters, 16, tiles.steps * pairs_n),
        )

    def packing(self, problem: Convolution, schedule: PatchSchedule) -> str:
        """Return the packing: filters as rows of chunks, rounded to tf32 where the products are."""
        del schedule  # every schedule reads the same rows
        return "patch_tf32" if problem.precision is Precision.TF32 else "patch"

    def kernel(self, problem: Convolution, schedule: PatchSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        tiles = PatchTiles(problem, schedule.columns())
        view = ConvolutionView(problem, _vector(problem))
        all_tiles = product(problem.n.expression, int(tiles.tiles_of_image[0]))
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                **view.members(),
                **view.input_members(),
            },
            grid=(
                ceil_div(all_tiles, schedule.tiles),
                int(tiles.tiles_of_filters[0]),
                1,
            ),
            threads=schedule.threads,
            shared_bytes=int(tiles.shared_bytes[0]),
        )


def _vector(problem: Convolution) -> int:
    """Channels that one access to ``x`` moves without leaving a pixel and its padding."""
    x = problem.x
    vector = min(x.vector(1), CHANNELS, _VECTOR_BYTES // x.dtype.bytes)
    while vector > 1 and -problem.c % vector > x.padding:
        vector //= 2
    return vector
