"""Recurrences: LSTM, GRU and RNN behind the product of their inputs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from wpk.dtypes import DType, Precision
from wpk.expression import Expression, flops
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.family import Family
from wpk.problems.odd_sizes import BATCH, all_of, odd_extent, ragged, unit_of
from wpk.problems.operand import Tensor
from wpk.problems.phrases import extent_words, sentence
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic
from wpk.problems.resized_layout import resized

_ODD_STEPS = 5
_LEAST = 17


class Cell(StrEnum):
    """What a step computes, with sums ``s`` of the inputs' products, ``h R^T`` and the bias.

    Gates stand one after the other, in ONNX's order, along the columns of p and the rows of R.
    """

    LSTM = "LSTM"  # i, o, f = f(s), g = g(s): c = f c + i g; h = o h(c), peepholes of c in i, o, f
    GRU = "GRU"  # z, r = f(s), n = g(s of r h, or r times h R^T): h = (1 - z) n + z h
    RNN = "RNN"  # h = f(s)


GATES = {Cell.LSTM: 4, Cell.GRU: 3, Cell.RNN: 1}
ACTIVATIONS = {Cell.LSTM: 3, Cell.GRU: 2, Cell.RNN: 1}
_OTHERS = {Cell.LSTM: 8, Cell.GRU: 6, Cell.RNN: 0}
"""Additions and multiplications of a unit besides products, sums of them, and activations."""


@dataclass(frozen=True)
class Recurrence(Problem):
    """``y[b, t] = h[t]`` of the sequence b, for t < steps; behind them the last h, and the last c.

    Operator inputs: ``p, r`` and those there are of ``bias, lengths, h0, c0, peepholes``. Output: ``y``.
    Domains: p (batch, steps, gates * hidden); r (gates * hidden, hidden); bias (2 * gates * hidden),
    ONNX's Wb and Rb; lengths (batch), int32; h0 and c0 (batch, hidden); peepholes (3 * hidden) of i, o and f;
    y (batch, steps + slots - 1, hidden). Sums are fp32, or what the activations are computed in. h may be rounded to
    what the precision multiplies.

    Attributes:
        reverse: Whether steps run from the last to the first.
        linear_before_reset: Of a GRU: whether r multiplies ``h R^T + rb`` instead of h.
        clip: Sums are kept between this and its negative; infinite where they are not.
        activations: Over the sum, in the order of the formulas of `Cell`.
        slots: 1; 2 where the last h stands behind the steps, 3 where the last c does, too.
        lengths: Steps of each sequence: behind them h and c stay, and y is 0.
    """

    cell: Cell
    precision: Precision
    batch: Extent
    steps: int
    hidden: int
    reverse: bool
    linear_before_reset: bool
    clip: float
    activations: tuple[Expression, ...]
    slots: int
    p: Tensor
    r: Tensor
    bias: Tensor | None
    lengths: Tensor | None
    h0: Tensor | None
    c0: Tensor | None
    peepholes: Tensor | None
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.batch

    @property
    def gates(self) -> int:
        """Sums of a unit at each step."""
        return GATES[self.cell]

    @property
    def rows(self) -> int:
        """Rows of R."""
        return self.gates * self.hidden

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all steps."""
        return self.batch.value * self.steps * self.rows * self.hidden

    @property
    def reduction(self) -> int:
        """Products of a sum."""
        return self.hidden

    carries_double = True
    family = Family.RECURRENCE

    @property
    def matrix_precision(self) -> Precision:
        """See `Problem.matrix_precision`."""
        return self.precision

    @property
    def pads_its_columns(self) -> bool:
        """See `Problem.pads_its_columns`: no kernel writes padding."""
        return self.y.padding == 0

    def words(self) -> str:
        """See `Problem.words`."""
        batch = "" if self.batch == Extent(1) else f" of batch {extent_words(self.batch)}"
        way = "backwards" if self.reverse else ""
        return sentence(f"{self.cell} {self.steps} steps{batch}, hidden {self.hidden}", way)

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {
            "batch": self.batch.value,
            "steps": self.steps,
            "hidden": self.hidden,
            "gates": self.gates,
        }

    def optional(self) -> tuple[tuple[str, Access], ...]:
        """The inputs behind r that there are, by field, in the operator's order."""
        domains: dict[str, Axes] = {
            "bias": (2 * self.rows,),
            "lengths": (self.batch,),
            "h0": (self.batch, self.hidden),
            "c0": (self.batch, self.hidden),
            "peepholes": (3 * self.hidden,),
        }
        given = ((name, getattr(self, name), domain) for name, domain in domains.items())
        return tuple((name, Access(tensor, domain)) for name, tensor, domain in given if tensor)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        inputs = (
            Access(self.p, (self.batch, self.steps, self.rows)),
            Access(self.r, (self.rows, self.hidden)),
            *(access for _, access in self.optional()),
        )
        return inputs, Access(self.y, (self.batch, self.steps + self.slots - 1, self.hidden))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; a sequence may be shorter than all steps."""
        steps = 1 if self.lengths is not None else self.steps
        own = self.gates + _OTHERS[self.cell] + sum(map(flops, self.activations))
        units = self.batch.value * self.hidden * steps
        return Traffic(self.moved_bytes(), 2 * units * self.gates * self.hidden, units * own)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.gates * self.hidden

    def table_size(self, operand: int) -> int:
        """See `Problem.table_size`: lengths are numbers of steps, of which there may be none."""
        names = [name for name, _ in self.optional()]
        return (
            self.steps + 1 if names[operand - 2 : operand - 1] == ["lengths"] and operand > 1 else 0
        )

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        for number, each in enumerate(self.activations):
            yield FieldExpression(f"activations[{number}]", each, 0, follows=True)

    def peculiarities(self) -> Iterator[str]:
        """See `Problem.peculiarities`."""
        if self.steps > 1:
            yield f"{self.steps} steps, each of which waits for the one before"

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        expected = ACTIVATIONS[self.cell]
        if len(self.activations) != expected:
            yield "activations", f"{len(self.activations)}; {self.cell} has {expected}"
        states = 3 if self.cell is Cell.LSTM else 2
        if self.slots > states:
            yield "slots", f"{self.slots}; {self.cell} has at most {states}"
        for name in ("c0", "peepholes"):
            if self.cell is not Cell.LSTM and getattr(self, name) is not None:
                yield name, f"given; {self.cell} has none"
        if (self.precision is Precision.FP64) != (self.numbers is DType.FP64):
            yield "precision", f"{self.precision} of what is computed in {self.numbers}"
        if self.linear_before_reset and self.cell is not Cell.GRU:
            yield "linear_before_reset", f"said of {self.cell}"

    def _siblings(self) -> Iterator["Recurrence | None"]:
        """Of ragged hidden sizes first; where blocks must share the units evenly, batch and steps alone are odd."""
        tensors = [access.tensor for _, access in self.optional()]
        unit = max(unit_of(1, self.r), unit_of(2, self.p, self.y))
        unit = max([unit, *(unit_of(len(t.strides) - 1, t) for t in tensors)])
        for hidden in (*ragged(self.hidden, unit, _LEAST), self.hidden):
            yield self._resized(odd_extent(self.batch, BATCH), hidden)

    def _resized(self, batch: Extent, hidden: int) -> "Recurrence | None":
        steps = min(self.steps, _ODD_STEPS)
        sizes = replace(self, batch=batch, steps=steps, hidden=hidden)
        names = [name for name, _ in self.optional()]
        after, y_after = [each.sizes for each in sizes.accesses()[0] if each], sizes.accesses()[1]
        before, y_before = [each for each in self.accesses()[0] if each], self.accesses()[1]
        pairs = zip((*before, y_before), (*after, y_after.sizes), strict=True)
        found = all_of([resized(old.tensor, old.sizes, new, spread=True) for old, new in pairs])
        if found is None:
            return None
        p, r, *rest, y = found
        given = dict(zip(names, rest, strict=True))
        return replace(
            sizes,
            p=p,
            r=r,
            bias=given.get("bias"),
            lengths=given.get("lengths"),
            h0=given.get("h0"),
            c0=given.get("c0"),
            peepholes=given.get("peepholes"),
            y=y,
        )
