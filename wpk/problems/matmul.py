"""Matrix product with batch and broadcasting, with its epilogue."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from wpk.dtypes import DType, Precision
from wpk.expression import flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.odd_sizes import (
    BATCH,
    LEAST,
    ROWS,
    above,
    odd_extent,
    ragged,
    resized_epilogue,
    unit_of,
)
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.peculiar import FEW, few_words, ragged_words
from wpk.problems.phrases import extent_words, sentence, times_words
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic, no_bytes
from wpk.problems.resized_layout import resized
from wpk.problems.signs import TIMES

FEW_ROWS = 16
"""Rows of products that take as long as their matrix takes to come, at most. A tensor core's tile has as many: of more rows,
tiles waste nothing and read ``b`` as seldom."""

_THIN_ELEMENTS = 2**17
"""Of a matrix that a block may hold all of; its kernels may have many rows in a block, and persistent blocks several tiles."""

_SOME_ROWS, _MANY_ROWS = 331, 67841
"""Of siblings for these: more than five warpgroups of 64 rows have; and more than two tiles of each of 132 blocks of four, or
of 528 of one."""


@dataclass(frozen=True)
class Matmul(Problem):
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

    carries_double = True
    family = Family.MATRIX_PRODUCT

    @property
    def matrix_precision(self) -> Precision:
        """See `Problem.matrix_precision`."""
        return self.precision

    @property
    def constant_shape(self) -> tuple[int, ...] | None:
        """See `Problem.constant_shape`."""
        return (self.k, self.n) if self.b_constant else None

    @property
    def pads_its_columns(self) -> bool:
        """See `Problem.pads_its_columns`."""
        return self.y.pads(-1)

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = f"{extent_words(self.m)}{TIMES}{self.k} · {self.k}{TIMES}{self.n}"
        return sentence(f"matmul {times_words(*self.batch)}{sizes}", epilogue_words(self.epilogue))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        batch = self.batch[0].value * self.batch[1]
        return {"batch": batch, "m": self.m.value, "n": self.n, "k": self.k}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        output = Access(self.y, (*self.batch, self.m, self.n))
        a = Access(self.a, (*self.batch, self.m, self.k))
        b = None if self.b_constant else Access(self.b, (*self.batch, self.k, self.n))
        return (a, b, *(Access(each, output.axes) for each in self.epilogue.operands)), output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        constant = self.k * self.n * self.b.dtype.bytes if self.b_constant else 0
        elements = prod(self.accesses()[1].sizes)
        others = elements * flops(self.epilogue.expression)
        return Traffic(self.moved_bytes() + constant, 2 * self.macs, others, streamed=constant)

    def peculiarities(self) -> Iterator[str]:
        """See `Problem.peculiarities`."""
        products, rows = self.batch[0].value * self.batch[1], self.m.value
        if products > 1 and rows <= FEW:
            yield f"{products} products of {rows} rows each"
        else:
            yield from few_words(rows, "rows")
        yield from few_words(self.n, "columns")
        yield from ragged_words(self.k, "elements a row")

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.reduction

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from no_bytes(self.precision, a=self.a, b=self.b)
        if (self.precision is Precision.FP64) != (self.numbers is DType.FP64):
            yield "epilogue", f"computed in {self.numbers}, behind a product of {self.precision}"

    def _siblings(self) -> Iterator["Matmul | None"]:
        y_like = (self.y, *self.epilogue.operands)
        strided_b = () if self.b_constant else (self.b,)
        of_m, of_n = unit_of(2, self.a, *y_like), unit_of(3, *strided_b, *y_like)
        of_k = max(unit_of(3, self.a), unit_of(2, *strided_b))
        outer, heads = self.batch
        single = outer.value == heads == 1 and outer.free is None
        batch = (1, 1) if single else (BATCH, min(heads, 3))
        most, few = ROWS
        for least, least_n in ((most, most), (few, few), (few, most), (1, most)):
            rows, n = self._odd_rows(least, of_m), above(least_n, self.n, of_n)
            for k in ragged(self.k, of_k, LEAST):
                yield self._resized(batch, rows, n, k)
        if single and self.b_constant and self.k * self.n <= _THIN_ELEMENTS:
            near = ragged(self.n, of_n)[-2:][0]  # of nearly as many columns there are as many steps
            many = (_MANY_ROWS,) if self.m.value > _MANY_ROWS else ()
            images = BATCH if self._has_factor else 1
            for rows in (each // images for each in (_SOME_ROWS, *many)):
                for k in ragged(self.k, of_k, LEAST):
                    yield self._resized(batch, self._odd_rows(rows, of_m), near, k)

    @property
    def _has_factor(self) -> bool:
        """Whether rows are those of a free number of images or sequences."""
        return self.m.free is not None and self.m.factor > 1

    def _odd_rows(self, least: int, unit: int) -> int:
        """The like of the rows, ragged; where they are those of several images, of three."""
        rows = above(least, self.m.value, unit)
        return BATCH * (rows | 1) if self._has_factor else rows

    def _resized(self, batch: tuple[int, int], m: int, n: int, k: int) -> "Matmul | None":
        outer = (self.batch[0].value, self.batch[1])
        of_y = (*outer, self.m.value, self.n), (*batch, m, n)
        a = resized(self.a, (*outer, self.m.value, self.k), (*batch, m, k), spread=True)
        before, after = (*outer, self.k, self.n), (*batch, k, n)
        b: Tensor | None = replace(self.b, strides=(0, 0, n, 1))
        if not self.b_constant:
            b = resized(self.b, before, after, spread=True)
        y, epilogue = resized(self.y, *of_y, spread=True), resized_epilogue(self.epilogue, *of_y)
        if a is None or b is None or y is None or epilogue is None:
            return None
        extents = odd_extent(self.batch[0], batch[0]), batch[1]
        rows = odd_extent(self.m, m)
        return replace(self, batch=extents, m=rows, n=n, k=k, a=a, b=b, y=y, epilogue=epilogue)
