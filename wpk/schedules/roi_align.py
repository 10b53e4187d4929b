"""Regions of images, resampled to windows of one size, one window and a few channels to a thread."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from wpk.expression import cpp_type, flops
from wpk.performance import Floats
from wpk.problems import RoiAlign, RoiMode
from wpk.schedules.image import ORDER, Image
from wpk.schedules.indexed_read import INDEX_TYPES
from wpk.schedules.limit import Limit
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import cpp_tensor, cpp_tensors, why_operand_missing
from wpk.schedules.unit import Members, Type, fp32_bits
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

_SAMPLE_FLOPS = 12
"""Weights, products and sums of four pixels."""

_TYPICAL_SAMPLING = 2
"""Samples along an axis of a window where grids are as fine as pixels: feature pyramids give every region the
level on which its windows have about that many (Lin et al., "Feature pyramid networks", 2017, equation 1)."""


class RoiAlignTemplate(VectorTemplate[RoiAlign]):
    """Every window is sampled by its own threads; neighbours meet in the L1 cache."""

    name: ClassVar[str] = "roi_align"
    version: ClassVar[int] = 1
    problem_type = RoiAlign

    def why_not(self, problem: RoiAlign, target: Target) -> str | None:
        """Refuse strange types, tensors beyond 32-bit addressing and padding along rows."""
        del target
        if not (problem.x.dtype.is_float and problem.rois.dtype.is_float):
            return f"regions of {problem.rois.dtype} in {problem.x.dtype}"
        if problem.image.dtype not in INDEX_TYPES:
            return f"indices are {problem.image.dtype.value}; int32 and int64 are carried"
        return why_operand_missing(problem) or Image.of(problem).why_not(problem)

    def _limits(self, problem: RoiAlign) -> Sequence[Limit]:
        return Image.of(problem).limits()

    def _vectors(self, problem: RoiAlign) -> tuple[int, ...]:
        return Image.of(problem).vectors(problem.x)

    def _items(self, problem: RoiAlign, vector: int) -> int:
        return Image.of(problem).items(vector)

    def _reads(self, problem: RoiAlign, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """A sample's four pixels meet those of its neighbours, so that each sample loads one of its own."""
        image, size = Image.of(problem), problem.x.dtype.bytes
        outputs = float(prod(problem.accesses()[1].sizes))
        samples = float((problem.sampling or _TYPICAL_SAMPLING) ** 2)
        (_, rois, image_of, *_), _ = problem.accesses()
        regions = sum(each.distinct_bytes for each in (rois, image_of) if each is not None)
        pixels = outputs * samples * size * narrow_access(vector, size)
        return Reads(
            flops=outputs * (samples * _SAMPLE_FLOPS + flops(problem.epilogue.expression)),
            loads=pixels + regions + image.operand_bytes(problem),
            registers=32.0 + 6 * vector,
            steps=1.0 + samples,
        )

    def _members(self, problem: RoiAlign) -> Members:
        return {
            "X": Type(cpp_tensor(problem.x, ORDER)),
            "Rois": Type(cpp_tensor(problem.rois, (0, 1))),
            "ImageOf": Type(cpp_tensor(problem.image, (0,))),
            "Y": Type(cpp_tensor(problem.y, ORDER)),
            "Operands": Type(cpp_tensors(problem.epilogue.operands, ORDER)),
            "Epilogue": Type(cpp_type(problem.epilogue.expression)),
            "isMax": problem.mode is RoiMode.MAX,
            "halfPixel": problem.half_pixel,
            "sampling": problem.sampling or 0,
            "scale": fp32_bits(problem.scale),
            "images": problem.images,
            "h": problem.h,
            "w": problem.w,
            **Image.of(problem).constants(),
        }
