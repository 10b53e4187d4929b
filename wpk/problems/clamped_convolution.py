"""A convolution of an input that is first kept between limits, one pair for each channel."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from wpk.problems.access import Access
from wpk.problems.convolution import Convolution, Shape
from wpk.problems.odd_sizes import all_of
from wpk.problems.operand import Tensor
from wpk.problems.phrases import sentence
from wpk.problems.problem import Accesses
from wpk.problems.resized_layout import resized


@dataclass(frozen=True)
class ClampedConvolution(Convolution):
    """A `Convolution` of ``min(max(x[n,c,h,w], lower[c]), upper[c])``; it has no padding.

    What a normalisation and a Relu in front of a convolution become: scale and shift are in the
    weights. NaN passes both limits.

    Operator inputs: ``x, weight, *epilogue.operands, lower`` and ``upper``, where there is one.

    Attributes:
        lower: Limits over the domain of ``x``, one number for each channel.
        upper: The same; None where no channel has one.
    """

    lower: Tensor
    upper: Tensor | None

    @property
    def limits(self) -> tuple[Tensor, ...]:
        """The limits that there are, lower ones first."""
        return (self.lower,) if self.upper is None else (self.lower, self.upper)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        inputs, output = super().accesses()
        domain = (self.n, self.c, self.h, self.w)
        return (*inputs, *(Access(each, domain) for each in self.limits)), output

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from super().contradictions()
        if self.pad != (0, 0):
            yield "pad", f"{self.pad}; a clamped convolution has none"

    def _shape_words(self) -> str:
        return sentence(super()._shape_words(), "of clamped x")

    def _with_limits(self, before: Shape, after: Shape) -> Self | None:
        limits = all_of([resized(each, before, after) for each in self.limits])
        if limits is None:
            return None
        return replace(self, lower=limits[0], upper=limits[1] if limits[1:] else None)
