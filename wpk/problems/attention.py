"""Attention: softmax of queries times keys, times values, as one operator."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from wpk.dtypes import Precision
from wpk.expression import Acc, flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import formula
from wpk.problems.family import Family
from wpk.problems.normalisation import ELEMENT_OPERATIONS, NormKind
from wpk.problems.odd_sizes import (
    BATCH,
    LEAST,
    above,
    odd_extent,
    ragged,
    resized_epilogue,
    unit_of,
)
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import sentence, times_words
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic
from wpk.problems.resized_layout import resized
from wpk.problems.signs import TIMES

_ODD_QUERIES = (65, 129)
"""For blocks of 64 queries and of 128: a whole one and a ragged one."""


@dataclass(frozen=True)
class Attention(Problem):
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

    family = Family.ATTENTION

    @property
    def matrix_precision(self) -> Precision:
        """See `Problem.matrix_precision`."""
        return self.precision

    @property
    def pads_its_columns(self) -> bool:
        """See `Problem.pads_its_columns`."""
        return self.y.pads(-1)

    def words(self) -> str:
        """See `Problem.words`."""
        width = "" if self.depth == self.width else f" · {self.keys}{TIMES}{self.width}"
        sizes = f"{self.queries}{TIMES}{self.depth} · {self.keys} keys{width}"
        masked = not isinstance(self.scores.expression, Acc)
        of = f"softmax of {formula(self.scores.expression)}" if masked else ""
        return sentence(f"attention {times_words(*self.batch)}{sizes}", of)

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {
            "batch": self.batch[0].value * self.batch[1],
            "queries": self.queries,
            "keys": self.keys,
            "depth": self.depth,
            "width": self.width,
        }

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        rows, keys = (*self.batch, self.queries), (*self.batch, self.keys)
        inputs = (
            Access(self.q, (*rows, self.depth)),
            Access(self.k, (*keys, self.depth)),
            Access(self.v, (*keys, self.width)),
            *(Access(each, (*rows, self.keys)) for each in self.scores.operands),
        )
        return inputs, Access(self.y, (*rows, self.width))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; a softmax without its division, which the result's elements can have."""
        softmax = ELEMENT_OPERATIONS[NormKind.SOFTMAX] - 1
        others = self.rows * self.keys * (softmax + flops(self.scores.expression))
        return Traffic(self.moved_bytes(), 2 * self.macs, others)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements // self.width * self.keys * (self.depth + self.width)

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression.of_epilogue(self.scores)

    def _siblings(self) -> Iterator["Attention | None"]:
        masks = self.scores.operands
        of_row = unit_of(2, self.q, self.y, *masks)
        of_key = max(unit_of(2, self.k, self.v), unit_of(3, *masks))
        of_depth = unit_of(3, self.q, self.k, self.v, self.y)
        same = self.depth == self.width
        depths = [n for n in ragged(self.depth, of_depth, LEAST) if n < self.depth]
        for least, depth in product(_ODD_QUERIES, (*depths[:1], self.depth)):
            for keys in ragged(self.keys, of_key, LEAST):
                rows, width = above(least, self.queries, of_row), depth if same else self.width
                yield self._resized(rows, keys, depth, width)

    def _resized(self, queries: int, keys: int, depth: int, width: int) -> "Attention | None":
        heads = self.batch[1]
        old, new = (self.batch[0].value, heads), (BATCH, min(heads, 3))
        of_rows, of_keys = (self.queries, queries), (self.keys, keys)
        of_depth, of_width = (self.depth, depth), (self.width, width)

        def put(tensor: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor | None:
            before, after = ((*b, r, c) for b, r, c in zip((old, new), rows, columns, strict=True))
            return resized(tensor, before, after, spread=True)

        q, k = put(self.q, of_rows, of_depth), put(self.k, of_keys, of_depth)
        v, y = put(self.v, of_keys, of_width), put(self.y, of_rows, of_width)
        before, after = (*old, self.queries, self.keys), (*new, queries, keys)
        scores = resized_epilogue(self.scores, before, after)
        if q is None or k is None or v is None or y is None or scores is None:
            return None
        batch = (odd_extent(self.batch[0], BATCH), new[1])
        sizes = replace(self, batch=batch, queries=queries, keys=keys, depth=depth, width=width)
        return replace(sizes, q=q, k=k, v=v, scores=scores, y=y)
