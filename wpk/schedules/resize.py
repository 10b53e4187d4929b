"""Resampling of two spatial axes, nearest or linear."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.performance import Columns, Work
from wpk.problems import NearestMode, Resize, ResizeCoordinates, ResizeMode
from wpk.schedules.image import ORDER, Image
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, VectorSchedule, ceil_divide, narrow_access
from wpk.schedules.strided import cpp_tensor, is_wide, moved_bytes
from wpk.schedules.unit import Enumerator, Member, Type, fp32_bits
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
_LINEAR_FLOPS = 6  # three interpolations of two operations


class ResizeTemplate(SingleKernelTemplate[Resize, VectorSchedule]):
    """Every output pixel finds its samples itself; nearest moves elements exactly."""

    name: ClassVar[str] = "resize"
    version: ClassVar[int] = 2
    problem_type = Resize
    schedule_type = VectorSchedule

    def why_not(self, problem: Resize, target: Target) -> str | None:
        """Refuses interpolation of integers and tensors beyond 32-bit addressing."""
        if problem.mode is ResizeMode.LINEAR and not problem.x.dtype.is_float:
            return (
                f"linear interpolation of {problem.x.dtype.value}: only floating point is carried"
            )
        shape = (1, problem.c, problem.h, problem.w)
        return _image(problem).why_not([(problem.x, shape)])

    def _axes(self, problem: Resize, target: Target) -> dict[str, tuple[int, ...]]:
        """Channels a thread, threads a block."""
        return {
            "vector": _image(problem).vectors(problem.x),
            "threads": (256, 128, 64, 512),
        }

    def _limits(self, problem: Resize) -> Sequence[Limit]:
        return _image(problem).limits()

    def work(self, problem: Resize, columns: Columns, target: Target) -> Work:
        """Every input once (neighbours share in L1), every output once."""
        image = _image(problem)
        items = problem.p * (problem.q + image.padding_q) * (problem.c + image.padding_c)
        total = problem.n.value * items
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        linear = problem.mode is ResizeMode.LINEAR
        shape = (problem.n.value, problem.c, problem.h, problem.w)
        moved = moved_bytes(problem.x, shape, 1 if image.channels_fastest else 3)
        return Stream(
            element_bytes=problem.x.dtype.bytes,
            flops=float(total * (_LINEAR_FLOPS if linear else 1)),
            loads=moved * narrow_access(vector, problem.x.dtype.bytes),
            stores=total * problem.y.dtype.bytes,
            blocks=ceil_divide(total, vector * threads),
            threads=threads,
            registers=24.0 + (6 if linear else 2) * vector,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Resize, schedule: VectorSchedule) -> KernelPlan:
        """Items are runs of channels at one pixel."""
        image = _image(problem)
        items = image.items(schedule.vector)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, ORDER)),
                "Y": Type(cpp_tensor(problem.y, ORDER)),
                "coordinates": Enumerator(
                    f"wpk::ResizeCoordinates::{_COORDINATES[problem.coordinates]}"
                ),
                **_rounding(problem),
                "linear": problem.mode is ResizeMode.LINEAR,
                "h": problem.h,
                "w": problem.w,
                "scaleH": fp32_bits(problem.scale[0]),
                "scaleW": fp32_bits(problem.scale[1]),
                **image.constants(),
                "wide": is_wide(problem.n, items),
            },
            inputs=1,
            leading=problem.n,
            grid=linear_grid(problem.n, items, schedule.threads),
            threads=schedule.threads,
        )


def _image(problem: Resize) -> Image:
    return Image(problem.c, problem.p, problem.q, problem.y)


def _rounding(problem: Resize) -> dict[str, Member]:
    """Which sample is the nearest; linear interpolation has no such choice."""
    if problem.mode is ResizeMode.LINEAR:
        return {}
    return {"nearest": Enumerator(f"wpk::NearestMode::{_NEAREST[problem.nearest]}")}
