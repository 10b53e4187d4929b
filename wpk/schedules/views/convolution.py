"""A convolution as a matrix product, as conv_mma and conv_simt both see it (PixelSource of tile_source.cuh)."""

from dataclasses import dataclass

import numpy as np

from wpk.dims import DimExpr, ceil_div
from wpk.extent import Extent
from wpk.performance import Floats
from wpk.problems import ClampedConvolution, Convolution, Tensor
from wpk.schedules import packings
from wpk.schedules.matrix_epilogue import epilogue_members
from wpk.schedules.unit import Member, Type, Wide
from wpk.schedules.views.matrix import MAX_INT32, VECTOR_BYTES, MatrixSizes, MatrixView
from wpk.targets import Target

_MAX_GRID_Z = 65535
_WASTE = 1.5


def why_too_large(problem: Convolution) -> str | None:
    """Say why a kernel's 32-bit indices or a grid cannot hold the problem; None if they can."""
    _, _, h, w = problem.x.strides
    channels = problem.c * problem.x.strides[1]
    if h * problem.h + w * problem.w + channels > MAX_INT32:
        return "an image has more elements than 32-bit offsets reach"
    rows = problem.n.value * problem.p * problem.q
    if rows > MAX_INT32:
        return f"{rows} output pixels are more than 32-bit indices reach"
    if problem.groups > _MAX_GRID_Z:
        return f"{problem.groups} groups, a grid holds {_MAX_GRID_Z}"
    return None


def input_vector(problem: Convolution, max_vector: int = 8) -> int:
    """Return the channels that one access to ``x`` moves: a power of two, 1 where channels lie apart.

    A filter tap is padded to whole vectors, so a vector that would add more than half of the
    channels is not used (3 channels are read by fours as 4, never by eights as 8).
    """
    channels = problem.c // problem.groups
    vector = min(problem.x.vector(1), max_vector, VECTOR_BYTES // problem.x.dtype.bytes)
    while vector > 1 and (
        packings.round_up(channels, vector) > _WASTE * channels
        or (problem.groups > 1 and channels % vector)
    ):
        vector //= 2
    return vector


@dataclass(frozen=True)
class ConvolutionView(MatrixView[Convolution]):
    """A convolution as rows (output pixels), columns (filters of a group) and a reduction.

    Attributes:
        problem: The convolution.
        vector: Channels that one access to ``x`` moves.
    """

    vector: int

    @property
    def rows(self) -> Extent:
        """Output pixels of the batch."""
        return self.problem.n.times(self.problem.p * self.problem.q)

    @property
    def sizes(self) -> MatrixSizes:
        """See `MatrixView.sizes`."""
        columns, (r, s) = self.problem.k // self.problem.groups, self.problem.filter
        return MatrixSizes(self.rows.value, columns, r * s * self.tap, self.problem.groups)

    @property
    def stored_columns(self) -> int:
        """Columns of the group that writes most: its filters and, for the last, y's padding."""
        return self.problem.k // self.problem.groups + self.problem.y.padding

    @property
    def tap(self) -> int:
        """Channels of a filter tap, whole vectors."""
        return packings.round_up(self.problem.c // self.problem.groups, self.vector)

    @property
    def packing(self) -> str:
        """Name of the filters' packing; taps without padding are the same in all of them."""
        exact = self.problem.c // self.problem.groups % self.vector == 0
        return f"krsc_pad{1 if exact else self.vector}"

    def grid(self, block_m: int, block_n: int, split: int) -> tuple[DimExpr, int, int]:
        """Return the tiles of rows, tiles of columns, groups and the parts of each."""
        tiles = ceil_div(self.rows.expression, block_m)
        return tiles, -(-self.stored_columns // block_n), self.problem.groups * split

    @property
    def _rows(self) -> Tensor:
        return self.problem.x

    def _column_transactions(self, columns: Floats, elements: Floats, target: Target) -> Floats:
        row_bytes = elements * float(self.problem.precision.storage.bytes)
        transactions: Floats = columns * np.ceil(row_bytes / target.transaction_bytes)
        return transactions

    def _row_transactions(self, rows: Floats, elements: Floats, target: Target) -> Floats:
        """See `MatrixView`; a pixel that several taps read is loaded for each of them (from L2).

        So the input extent ``(b - 1) * stride + filter`` of DeepCuts' direct convolution has no place
        here. Channels-last, an access covers the contiguous channels of a tap; else neighbouring pixels
        share transactions as far as their stride allows.
        """
        size = self.problem.x.dtype.bytes
        if self.problem.x.strides[1] == 1:
            run: Floats = np.minimum(elements, float(self.tap)) * size
            return rows * elements * size / run * np.ceil(run / target.transaction_bytes)
        stride = 1 if self.problem.transposed else self.problem.stride[1]
        apart = min(self.problem.x.strides[3] * stride * size, target.transaction_bytes)
        return elements * np.ceil(rows * apart / target.transaction_bytes)

    def members(self, store_width: int = 8) -> dict[str, Member]:
        """See `MatrixView.members`."""
        p = self.problem
        return {
            "c": p.c // p.groups,
            "k": p.k // p.groups,
            "p": p.p,
            "q": p.q,
            **_both_axes("filter", p.filter),
            **_both_axes("stride", p.stride),
            **_both_axes("pad", p.pad),
            **epilogue_members(p, store_width),
            **_limits(p),
        }

    def dilation_members(self) -> dict[str, Member]:
        """Return the members of headers whose taps may lie apart."""
        return _both_axes("dilation", self.problem.dilation)

    def input_members(self) -> dict[str, Member]:
        """Return the members of headers whose threads address the input."""
        p = self.problem
        n, c, h, w = p.x.strides
        return {
            "X": Type(p.x.dtype.c_name),
            **{f"x_{name}": Wide(step) for name, step in (("n", n), ("c", c), ("h", h), ("w", w))},
            "x_vector": self.vector,
            "h": p.h,
            "w": p.w,
        }

    def operand_members(self) -> dict[str, Member]:
        """See `MatrixView.operand_members`: of headers that walk (r, s, c) as one reduction, of each group."""
        p = self.problem
        _, depth = packings.filter_row(p, self.tap_vector, p.precision.storage.bytes)
        return {
            **self.dilation_members(),
            **self.input_members(),
            "groups": p.groups,
            "transposed": p.transposed,
            "tap": self.tap,
            "depth": depth,
        }

    @property
    def tap_vector(self) -> int:
        """The padding of taps that `packing` names."""
        return 1 if self.problem.c // self.problem.groups % self.vector == 0 else self.vector


def _both_axes(name: str, pair: tuple[int, int]) -> dict[str, Member]:
    return {f"{name}_h": pair[0], f"{name}_w": pair[1]}


def _limits(problem: Convolution) -> dict[str, Member]:
    """What channel_limits.cuh reads; nothing where the input is taken as it is."""
    if not isinstance(problem, ClampedConvolution):
        return {}
    return {
        "Limit": Type(problem.lower.dtype.c_name),
        "has_upper": problem.upper is not None,
    }
