"""One expression over a whole domain; copies, transposes, slices and casts are its simplest forms."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from wpk.expression import Apply, Expression, In, Operand, Quantised, Round, flops, leaves
from wpk.extent import Extent
from wpk.problems.access import Access, Axes
from wpk.problems.expression_words import formula
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import by
from wpk.problems.problem import (
    Accesses,
    FieldExpression,
    Problem,
    Traffic,
    counted_axes,
    does_not_lead,
)


@dataclass(frozen=True)
class Elementwise(Problem):
    """``y[d...] = expression(inputs[d...])`` with every tensor's own strides.

    Operator inputs: ``*inputs``. Output: ``y``. Domain: ``shape``, one to five axes, ``shape[0]`` is
    the leading extent. A transpose, an expand, a slice or one part of a concatenation is
    ``Operand(0)`` with suitable strides. Integers are computed as the expression says (`In`);
    a plain copy moves them exactly.
    """

    leading: Extent
    shape: tuple[int, ...]
    expression: Expression
    inputs: tuple[Tensor, ...]
    y: Tensor

    carries_double = True

    @property
    def family(self) -> Family:
        """See `Problem.family`."""
        moves = isinstance(self.expression, Operand)
        return Family.MOVEMENT if moves else Family.ELEMENT_WISE

    def words(self) -> str:
        """See `Problem.words`."""
        return f"{self._formula()} {by(self.shape)}"

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        shape = (self.leading.value, *self.shape[1:])
        return {"inputs": len(self.inputs)} | counted_axes("axis", shape, 5)

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        domain: Axes = (self.leading, *self.shape[1:])
        return tuple(Access(each, domain) for each in self.inputs), Access(self.y, domain)

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        elements = prod(self.accesses()[1].sizes)
        return Traffic(self.moved_bytes(), 0, elements * flops(self.expression))

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * sum(1 for _ in leaves(self.expression))

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression("expression", self.expression, len(self.inputs), follows=False)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from does_not_lead("shape", self.shape, self.leading)

    def divisors(self) -> Iterator[int]:
        """See `Problem.divisors`."""
        yield from _divisors(self.expression)

    def _formula(self) -> str:
        """The expression, or what a copy is for."""
        if not isinstance(self.expression, Operand):
            return formula(self.expression)
        source = self.inputs[self.expression.index]
        if source.dtype is not self.y.dtype:
            return f"cast {source.dtype}→{self.y.dtype}"
        if any(a == 0 and size > 1 for a, size in zip(source.strides, self.shape, strict=True)):
            return "expand"
        order = [_order(strides, self.shape) for strides in (source.strides, self.y.strides)]
        return "copy" if order[0] == order[1] else "transpose"


def _order(strides: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Axes longer than one, outermost in memory first."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    return sorted(axes, key=lambda axis: -strides[axis])


def _divisors(expression: Expression) -> Iterator[int]:
    match expression:
        case Apply(operation, arguments):
            if operation in ("Div", "Mod", "FloorMod"):
                own = leaves(arguments[1])
                yield from (leaf.index for leaf in own if isinstance(leaf, Operand))
            for argument in arguments:
                yield from _divisors(argument)
        case Round(_, argument) | In(_, argument) | Quantised(_, argument):
            yield from _divisors(argument)
