"""Matrix product with batch and broadcasting, with its epilogue."""

from dataclasses import dataclass

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


@dataclass(frozen=True)
class Matmul:
    """``y[b..., m, n] = epilogue(sum over k of a[b..., m, k] * b[b..., k, n])``.

    Operator inputs: ``a, b, *epilogue.operands``. Output: ``y``. ``batch`` has exactly two extents
    (1 where unused), so the domains are: a (b0, b1, m, k); b (b0, b1, k, n); y and the epilogue's
    operands (b0, b1, m, n). Transposed operands and split heads are strides, broadcasting is
    stride 0.

    Attributes:
        b_constant: ``b`` is a weight without batch that the schedule's packing lays out (logical
            shape (k, n)); its ``strides`` are then those of the unpacked row-major matrix.
    """

    precision: Precision
    batch: tuple[Extent, int]
    m: Extent
    n: int
    k: int
    a: Tensor
    b: Tensor
    b_constant: bool
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The one extent that may be free: ``m`` where there is no batch, else ``batch[0]``."""
        return self.batch[0] if self.batch[0].free or not self.m.free else self.m

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole problem."""
        return self.batch[0].value * self.batch[1] * self.m.value * self.n * self.k

    @property
    def reduction(self) -> int:
        """Products summed for one output element."""
        return self.k
