"""What templates over images share: which way threads walk, padding, and blocks of pixels."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from wpk.expression import cpp_type
from wpk.performance import Floats, input_extent
from wpk.problems import Convolution, Pooling, Resize, RoiAlign, Tensor
from wpk.schedules.limit import Limit
from wpk.schedules.strided import (
    cpp_tensor,
    cpp_tensors,
    moved_bytes,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Members, Type

ORDER = (0, 2, 3, 1)
"""Kernels hold tensors of the domain (n, c, h, w) in the order (n, h, w, c)."""

_C, _Q = 1, 3


@dataclass(frozen=True)
class Image:
    """The output of an image template: domain (n, c, p, q).

    Attributes:
        c: Channels.
        p: Rows.
        q: Columns.
        y: The tensor.
    """

    c: int
    p: int
    q: int
    y: Tensor

    @classmethod
    def of(cls, problem: Convolution | Pooling | Resize | RoiAlign) -> Self:
        """Return the output of a problem."""
        _, c, p, q = problem.accesses()[1].sizes
        return cls(c, p, q, problem.y)

    @property
    def channels_fastest(self) -> bool:
        """Whether neighbouring threads hold neighbouring channels; columns otherwise."""
        return self.y.strides[_C] == 1 and (self.c > 1 or self.y.strides[_Q] != 1)

    @property
    def padding_c(self) -> int:
        """Zeros after the last channel."""
        return self.y.padding if self.channels_fastest else 0

    @property
    def padding_q(self) -> int:
        """Zeros after the last column."""
        return 0 if self.channels_fastest else self.y.padding

    @property
    def fastest(self) -> int:
        """The axis along which neighbouring threads lie."""
        return _C if self.channels_fastest else _Q

    def operand_bytes(self, problem: Convolution | Pooling | RoiAlign) -> float:
        """Count the bytes that global memory moves for the epilogue's operands."""
        shape = problem.accesses()[1].sizes
        return sum(moved_bytes(t, shape, self.fastest) for t in problem.epilogue.operands)

    def why_not(self, problem: Convolution | Pooling | Resize | RoiAlign) -> str | None:
        """Say why threads cannot address the output or an input."""
        inputs, output = problem.accesses()
        for access in filter(None, (output, *inputs)):
            if (reason := why_unaddressable([access.tensor], access.sizes)) is not None:
                return reason
        return why_unpaddable(self.y, (_C, _Q))

    def vectors(self, *inputs: Tensor) -> tuple[int, ...]:
        """Return the channels that a thread may hold, the widest first; 1 where threads walk along columns."""
        if not self.channels_fastest:
            return (1,)
        return vector_widths([*inputs, self.y], _C, self.c + self.padding_c)

    def limits(self) -> tuple[Limit, ...]:
        """Vectors run along the channels, so there are none where y's neighbours do not."""
        if self.channels_fastest:
            return ()
        return (Limit("vector == 1", "vectors run along the channels, y's neighbours do not"),)

    def items(self, vector: int, pixels: int = 1, rows: int = 1) -> int:
        """Count the items of one image, each ``vector`` channels of ``pixels`` columns of ``rows`` rows."""
        chunks = -(-(self.c + self.padding_c) // vector)
        return -(-self.p // rows) * -(-(self.q + self.padding_q) // pixels) * chunks

    def constants(self) -> dict[str, int]:
        """Return the members of the kernel's ``Problem`` that say the output's shape."""
        return {
            "channels": self.c,
            "p": self.p,
            "q": self.q,
            "paddingC": self.padding_c,
            "paddingQ": self.padding_q,
            "channelsFastest": self.channels_fastest,
        }

    def block_inputs(
        self,
        outputs: Floats,
        window: tuple[int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        rows: Floats | float = 1.0,
    ) -> Floats:
        """Count the input elements under the windows of a block's ``outputs``, a run in the threads' order.

        Table 8's tile of a block, for a block that is a run of whole pixels or whole rows, or of
        columns of ``rows`` pixels.
        """
        channels = (
            np.minimum(self.c, outputs)
            if self.channels_fastest
            else np.maximum(1.0, outputs // (self.p * self.q))
        )
        run = np.maximum(1.0, outputs / channels / rows)
        columns = np.minimum(self.q, run)
        height = input_extent(
            np.minimum(self.p, rows * np.ceil(run / self.q)), window[0], stride[0], dilation[0]
        )
        width = input_extent(columns, window[1], stride[1], dilation[1])
        elements: Floats = channels * height * width
        return elements


def both_axes(name: str, pair: tuple[int, int]) -> dict[str, int]:
    """Return the members of a pair: ``strideH`` and ``strideW``."""
    return {f"{name}H": pair[0], f"{name}W": pair[1]}


def image_members(problem: Convolution | Pooling) -> Members:
    """Return the members of ``Problem`` that headers of windows over an image read."""
    return {
        "Y": Type(cpp_tensor(problem.y, ORDER)),
        "Operands": Type(cpp_tensors(problem.epilogue.operands, ORDER)),
        "Epilogue": Type(cpp_type(problem.epilogue.expression)),
        "h": problem.h,
        "w": problem.w,
        **both_axes("stride", problem.stride),
        **both_axes("dilation", problem.dilation),
        "padTop": problem.pad[0],
        "padLeft": problem.pad[1],
        **Image.of(problem).constants(),
    }
