"""Attention: softmax of queries times keys, times values, as one operator."""

from dataclasses import dataclass

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


@dataclass(frozen=True)
class Attention:
    """``y[b..., i, d] = sum over j of p[b..., i, j] * v[b..., j, d]``, p = softmax over j of scores.

    ``scores[b..., i, j] = s(sum over c of q[b..., i, c] * k[b..., j, c])`` where ``s`` is the
    expression of ``scores``: scales and masks, as a masking -inf or a large negative number.

    Operator inputs: ``q, k, v, *scores.operands``. Output: ``y``. ``batch`` has two extents (1 where
    unused), so the domains are: q (b0, b1, queries, depth); k (b0, b1, keys, depth); v (b0, b1, keys,
    width); y (b0, b1, queries, width); the scores' operands (b0, b1, queries, keys). Split heads are
    strides. Scores and sums are fp32; p is rounded to what the precision multiplies.

    Attributes:
        empty_rows_are_zero: Whether p is 0 where the softmax is NaN: in rows of nothing but -inf.
    """

    precision: Precision
    batch: tuple[Extent, int]
    queries: int
    keys: int
    depth: int
    width: int
    q: Tensor
    k: Tensor
    v: Tensor
    scores: Epilogue
    empty_rows_are_zero: bool
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.batch[0]

    @property
    def rows(self) -> int:
        """Rows of scores of the whole problem."""
        return self.batch[0].value * self.batch[1] * self.queries

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products."""
        return self.rows * self.keys * (self.depth + self.width)

    @property
    def reduction(self) -> int:
        """Terms of the longest sum."""
        return max(self.depth, self.keys)
