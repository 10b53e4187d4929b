"""Means of channels, two products of that one row, and what they scale: squeeze and excitation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from wpk.dtypes import Precision
from wpk.expression import Expression, flops
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.odd_sizes import BATCH, odd_extent, ragged, resized_epilogue, unit_of
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import batch_words, sentence
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic
from wpk.problems.resized_layout import resized
from wpk.problems.signs import TIMES

RUN = 8
"""Elements that rows of the weights are multiples of; those beyond the row are zero."""


@dataclass(frozen=True)
class Squeeze(Problem):
    """Two products of one row of each image, between a mean over its pixels and a product with these.

    ``pooled[n, c] = means(mean over p of x[n, c, p])``
    ``middle[n, j] = hidden(sum over c of down[j, c] * pooled[n, c])``
    ``gate[n, k]   = gates(sum over j of up[k, j] * middle[n, j])``
    ``y[n, k, p]   = scaled(gate[n, k])`` for each of the ``places`` p

    Operator inputs: ``x, down, up, *hidden.operands, *gates.operands, *scaled.operands``. Output: ``y``.
    Domains: x (n, c, pixels); down (hidden_size, c) and up (k, hidden_size), rows up to a multiple of
    `RUN` elements; the operands of ``hidden`` (n, hidden_size), of ``gates`` (n, k), of ``scaled`` and y
    (n, k, places). Both weights are constants that lie in memory as their strides say. Sums are fp32, and
    nothing is rounded on the way but where an expression says so.

    Attributes:
        pixels: Elements whose mean is multiplied; 1 where x is the row itself.
        places: Elements that a gate is written to or scales: 1, or as many as pixels.
        means: Over the mean alone.
    """

    precision: Precision
    n: Extent
    c: int
    pixels: int
    hidden_size: int
    k: int
    places: int
    x: Tensor
    down: Tensor
    up: Tensor
    means: Expression
    hidden: Epilogue
    gates: Epilogue
    scaled: Epilogue
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n

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
    def weight_bytes(self) -> int:
        """Bytes of both weights."""
        elements = self.hidden_size * whole_runs(self.c) + self.k * whole_runs(self.hidden_size)
        return elements * self.down.dtype.bytes

    def words(self) -> str:
        """See `Problem.words`."""
        sizes = f"{self.c}→{self.hidden_size}→{self.k}"
        named = f"squeeze {sizes} of {self.pixels}" if self.pixels > 1 else f"products {sizes}"
        hidden, gates = epilogue_words(self.hidden), epilogue_words(self.gates)
        between = f"({hidden}) {gates}" if hidden else gates
        scales = "+scale" if self.places > 1 else ""
        return sentence(named, scales, between, batch_words(self.n))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {
            "n": self.n.value,
            "c": self.c,
            "pixels": self.pixels,
            "hidden": self.hidden_size,
            "k": self.k,
            "places": self.places,
        }

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        gates: Axes = (self.n, self.k)
        output = Access(self.y, (*gates, self.places))
        inputs = (
            Access(self.x, (self.n, self.c, self.pixels)),
            Access(self.down, (self.hidden_size, whole_runs(self.c))),
            Access(self.up, (self.k, whole_runs(self.hidden_size))),
            *(Access(each, (self.n, self.hidden_size)) for each in self.hidden.operands),
            *(Access(each, gates) for each in self.gates.operands),
            *(Access(each, output.axes) for each in self.scaled.operands),
        )
        return inputs, output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; what is scaled may be what was pooled, and is not counted again."""
        reads, output = self.accesses()
        scaled = len(self.scaled.operands)
        distinct = reads[: len(reads) - scaled] if self.pixels > 1 else reads
        weights = (self.hidden_size * self.c + self.k * self.hidden_size) * self.down.dtype.bytes
        moved = [each for place, each in enumerate(distinct) if place not in self.constant_inputs]
        n, outputs = self.n.value, prod(output.sizes)
        others = n * self.c * (self.pixels - 1 + flops(self.means))
        others += n * self.hidden_size * flops(self.hidden.expression)
        others += n * self.k * flops(self.gates.expression)
        others += outputs * flops(self.scaled.expression)
        total = sum(each.distinct_bytes for each in (*moved, output) if each is not None)
        products = 2 * n * self.hidden_size * (self.c + self.k)
        return Traffic(total + weights, products, others)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`; gates of one image are computed once for all of its places."""
        images = -(-elements // (self.k * self.places))
        row = self.c * self.pixels + self.hidden_size * (self.c + self.k)
        return images * row + elements

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression("means", self.means, 0, follows=True)
        for field in ("hidden", "gates", "scaled"):
            epilogue: Epilogue = getattr(self, field)
            operands = len(epilogue.operands)
            yield FieldExpression(field, epilogue.expression, operands, follows=True)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        if self.places > 1 and (self.places != self.pixels or self.k != self.c):
            yield (
                "places",
                f"{self.k} gates scale {self.places} places, {self.c} {TIMES} {self.pixels}",
            )
        for field, tensor, row in (
            ("down", self.down, self.c),
            ("up", self.up, self.hidden_size),
        ):
            if tensor.strides != (whole_runs(row), 1):
                yield f"{field}.strides", f"{tensor.strides}: rows have {whole_runs(row)} elements"
            if tensor.dtype is not self.precision.storage:
                yield (
                    f"{field}.dtype",
                    f"{tensor.dtype.value} in a product of {self.precision.value}",
                )

    def _siblings(self) -> Iterator["Squeeze | None"]:
        scales = self.places > 1
        unit = unit_of(1, self.x, self.y, *self.gates.operands, *self.scaled.operands)
        of_pixels = unit_of(2, self.x, self.y, *self.scaled.operands)
        for c in (*ragged(self.c, unit, 33), self.c):
            for hidden_size in (9, 17):
                for pixels in (35, 7 * of_pixels) if self.pixels > 1 else (1,):
                    k = c if scales or self.k == self.c else c + unit
                    yield self._resized(c, pixels, hidden_size, k)

    def _resized(self, c: int, pixels: int, hidden_size: int, k: int) -> "Squeeze | None":
        n, places = self.n.value, pixels if self.places > 1 else 1
        x = resized(self.x, (n, self.c, self.pixels), (BATCH, c, pixels), spread=True)
        of_y = (n, self.k, self.places), (BATCH, k, places)
        y, scaled = resized(self.y, *of_y, spread=True), resized_epilogue(self.scaled, *of_y)
        gates = resized_epilogue(self.gates, (n, self.k), (BATCH, k))
        hidden = resized_epilogue(self.hidden, (n, self.hidden_size), (BATCH, hidden_size))
        if x is None or y is None or scaled is None or gates is None or hidden is None:
            return None
        sizes = replace(self, n=odd_extent(self.n, BATCH), c=c, pixels=pixels, k=k, places=places)
        weights = replace(
            sizes,
            hidden_size=hidden_size,
            down=replace(self.down, strides=(whole_runs(c), 1)),
            up=replace(self.up, strides=(whole_runs(hidden_size), 1)),
        )
        return replace(weights, x=x, y=y, scaled=scaled, gates=gates, hidden=hidden)


def whole_runs(row: int) -> int:
    """Return the elements of a row with those that make it a multiple of `RUN`."""
    return -(-row // RUN) * RUN
