"""Regions of images, each resampled to windows of one size."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, prod

from wpk.expression import flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import area, extent_words, sentence
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic


class RoiMode(StrEnum):
    """What the samples of a window become."""

    AVERAGE = "avg"
    MAX = "max"


@dataclass(frozen=True)
class RoiAlign(Problem):
    """``y[r,c,p,q] = epilogue(the mean of x[image[r],c] over window (p, q) of region r)``, as ONNX's RoiAlign.

    A region is (x1, y1, x2, y2), multiplied with ``scale``, and moved back by half a pixel where it is
    ``half_pixel``; where it is not, no side is shorter than 1. Its windows are sampled on a grid, linearly
    between pixels: of ``sampling`` samples along each axis, or where that is None, of the window's
    length, rounded up. The largest instead of the mean is that of the pixels around the samples, each times its
    weight, as in ONNX Runtime. A sample more than a pixel outside is 0, and a region whose image is none
    is NaN.

    Operator inputs: ``x, rois, image, *epilogue.operands``. Domain of x: (images, c, h, w); of rois: (r, 4); of
    image: (r,); of y and the operands: (r, c, p, q).

    Attributes:
        regions: How many there are; the leading extent.
        images: The batch of x.
    """

    mode: RoiMode
    half_pixel: bool
    sampling: int | None
    scale: float
    regions: Extent
    images: int
    c: int
    h: int
    w: int
    p: int
    q: int
    x: Tensor
    rois: Tensor
    image: Tensor
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.regions

    carries_double = True
    family = Family.POOLING

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = f"{self.c}ch {area(self.h, self.w)} → {area(self.p, self.q)}"
        what = f"{extent_words(self.regions)} regions ({self.mode}) {sizes}"
        return sentence(what, epilogue_words(self.epilogue))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        sizes = {"c": self.c, "h": self.h, "w": self.w, "p": self.p, "q": self.q}
        return {"regions": self.regions.value, **sizes, "sampling": self.sampling or 0}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        output = Access(self.y, (self.regions, self.c, self.p, self.q))
        x = Access(self.x, (self.images, self.c, self.h, self.w))
        rois, image = Access(self.rois, (self.regions, 4)), Access(self.image, (self.regions,))
        operands = (Access(each, output.axes) for each in self.epilogue.operands)
        return (x, rois, image, *operands), output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; every region may lie outside of all images."""
        (_, *others), y = self.accesses()
        moved = sum(each.distinct_bytes for each in (*others, y) if each is not None)
        return Traffic(moved, 0, prod(y.sizes) * flops(self.epilogue.expression))

    def terms(self, elements: int) -> int:
        """See `Problem.terms`; of adaptive grids each window may be the whole image."""
        samples = self.sampling**2 if self.sampling else self.h * self.w
        return elements * 4 * samples

    def table_size(self, operand: int) -> int:
        """See `Problem.table_size`."""
        return self.images if operand == 2 else 0

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`; grids are counted in 32 bits."""
        if self.sampling is not None and not 1 <= self.sampling < MOST_SAMPLES:
            yield "sampling", f"{self.sampling} is not within 1 to {MOST_SAMPLES - 1}"
        if not isfinite(self.scale):
            yield "scale", f"{self.scale} is no scale"


MOST_SAMPLES = 2**15
"""Along an axis of a window: their product is counted in 32 bits."""
