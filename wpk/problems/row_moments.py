"""Moments of rows, which a product stores beside them for a product behind it that normalises them (row_moments.cuh)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from wpk.dtypes import DType
from wpk.problems.access import Access
from wpk.problems.matmul import Matmul
from wpk.problems.normalisation import ELEMENT_OPERATIONS, NormKind
from wpk.problems.operand import Tensor
from wpk.problems.phrases import sentence
from wpk.problems.problem import Traffic
from wpk.problems.resized_layout import resized

_GROUPS = (64, 32)
"""Neighbouring columns that have moments together: as many as divide a row. A warp that stores a row has a group of its
columns, which all tiles of more columns allow; fewer would be more numbers to read."""

WHOLE_MOMENTS = _GROUPS[-1]
"""Columns of which a row with moments has a multiple."""

_NUMBERS = {NormKind.LAYER: 2, NormKind.RMS: 1}


def numbers_of_group(kind: NormKind) -> int:
    """Return how many numbers a group's moments are."""
    return _NUMBERS[kind]


def moments_group(columns: int) -> int:
    """Return how many neighbours of so many columns have moments together; 0 where groups would not be whole."""
    return next((group for group in _GROUPS if columns % group == 0), 0)


def moments_of_row(columns: int, kind: NormKind) -> int:
    """Return the numbers beside a row of whole groups.

    Of each group they are the mean and the mean square of the differences from it; of an RMS norm the mean square
    alone.
    """
    return columns // moments_group(columns) * numbers_of_group(kind)


def moments_contradictions(
    moments: Tensor, columns: int, kind: NormKind
) -> Iterator[tuple[str, str]]:
    """The contradictions of moments of rows of so many columns."""
    if not moments_group(columns):
        yield (
            "moments",
            f"of rows of {columns}, which are no groups of {' or '.join(map(str, _GROUPS))}",
        )
    if kind not in _NUMBERS:
        yield "kind", f"{kind}, which has no moments"
    if moments.dtype is not DType.FP32 or moments.strides[3] != 1 or moments.padding:
        yield (
            "moments",
            f"{moments.dtype} with strides {moments.strides}; they are fp32, side by side",
        )


@dataclass(frozen=True)
class MomentsMatmul(Matmul):
    """A `Matmul` that stores moments of its rows beside them: of elements as they are rounded to the type of ``y``.

    Outputs: ``y`` and ``moments``, whose domain is (b0, b1, m, numbers of a row).

    Attributes:
        kind: Of the norm behind: what is stored of a group, `moments_of_row`.
        moments: Where, in fp32.
    """

    kind: NormKind
    moments: Tensor

    def words(self) -> str:
        """See `Problem.words`."""
        return sentence(super().words(), "with moments of rows")

    def writes(self) -> tuple[Access, ...]:
        """See `Problem.writes`."""
        (output,) = super().writes()
        width = moments_of_row(self.n, self.kind)
        return output, Access(self.moments, (*output.axes[:3], width))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; each element counts in its group's moments."""
        plain = super().traffic()
        summed = prod(self.accesses()[1].sizes) * (ELEMENT_OPERATIONS[self.kind] - 1)
        return Traffic(plain.bytes, plain.products, plain.others + summed, plain.streamed)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from super().contradictions()
        yield from moments_contradictions(self.moments, self.n, self.kind)
        if self.y.dtype.bytes != 2 or self.y.strides[3] != 1 or self.y.padding:
            yield (
                "y",
                f"{self.y.dtype} with strides {self.y.strides}; rows with moments are of 16 bits, side by side",
            )

    def _resized(self, batch: tuple[int, int], m: int, n: int, k: int) -> Matmul | None:
        """See `Matmul._resized`; rows are whole groups, as wide as here, so that schedules that have such are legal."""
        group = moments_group(self.n)
        groups = -(-n // group)
        if group == WHOLE_MOMENTS:
            groups |= 1  # of an even number wider ones would do
        plain = super()._resized(batch, m, groups * group, k)
        if not isinstance(plain, MomentsMatmul):
            return None
        before = self.batch[0].value, self.batch[1], self.m.value
        widths = (moments_of_row(each.n, self.kind) for each in (self, plain))
        of_before, of_after = (
            (*rows, w) for rows, w in zip((before, (*batch, m)), widths, strict=True)
        )
        moments = resized(self.moments, of_before, of_after, spread=True)
        return None if moments is None else replace(plain, moments=moments)
