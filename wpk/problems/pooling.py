"""Window pooling over two spatial axes."""

from dataclasses import dataclass
from enum import StrEnum

from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


class PoolKind(StrEnum):
    """What a window becomes."""

    MAX = "max"
    AVERAGE = "average"


@dataclass(frozen=True)
class Pooling:
    """``y[n,c,p,q] = epilogue(pool over the window at h = p*stride - pad, w = q*stride - pad)``.

    Windows are clipped to the input. An average divides by the number of clipped elements, or with
    ``count_include_pad`` by the number of window elements inside the *padded* input (ONNX: elements
    that ceil mode adds beyond the end padding never count).

    Operator inputs: ``x, *epilogue.operands``. Output: ``y``. Domain of x: (n, c, h, w); of y and
    the operands: (n, c, p, q). ``pad`` is (top, left), ``pad_end`` (bottom, right).
    """

    kind: PoolKind
    n: Extent
    c: int
    h: int
    w: int
    p: int
    q: int
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    pad_end: tuple[int, int]
    count_include_pad: bool
    x: Tensor
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n
