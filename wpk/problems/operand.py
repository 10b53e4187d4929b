"""How a problem sees a tensor in memory."""

from dataclasses import dataclass, field

from wpk.codec import MAY_LACK
from wpk.dtypes import DType
from wpk.expression import Acc, Expression


@dataclass(frozen=True)
class Tensor:
    """A tensor over a problem's domain.

    Attributes:
        dtype: Element type in memory.
        strides: Elements between neighbours along each axis of the domain (the problem says which
            axes these are); 0 where the tensor is broadcast.
        padding: Elements after the last one of the contiguous axis that lie before the next row and
            are zero. Who writes the tensor writes these zeros; who reads may read them.
        alignment: Bytes that the address and all non-unit strides are known to be multiples of
            (at least the element's size, at most 16).
        constant: Whether it is known that no kernel writes it, so that kernels may ask for it before
            those in front have ended.
    """

    dtype: DType
    strides: tuple[int, ...]
    padding: int = 0
    alignment: int = 16
    constant: bool = field(default=False, metadata=MAY_LACK)

    def vector(self, axis: int) -> int:
        """Elements along ``axis`` that one aligned access may move; 1 unless it is contiguous."""
        if self.strides[axis] != 1:
            return 1
        return max(1, self.alignment // self.dtype.bytes)

    def pads(self, axis: int) -> bool:
        """Whether padding, if there is any, lies behind ``axis``."""
        return self.padding == 0 or self.strides[axis] == 1


@dataclass(frozen=True)
class Epilogue:
    """What happens to a kernel's result before it is stored.

    Attributes:
        expression: Over `Acc` (the result) and `Operand(i)` (element of ``operands[i]``).
        operands: Tensors over the problem's *output* domain.
    """

    expression: Expression = field(default_factory=Acc)
    operands: tuple[Tensor, ...] = ()
