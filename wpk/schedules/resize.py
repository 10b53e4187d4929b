"""Resampling of two spatial axes, nearest or linear."""

from collections.abc import Sequence
from typing import ClassVar

from wpk.dtypes import DType
from wpk.performance import Floats
from wpk.problems import NearestMode, Resize, ResizeCoordinates, ResizeMode
from wpk.schedules.image import ORDER, Image
from wpk.schedules.limit import Limit
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import cpp_tensor, moved_bytes
from wpk.schedules.unit import Bits, Enumerator, Member, Members, Type, fp32_bits
from wpk.schedules.vector_template import Reads, VectorTemplate
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


class ResizeTemplate(VectorTemplate[Resize]):
    """Every output pixel finds its samples itself; nearest moves elements exactly."""

    name: ClassVar[str] = "resize"
    version: ClassVar[int] = 2
    problem_type = Resize

    def why_not(self, problem: Resize, target: Target) -> str | None:
        """Refuse interpolation of integers and tensors beyond 32-bit addressing."""
        if problem.mode is ResizeMode.LINEAR and not problem.x.dtype.is_float:
            return (
                f"linear interpolation of {problem.x.dtype.value}: only floating point is carried"
            )
        return Image.of(problem).why_not(problem)

    def _limits(self, problem: Resize) -> Sequence[Limit]:
        return Image.of(problem).limits()

    def _vectors(self, problem: Resize) -> tuple[int, ...]:
        return Image.of(problem).vectors(problem.x)

    def _items(self, problem: Resize, vector: int) -> int:
        return Image.of(problem).items(vector)

    def _reads(self, problem: Resize, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """Every input once: neighbours share in L1."""
        image, linear = Image.of(problem), problem.mode is ResizeMode.LINEAR
        shape = (problem.n.value, problem.c, problem.h, problem.w)
        moved = moved_bytes(problem.x, shape, image.fastest)
        total = problem.n.value * image.items(1)
        return Reads(
            flops=float(total * (_LINEAR_FLOPS if linear else 1)),
            loads=moved * narrow_access(vector, problem.x.dtype.bytes),
            registers=24.0 + (6 if linear else 2) * vector,
        )

    def _members(self, problem: Resize) -> Members:
        return {
            "X": Type(cpp_tensor(problem.x, ORDER)),
            "Y": Type(cpp_tensor(problem.y, ORDER)),
            "coordinates": Enumerator(
                f"wpk::ResizeCoordinates::{_COORDINATES[problem.coordinates]}"
            ),
            **_rounding(problem),
            "linear": problem.mode is ResizeMode.LINEAR,
            "h": problem.h,
            "w": problem.w,
            "scaleH": _scale(problem, 0),
            "scaleW": _scale(problem, 1),
            **Image.of(problem).constants(),
        }


def _scale(problem: Resize, axis: int) -> Member:
    """The bits of a scale in the numbers that positions are computed in."""
    scale = problem.scale[axis]
    return Bits(scale) if problem.numbers is DType.FP64 else fp32_bits(scale)


def _rounding(problem: Resize) -> dict[str, Member]:
    """Which sample is the nearest; linear interpolation has no such choice."""
    if problem.mode is ResizeMode.LINEAR:
        return {}
    return {"nearest": Enumerator(f"wpk::NearestMode::{_NEAREST[problem.nearest]}")}
