"""Two products of the same rows, one behind the other: the feed-forward block of transformers and of ConvNeXt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isnan

from wpk.dtypes import Precision
from wpk.expression import flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.matmul import Matmul
from wpk.problems.normalisation import ELEMENT_OPERATIONS, NormKind
from wpk.problems.normed_matmul import NORMED_WORDS, NormedMatmul, norm_contradictions
from wpk.problems.odd_sizes import odd_extent, ragged, resized_epilogue, unit_of
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import extent_words, sentence
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic
from wpk.problems.resized_layout import resized
from wpk.problems.signs import TIMES
from wpk.problems.squeeze import RUN, whole_runs

_SUMMED = (0, 1)  # strides of sums: one for each column
_ODD_ROWS, _ODD_HIDDEN = (131, 65), (88, 40)
_MANY_ROWS = 25411
"""Of siblings whose persistent blocks have several tiles: more than 132 tiles of 192 rows."""


@dataclass(frozen=True)
class RowNorm:
    """How rows are normalised in front of a product, as `NormedMatmul` has it.

    Attributes:
        kind: A layer norm or an RMS norm.
        epsilon: Added to the mean square.
        sums: Of each column of the product's matrix as it lies in memory, fp32, over (m, columns); None of an RMS
            norm.
    """

    kind: NormKind
    epsilon: float
    sums: Tensor | None


@dataclass(frozen=True)
class FeedForward(Problem):
    """Two products, between which the hidden rows lie nowhere in memory.

    ``middle[m, j] = hidden(sum over i of norm(x)[m, i] * up[j, i])``, rounded to the type of the weights
    ``y[m, k]      = epilogue(sum over j of middle[m, j] * down[j, k])``

    Operator inputs: ``x, up, down, *hidden.operands``, of a layer norm ``sums``, ``*epilogue.operands``. Output: ``y``.
    Domains: x (m, k); up (hidden_size, k) and down (hidden_size, n), rows up to a multiple of `wpk.problems.RUN`
    elements; the operands of ``hidden`` and ``sums`` (m, hidden_size); the operands of ``epilogue`` and y (m, n). Both
    weights are constants that lie in memory as their strides say. Factors have 16 bits, sums are fp32.

    Attributes:
        norm: Of the rows of ``x``; None where they are multiplied as they are.
    """

    precision: Precision
    m: Extent
    k: int
    hidden_size: int
    n: int
    x: Tensor
    up: Tensor
    down: Tensor
    norm: RowNorm | None
    hidden: Epilogue
    epilogue: Epilogue
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.m

    family = Family.MATRIX_PRODUCT

    constant_inputs = (1, 2)

    @property
    def matrix_precision(self) -> Precision:
        """See `Problem.matrix_precision`."""
        return self.precision

    @property
    def pads_its_columns(self) -> bool:
        """See `Problem.pads_its_columns`."""
        return self.y.pads(1)

    @property
    def first(self) -> Matmul:
        """The product that makes hidden rows, as an operator of its own would be."""
        plain = self._product(self.x, self.k, self.hidden_size, self.hidden, self._middle)
        if self.norm is None:
            return plain
        return NormedMatmul(
            **vars(plain),
            kind=self.norm.kind,
            epsilon=self.norm.epsilon,
            sums=None if self.norm.sums is None else _of_one_matrix(self.norm.sums),
        )

    @property
    def second(self) -> Matmul:
        """The product of the hidden rows, as an operator of its own would be."""
        return self._product(self._middle, self.hidden_size, self.n, self.epilogue, self.y)

    @property
    def _middle(self) -> Tensor:
        """The hidden rows as they would lie in memory, over (m, hidden_size)."""
        row = whole_runs(self.hidden_size)
        return Tensor(self.precision.storage, (row, 1), row - self.hidden_size)

    def _product(self, a: Tensor, k: int, n: int, epilogue: Epilogue, y: Tensor) -> Matmul:
        operands = tuple(map(_of_one_matrix, epilogue.operands))
        return Matmul(
            precision=self.precision,
            batch=(Extent(1), 1),
            m=self.m,
            n=n,
            k=k,
            a=_of_one_matrix(a),
            b=Tensor(self.precision.storage, (0, 0, n, 1)),
            b_constant=True,
            y=_of_one_matrix(y),
            epilogue=replace(epilogue, operands=operands),
        )

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = f"{extent_words(self.m)}{TIMES}{self.k}→{self.hidden_size}→{self.n}"
        behind = epilogue_words(self.epilogue)
        normed = "" if self.norm is None else NORMED_WORDS[self.norm.kind]
        hidden = epilogue_words(self.hidden)
        between = f"({hidden}) {behind}" if hidden else behind
        return sentence(f"feed-forward {sizes}", between, normed)

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {"m": self.m.value, "k": self.k, "hidden": self.hidden_size, "n": self.n}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        output = Access(self.y, (self.m, self.n))
        middle = self.m, self.hidden_size
        sums = () if self.norm is None or self.norm.sums is None else (self.norm.sums,)
        inputs = (
            Access(self.x, (self.m, self.k)),
            Access(self.up, (self.hidden_size, whole_runs(self.k))),
            Access(self.down, (self.hidden_size, whole_runs(self.n))),
            *(Access(each, middle) for each in (*self.hidden.operands, *sums)),
            *(Access(each, output.axes) for each in self.epilogue.operands),
        )
        return inputs, output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; an operand of the epilogue may be x, and is not counted again where it lies so."""
        reads, output = self.accesses()
        x, _, _, *others_read = reads
        moved = [x, *(each for each in others_read if each != x)]
        weights = self.hidden_size * (self.k + self.n) * self.up.dtype.bytes
        total = sum(each.distinct_bytes for each in (*moved, output) if each is not None)
        rows = self.m.value
        others = rows * self.hidden_size * flops(self.hidden.expression)
        others += rows * self.n * flops(self.epilogue.expression)
        if self.norm is not None:
            others += rows * self.k * (ELEMENT_OPERATIONS[self.norm.kind] - 1)
        products = 2 * rows * self.hidden_size * (self.k + self.n)
        return Traffic(total + weights, products, others, streamed=weights)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`; a hidden row is computed once for all of a row's columns."""
        rows = -(-elements // self.n)
        return rows * self.hidden_size * self.k + elements * self.hidden_size

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        operands = len(self.hidden.operands)
        yield FieldExpression("hidden", self.hidden.expression, operands, follows=True)
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        storage = self.precision.storage
        if storage.bytes != 2:
            yield "precision", f"{self.precision.value}; hidden rows that are kept have 16 bits"
        for field, tensor, row in (("up", self.up, self.k), ("down", self.down, self.n)):
            if tensor.strides != (whole_runs(row), 1):
                yield f"{field}.strides", f"{tensor.strides}: rows have {whole_runs(row)} elements"
        for field, tensor in (("x", self.x), ("up", self.up), ("down", self.down)):
            if tensor.dtype is not storage:
                yield f"{field}.dtype", f"{tensor.dtype.value} in a product of {storage.value}"
        for operand in self.hidden.operands:
            if operand.strides[0] != 0:
                yield "hidden", "an operand that differs from row to row"
        if self.norm is None:
            return
        for field, words in norm_contradictions(self.norm.kind, self.norm.sums, _SUMMED):
            yield f"norm.{field}", words
        if isnan(self.norm.epsilon):
            yield "norm.epsilon", "is not a number"

    def _siblings(self) -> Iterator["FeedForward | None"]:
        of_n = unit_of(1, self.y, *self.epilogue.operands)
        many = (_MANY_ROWS,) if self.m.value > _MANY_ROWS else ()
        # Of nearly as many hidden columns there are as many steps, so that weights stay that do.
        hidden = (*_ODD_HIDDEN, ragged(self.hidden_size, RUN)[-2])
        widths = ragged(self.k, unit_of(1, self.x), 33)
        for rows in (*_ODD_ROWS, *many):
            for k in widths:
                for n in (k, *ragged(self.n, of_n, 33)):
                    for hidden_size in hidden:
                        yield self._resized(rows, k, hidden_size, n)

    def _resized(self, rows: int, k: int, hidden_size: int, n: int) -> "FeedForward | None":
        m = odd_extent(self.m, rows)
        before, after = (self.m.value, self.n), (m.value, n)
        x = resized(self.x, (self.m.value, self.k), (m.value, k), spread=True)
        y = resized(self.y, before, after, spread=True)
        epilogue = resized_epilogue(self.epilogue, before, after)
        middle = (self.m.value, self.hidden_size), (m.value, hidden_size)
        hidden = resized_epilogue(self.hidden, *middle)
        if x is None or y is None or epilogue is None or hidden is None:
            return None
        sizes = replace(self, m=m, k=k, hidden_size=hidden_size, n=n)
        weights = replace(
            sizes,
            up=replace(self.up, strides=(whole_runs(k), 1)),
            down=replace(self.down, strides=(whole_runs(n), 1)),
        )
        return replace(weights, x=x, y=y, epilogue=epilogue, hidden=hidden)


def _of_one_matrix(tensor: Tensor) -> Tensor:
    """A tensor over rows and columns, as a `Matmul` without batch has it."""
    return replace(tensor, strides=(0, 0, *tensor.strides))
