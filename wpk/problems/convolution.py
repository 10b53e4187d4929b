"""Two-dimensional convolution, plain, grouped, depthwise or transposed, with its epilogue."""

from dataclasses import dataclass

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


@dataclass(frozen=True)
class Convolution:
    """``y[n,k,p,q] = epilogue(sum over c,r,s of x[n,c,h,w] * weight[k,c,r,s])``.

    Plain: ``h = p*stride - pad_top + r*dilation``. Transposed: ``p = h*stride - pad_top +
    r*dilation``, the weight has ONNX's ConvTranspose layout (C, K/groups, R, S). One-dimensional
    convolutions have h = r = p = 1.

    Operator inputs: ``x, weight, *epilogue.operands``. Output: ``y``. Domain of ``x``: (n, c, h, w);
    of ``y`` and the epilogue's operands: (n, k, p, q). The weight is a constant that the schedule's
    packing lays out.
    """

    precision: Precision
    n: Extent
    c: int
    h: int
    w: int
    k: int
    p: int
    q: int
    filter: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    groups: int
    transposed: bool
    x: Tensor
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole problem."""
        pixels = self.h * self.w if self.transposed else self.p * self.q
        r, s = self.filter
        return self.n.value * pixels * self.k * self.c * r * s // self.groups

    @property
    def reduction(self) -> int:
        """Products summed for one output element (the K of the error bound)."""
        return self.c // self.groups * self.filter[0] * self.filter[1]

    @property
    def is_depthwise(self) -> bool:
        """Whether every group has one input channel."""
        return self.groups == self.c and self.groups > 1
