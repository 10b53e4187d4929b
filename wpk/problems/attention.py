"""Attention: softmax of queries times keys, times values, as one operator."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from wpk.codec import MAY_LACK
from wpk.dtypes import Precision
from wpk.expression import Acc, flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words, formula
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
from wpk.problems.peculiar import few_words, ragged_words
from wpk.problems.phrases import sentence, times_words
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic
from wpk.problems.resized_layout import resized
from wpk.problems.signs import TIMES
from wpk.problems.windows import Windows

_ODD_QUERIES = (65, 129)
"""For blocks of 64 queries and of 128: a whole one and a ragged one."""


@dataclass(frozen=True)
class Attention(Problem):
    """``y[b..., i, d] = sum over j of p[b..., i, j] * v[b..., j, d]``, p = softmax over j of scores.

    ``scores[b..., i, j] = s(sum over c of q[b..., i, c] * k[b..., j, c])`` where ``s`` is the
    expression of ``scores``: scales and masks, as a masking -inf or a large negative number.

    Operator inputs: ``q, k, v, *scores.operands, *epilogue.operands``. Output: ``y``. ``batch`` has two
    extents (1 where unused), so the domains are: q (b0, b1, queries, depth); k (b0, b1, keys, depth); v
    (b0, b1, keys, width); y and the epilogue's operands (b0, b1, queries, width); the scores' operands
    (b0, b1, queries, keys). Split heads are strides. Scores and sums are fp32; p is rounded to what the
    precision multiplies.

    Where ``sharing`` is given, so many heads that follow each other read one head of keys and values:
    head h of k and v is ``h // sharing``, and their second extent is ``b1 // sharing``.

    Where ``windows`` is given, each matrix has the tokens of a window of an image. The matrices of q, k, v, y and the
    epilogue's operands then follow each other row by row in memory, as images and their places do: row ``i`` of
    matrix ``b0`` lies where that of place ``windows.places()[...]`` of its image does.

    Where ``free_queries`` and ``free_keys`` are given, they decide the rows of a matrix at run time, and
    ``queries`` and ``keys`` are their values. The matrices of a batch then follow each other row by row,
    so that the strides along ``b0`` are those between rows times ``queries`` (q, y) or ``keys`` (k, v,
    and the operands, which are the same for all rows of queries), or 0.

    Attributes:
        empty_rows_are_zero: Whether p is 0 where the softmax is NaN: in rows of nothing but -inf.
        free_queries: What decides ``queries`` at run time; None where they are fixed.
        free_keys: Likewise of ``keys``; both are given, or none is.
        sharing: Heads that read the same keys and values, at least two; None where each has its own.
        epilogue: What happens to the sums before they are stored; None where nothing does. Where lengths
            are free, it has no operands.
        windows: What place of an image each row of a matrix has; None where rows lie as they are counted.
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
    free_queries: Extent | None = field(default=None, metadata=MAY_LACK)
    free_keys: Extent | None = field(default=None, metadata=MAY_LACK)
    sharing: int | None = field(default=None, metadata=MAY_LACK)
    epilogue: Epilogue | None = field(default=None, metadata=MAY_LACK)
    windows: Windows | None = field(default=None, metadata=MAY_LACK)

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.batch[0]

    @property
    def extents(self) -> tuple[Extent, ...]:
        """See `Problem.extents`."""
        lengths = (self.free_queries, self.free_keys)
        return (self.leading, *(each for each in lengths if each is not None))

    @property
    def lengths(self) -> tuple[Extent, Extent] | None:
        """The queries and keys that are decided at run time; None where they are fixed."""
        queries, keys = self.free_queries, self.free_keys
        return None if queries is None or keys is None else (queries, keys)

    @property
    def heads_of_keys(self) -> int:
        """Heads that keys and values have."""
        return self.batch[1] // (self.sharing or 1)

    @property
    def ending(self) -> Epilogue:
        """The epilogue; the bare result where there is none."""
        return self.epilogue or Epilogue()

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
        shared = "" if self.sharing is None else f"keys and values of {self.heads_of_keys} heads"
        attention = f"attention {times_words(*self.batch)}{sizes}"
        windows = "" if self.windows is None else _windows_words(self.windows)
        return sentence(attention, windows, shared, of, epilogue_words(self.ending))

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
        if self.lengths is not None:
            return self._free_accesses(*self.lengths)
        rows = (*self.batch, self.queries)
        keys = (self.leading, self.heads_of_keys, self.keys)
        inputs = (
            Access(self.q, (*rows, self.depth)),
            Access(self.k, (*keys, self.depth)),
            Access(self.v, (*keys, self.width)),
            *(Access(each, (*rows, self.keys)) for each in self.scores.operands),
            *(Access(each, (*rows, self.width)) for each in self.ending.operands),
        )
        return inputs, Access(self.y, (*rows, self.width))

    def _free_accesses(self, queries: Extent, keys: Extent) -> Accesses:
        """The rows of all matrices are one axis."""
        heads, shared = self.batch[1], self.heads_of_keys

        def rows(tensor: Tensor, extent: Extent, heads: int, columns: int) -> Access:
            flat = replace(tensor, strides=(*_row_and_head(tensor, 2), tensor.strides[3]))
            return Access(flat, (_all_rows(self.leading, extent, tensor), heads, columns))

        def masks(tensor: Tensor) -> Access:
            flat = replace(tensor, strides=_row_and_head(tensor, 3))
            return Access(flat, (_all_rows(self.leading, keys, tensor), heads))

        q, k = rows(self.q, queries, heads, self.depth), rows(self.k, keys, shared, self.depth)
        v, y = rows(self.v, keys, shared, self.width), rows(self.y, queries, heads, self.width)
        return (q, k, v, *map(masks, self.scores.operands)), y

    def peculiarities(self) -> Iterator[str]:
        """See `Problem.peculiarities`."""
        yield from ragged_words(self.depth, "elements a head")
        if self.width != self.depth:
            yield from ragged_words(self.width, "elements of a head's values")
        yield from few_words(self.queries, "queries a head")

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        if (self.free_queries is None) != (self.free_keys is None):
            yield "free_keys", "is there without free_queries, or is missing beside it"
        if self.sharing is not None and (self.sharing < 2 or self.batch[1] % self.sharing):
            yield "sharing", f"{self.sharing} heads of {self.batch[1]} cannot share keys"
        yield from self._contradicting_windows()
        if self.lengths is None:
            return
        if self.ending.operands:
            yield "epilogue.operands", "are there, though how many rows they have is free"
        queries, keys = self.lengths
        if (queries.value, keys.value) != (self.queries, self.keys):
            yield "queries", f"and keys are {self.queries} and {self.keys}, which no length decides"
        for name, tensor, rows in (
            *(("q", self.q, queries), ("k", self.k, keys)),
            *(("v", self.v, keys), ("y", self.y, queries)),
        ):
            if tensor.strides[0] not in (0, rows.value * tensor.strides[2]):
                yield f"{name}.strides", f"{tensor.strides}: matrices do not follow each other"
        for tensor in self.scores.operands:
            outer, _, row, column = tensor.strides
            if row or outer not in (0, keys.value * column):
                yield "scores.operands", f"{tensor.strides}: masks do not follow each other"

    def _contradicting_windows(self) -> Iterator[tuple[str, str]]:
        if self.windows is None:
            return
        if (reason := self.windows.why_not()) is not None:
            yield "windows", reason
            return
        images = self.batch[0].value if self.batch[0].free is None else self.batch[0].factor
        if images % self.windows.count or {self.queries, self.keys} != {self.windows.tokens}:
            yield "windows", f"have {self.windows.count} of {self.windows.tokens} tokens an image"
        if self.lengths is not None:
            yield "windows", "have tokens whose number is not free"
        for name, tensor in (
            *(("q", self.q), ("k", self.k), ("v", self.v), ("y", self.y)),
            *(("epilogue.operands", each) for each in self.ending.operands),
        ):
            if tensor.strides[0] != self.queries * tensor.strides[2]:
                yield f"{name}.strides", f"{tensor.strides}: windows do not follow each other"

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; a softmax without its division, which the result's elements can have."""
        softmax = ELEMENT_OPERATIONS[NormKind.SOFTMAX] - 1
        others = self.rows * self.keys * (softmax + flops(self.scores.expression))
        others += self.rows * self.width * flops(self.ending.expression)
        return Traffic(self.moved_bytes(), 2 * self.macs, others)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements // self.width * self.keys * (self.depth + self.width)

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        scores = self.scores
        yield FieldExpression("scores", scores.expression, len(scores.operands), follows=True)
        if self.epilogue is not None:
            yield FieldExpression.of_epilogue(self.epilogue)

    def _siblings(self) -> Iterator["Attention | None"]:
        if self.lengths is not None or self.windows is not None:
            return  # its own kernels are executed at several lengths, and windows part their image
        masks, of_result = self.scores.operands, self.ending.operands
        of_row = unit_of(2, self.q, self.y, *masks, *of_result)
        of_key = max(unit_of(2, self.k, self.v), unit_of(3, *masks))
        of_depth = unit_of(3, self.q, self.k, self.v, self.y, *of_result)
        same = self.depth == self.width
        depths = [n for n in ragged(self.depth, of_depth, LEAST) if n < self.depth]
        for least, depth in product(_ODD_QUERIES, (*depths[:1], self.depth)):
            for keys in ragged(self.keys, of_key, LEAST):
                rows, width = above(least, self.queries, of_row), depth if same else self.width
                yield self._resized(rows, keys, depth, width)

    def _resized(self, queries: int, keys: int, depth: int, width: int) -> "Attention | None":
        shared = self.sharing or 1
        old, new = (
            (self.batch[0].value, self.batch[1]),
            (BATCH, min(self.heads_of_keys, 3) * shared),
        )
        of_rows, of_keys = (self.queries, queries), (self.keys, keys)
        of_depth, of_width = (self.depth, depth), (self.width, width)

        def put(
            tensor: Tensor, rows: tuple[int, int], columns: tuple[int, int], sharing: int = 1
        ) -> Tensor | None:
            before, after = (
                (outer, heads // sharing, r, c)
                for (outer, heads), r, c in zip((old, new), rows, columns, strict=True)
            )
            return resized(tensor, before, after, spread=True)

        q, k = put(self.q, of_rows, of_depth), put(self.k, of_keys, of_depth, shared)
        v, y = put(self.v, of_keys, of_width, shared), put(self.y, of_rows, of_width)
        before, after = (*old, self.queries, self.keys), (*new, queries, keys)
        scores = resized_epilogue(self.scores, before, after)
        before, after = (*old, self.queries, self.width), (*new, queries, width)
        ending = resized_epilogue(self.ending, before, after)
        if q is None or k is None or v is None or y is None or scores is None or ending is None:
            return None
        epilogue = None if self.epilogue is None else ending
        batch = (odd_extent(self.batch[0], BATCH), new[1])
        sizes = replace(self, batch=batch, queries=queries, keys=keys, depth=depth, width=width)
        return replace(sizes, q=q, k=k, v=v, scores=scores, y=y, epilogue=epilogue)


def _windows_words(windows: Windows) -> str:
    """``windows of 7×7 in 56×56, rolled``."""
    rolled = ", rolled" if any(windows.shift) else ""
    across = " across" if windows.across else " in"
    sizes = f"{windows.rows}{TIMES}{windows.columns}{across} {windows.height}{TIMES}{windows.width}"
    return f"windows of {sizes}{rolled}"


def _row_and_head(tensor: Tensor, axis: int) -> tuple[int, int]:
    """Strides of rows, which lie along ``axis``, and of heads."""
    return tensor.strides[axis], tensor.strides[1]


def _all_rows(batch: Extent, rows: Extent, tensor: Tensor) -> Extent:
    """The rows of all matrices that a tensor has."""
    if tensor.strides[0] == 0:
        return rows
    return batch.of(rows)
