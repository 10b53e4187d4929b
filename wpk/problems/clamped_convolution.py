"""A convolution of an input that is first kept between limits, one pair for each channel."""

from dataclasses import dataclass

from wpk.problems.convolution import Convolution
from wpk.problems.operand import Tensor


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
