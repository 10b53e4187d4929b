"""A matrix product of rows that are normalised as the product reads them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from wpk.codec import MAY_LACK
from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.matmul import Matmul
from wpk.problems.normalisation import ELEMENT_OPERATIONS, NormKind
from wpk.problems.operand import Tensor
from wpk.problems.phrases import sentence
from wpk.problems.problem import Accesses, Traffic
from wpk.problems.resized_layout import resized
from wpk.problems.row_moments import (
    WHOLE_MOMENTS,
    moments_contradictions,
    moments_of_row,
)

NORMED_WORDS = {NormKind.LAYER: "of layer-normed rows", NormKind.RMS: "of RMS-normed rows"}
"""What is said of the rows, by the norm that they have; others stand before no product."""

_ROWS_SUMMED = (0, 0, 0, 1)


@dataclass(frozen=True)
class NormedMatmul(Matmul):
    """A `Matmul` of ``r * (a[..., m, :] - mean)``, with mean and scale ``r`` of each row of ``a``.

    ``r`` is ``1 / sqrt(mean of (a - mean)^2 + epsilon)``; an RMS norm has no mean. The product reads ``a`` as it
    lies and has both behind it: ``y[m, n] = epilogue(r[m] * (sum over k of a[m, k] * b[k, n] - mean[m] * sums[n]))``.
    So ``a`` and the constant ``b`` lie in memory in the 16 bits in which they are multiplied: their products are
    exact, and nothing but sums in fp32 is rounded before the mean is subtracted. Statistics are fp32, of
    differences from a number near the mean.

    Where the kernel in front has stored moments of these rows, mean and scale are computed of them, and rows are
    not looked at.

    Operator inputs: ``a, b, *epilogue.operands``, of a layer norm ``sums``, and ``moments`` where there are some.

    Attributes:
        kind: A layer norm or an RMS norm.
        epsilon: Added to the mean square.
        sums: Of each column of ``b`` as it lies in memory, fp32, over the domain of ``y``; None of an RMS norm.
        moments: Of the rows of ``a`` (`MomentsMatmul`), over (b0, b1, m, numbers of a row); None where the product
            computes them itself.
    """

    kind: NormKind
    epsilon: float
    sums: Tensor | None
    moments: Tensor | None = field(default=None, metadata=MAY_LACK)

    def words(self) -> str:
        """See `Problem.words`."""
        known = "" if self.moments is None else "with known moments"
        return sentence(super().words(), NORMED_WORDS[self.kind], known)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        inputs, output = super().accesses()
        sums = [Access(each, output.axes) for each in self._sums]
        moments = [] if self.moments is None else [Access(self.moments, self._of_rows)]
        return (*inputs, *sums, *moments), output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; the statistics of a row are computed once at least."""
        plain = super().traffic()
        rows = self.batch[0].value * self.batch[1] * self.m.value
        scaled = 2 * prod(self.accesses()[1].sizes)
        summed = self.k if self.moments is None else moments_of_row(self.k, self.kind)
        statistics = rows * summed * (ELEMENT_OPERATIONS[self.kind] - 1)
        return replace(plain, others=plain.others + statistics + scaled)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from super().contradictions()
        yield from norm_contradictions(self.kind, self.sums, _ROWS_SUMMED)
        if self.moments is not None:
            yield from moments_contradictions(self.moments, self.k, self.kind)
        if not self.b_constant:
            yield "b_constant", "a product of normalised rows has a constant matrix"
        storage = self.precision.storage
        if storage.bytes != 2 or self.a.dtype is not storage:
            yield "a.dtype", f"{self.a.dtype} in a product of normalised rows in {self.precision}"

    @property
    def _of_rows(self) -> tuple[Extent | int, ...]:
        """The domain of moments."""
        return (*self.batch, self.m, moments_of_row(self.k, self.kind))

    def _resized(self, batch: tuple[int, int], m: int, n: int, k: int) -> Matmul | None:
        """See `Matmul._resized`; rows with moments are whole groups."""
        if self.moments is None:
            return super()._resized(batch, m, n, k)
        k = -(-k // WHOLE_MOMENTS) * WHOLE_MOMENTS
        plain = super()._resized(batch, m, n, k)
        if not isinstance(plain, NormedMatmul):
            return None
        before = self.batch[0].value, self.batch[1], self.m.value
        widths = moments_of_row(self.k, self.kind), moments_of_row(k, self.kind)
        moments = resized(self.moments, (*before, widths[0]), (*batch, m, widths[1]), spread=True)
        return None if moments is None else replace(plain, moments=moments)

    @property
    def _sums(self) -> tuple[Tensor, ...]:
        return () if self.sums is None else (self.sums,)


def norm_contradictions(
    kind: NormKind, sums: Tensor | None, summed: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    """Say what is wrong with a normalisation in front of a product, by the field ``kind`` or ``sums``.

    Args:
        kind: Of the norm.
        sums: Of the matrix's columns.
        summed: Strides that they have: one for each column.
    """
    if kind not in NORMED_WORDS:
        yield "kind", f"{kind} before a product"
    if (sums is None) == (kind is NormKind.LAYER):
        yield "sums", f"{'none' if sums is None else 'some'} behind a norm of kind {kind}"
    if sums is not None and (sums.dtype is not DType.FP32 or sums.strides != summed):
        yield "sums", f"{sums.dtype} with strides {sums.strides}; they are fp32, one a column"
