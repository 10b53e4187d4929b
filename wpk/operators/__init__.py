"""The table of ONNX operators: what wpk knows of one stands in its row, and rooms read columns."""

from collections.abc import Callable, Sequence

from wpk.expression import Expression
from wpk.operators import anchors, arithmetic, functions, movement
from wpk.operators.arithmetic import cast
from wpk.operators.formulas import CHOOSES, SPECIAL_ROUNDINGS
from wpk.operators.row import (
    Attributes,
    ErrorRule,
    Integers,
    Magnitude,
    OperatorKind,
    OwnError,
    Rewrite,
    Roundoff,
    Row,
)

EXACT_IN_FP32 = 2**24
"""fp32 holds every integer up to here."""

OPERATORS: dict[str, Row] = {
    row.name: row for room in (arithmetic, functions, anchors, movement) for row in room.ROWS
}
"""All rows by name. An operator of ONNX without a row is one that wpk knows nothing of."""


def names(column: Callable[[Row], object]) -> tuple[str, ...]:
    """The operators for which a question about their row is answered with yes."""
    return tuple(name for name, row in OPERATORS.items() if column(row))


def of_kind(*kinds: OperatorKind) -> tuple[str, ...]:
    """The operators of some kinds."""
    return names(lambda row: row.kind in kinds)


ELEMENTWISE = frozenset(of_kind(OperatorKind.ELEMENTWISE))
"""The operators that compute each element from the operands' elements at the same place."""


def has_formula(name: str) -> bool:
    """Whether `express` knows an operator."""
    row = OPERATORS.get(name)
    return row is not None and row.formula is not None


def express(name: str, inputs: Sequence[Expression], attributes: Attributes) -> Expression:
    """The expression of one ONNX node over the expressions of its inputs.

    Raises:
        KeyError: The operator has no formula, see `has_formula`.
    """
    formula = OPERATORS[name].formula
    if formula is None:
        raise KeyError(name)
    return formula(inputs, attributes)
