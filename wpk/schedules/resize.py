"""Resampling of two spatial axes, nearest or linear."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wpk.dtypes import DType
from wpk.performance import Columns, Work
from wpk.problems import NearestMode, Resize, ResizeCoordinates, ResizeMode
from wpk.schedules.image import ORDER, Image
from wpk.schedules.limit import Figures, Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide
from wpk.schedules.strided import cpp_tensor, is_wide
from wpk.schedules.template import Schedule
from wpk.schedules.tiles.resampled import ResampledAxis
from wpk.schedules.tiles.resized import ResizedTile, block_bytes
from wpk.schedules.unit import Bits, Enumerator, Member, Type, fp32_bits
from wpk.targets import Target

_COORDINATES = {
    ResizeCoordinates.HALF_PIXEL: "halfPixel",
    ResizeCoordinates.PYTORCH_HALF_PIXEL: "pytorchHalfPixel",
    ResizeCoordinates.ALIGN_CORNERS: "alignCorners",
    ResizeCoordinates.ASYMMETRIC: "asymmetric",
}
_NEAREST = {
    NearestMode.ROUND_PREFER_FLOOR: "roundPreferFloor",
    NearestMode.ROUND_PREFER_CEIL: "roundPreferCeil",
    NearestMode.FLOOR: "floor",
    NearestMode.CEIL: "ceil",
}
_COLUMNS_FASTEST = (0, 2, 1, 3)
"""The order of the output's axes in kernels whose threads walk along columns."""

MAX_OUTPUTS, MAX_WORDS, MAX_LARGE_SAMPLES = 64, 80, 24
"""Of a thread: outputs; registers of samples that are under way at once; loads, in blocks of 512 threads."""


@dataclass(frozen=True)
class ResizeSchedule(Schedule):
    """Parameters of resize.cuh.

    Attributes:
        vector: Channels of a thread.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
        pixels: Neighbouring output columns of a thread.
        rows: Neighbouring output rows of a thread.
    """

    vector: int
    threads: int
    early: int = 0
    pixels: int = 1
    rows: int = 1


class ResizeTemplate(SingleKernelTemplate[Resize, ResizeSchedule]):
    """A thread finds the samples under its tile of outputs itself; nearest moves elements exactly."""

    name: ClassVar[str] = "resize"
    version: ClassVar[int] = 3
    problem_type = Resize
    schedule_type = ResizeSchedule

    def why_not(self, problem: Resize, target: Target) -> str | None:
        """Refuse interpolation of integers and tensors beyond 32-bit addressing."""
        if problem.mode is ResizeMode.LINEAR and not problem.x.dtype.is_float:
            return (
                f"linear interpolation of {problem.x.dtype.value}: only floating point is carried"
            )
        return Image.of(problem).why_not(problem)

    def _axes(self, problem: Resize, target: Target) -> dict[str, tuple[int, ...]]:
        """Channels, columns and rows a thread, threads a block."""
        image = Image.of(problem)
        rows, columns = (ResampledAxis.of(problem, axis) for axis in (0, 1))
        return {
            "vector": image.vectors(problem.x),
            "threads": (256, 128, 64, 512),
            "pixels": _counts(columns, powers=not image.channels_fastest),
            "rows": _counts(rows, powers=False),
        }

    def _limits(self, problem: Resize) -> Sequence[Limit]:
        """Vectors run along the channels, and lines of columns are stored as vectors where y's neighbours are columns."""
        image = Image.of(problem)
        lines = () if image.channels_fastest else (_LINES,)
        return (
            *image.limits(),
            *lines,
            Limit(
                f"vector * pixels * rows <= {MAX_OUTPUTS}",
                f"a thread computes at most {MAX_OUTPUTS} outputs",
            ),
        )

    def _target_limits(self, problem: Resize, target: Target) -> Sequence[Limit]:
        return (
            Limit(
                f"pixels * rows == 1 or words <= {MAX_WORDS}",
                f"a tile of several pixels has at most {MAX_WORDS} words of samples",
            ),
            Limit(
                f"threads < 512 or samples <= {MAX_LARGE_SAMPLES}",
                f"threads of a block of 512 load at most {MAX_LARGE_SAMPLES} times: they have 128 registers",
            ),
        )

    def figures(
        self, problem: Resize, columns: Columns, work: Callable[[], Work], target: Target
    ) -> Figures:
        """Return how often a thread loads, and the words of the samples that it holds."""
        del work, target
        tile = ResizedTile.of(problem, columns)
        return {"samples": tile.samples, "words": tile.words}

    def work(self, problem: Resize, columns: Columns, target: Target) -> Work:
        """Count each output once, and the samples under the tiles of each block: what a block loads twice L1 holds."""
        image, tile = Image.of(problem), ResizedTile.of(problem, columns)
        threads = columns["threads"].astype(float)
        items = problem.n.value * tile.items
        blocks = ceil_divide(items, threads)
        return Stream(
            element_bytes=problem.x.dtype.bytes,
            flops=items * tile.flops,
            loads=blocks * block_bytes(problem, columns),
            stores=problem.n.value * image.items(1) * problem.y.dtype.bytes,
            blocks=blocks,
            threads=threads,
            registers=tile.registers,
            early=columns["early"] == 1,
            slots=tile.slots,
            numbers=problem.numbers,
        ).work(target)

    def kernel(self, problem: Resize, schedule: ResizeSchedule) -> KernelPlan:
        """Items are tiles of runs of channels."""
        image = Image.of(problem)
        items = image.items(schedule.vector, schedule.pixels, schedule.rows)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, ORDER)),
                "Y": Type(
                    cpp_tensor(problem.y, ORDER if image.channels_fastest else _COLUMNS_FASTEST)
                ),
                "coordinates": Enumerator(
                    f"wpk::ResizeCoordinates::{_COORDINATES[problem.coordinates]}"
                ),
                "sampling": Enumerator(f"wpk::Sampling::{_sampling(problem)}"),
                "h": problem.h,
                "w": problem.w,
                "ratioH": ResampledAxis.of(problem, 0).ratio,
                "ratioW": ResampledAxis.of(problem, 1).ratio,
                "scaleH": _scale(problem, 0),
                "scaleW": _scale(problem, 1),
                **image.constants(),
                "wide": is_wide(problem.n, items),
            },
            grid=linear_grid(problem.n, items, schedule.threads),
            threads=schedule.threads,
        )


_LINES = Limit("pixels in (1, 2, 4, 8)", "columns are stored in vectors of 1, 2, 4 or 8")


def _counts(axis: ResampledAxis, *, powers: bool) -> tuple[int, ...]:
    """Lengths of runs to try: powers of two, and a sample's outputs."""
    more = {axis.ratio} if 1 < axis.ratio < 8 and not powers else set()
    return tuple(n for n in sorted({1, 2, 4, 8} | more) if n < 2 * axis.outputs)


def _sampling(problem: Resize) -> str:
    """How samples become outputs; linear interpolation has no nearest one."""
    return "linear" if problem.mode is ResizeMode.LINEAR else _NEAREST[problem.nearest]


def _scale(problem: Resize, axis: int) -> Member:
    """The bits of a scale in the numbers that positions are computed in."""
    scale = problem.scale[axis]
    return Bits(scale) if problem.numbers is DType.FP64 else fp32_bits(scale)
