"""What the rows of element-wise operators are written with."""

from collections.abc import Sequence
from functools import reduce

from wpk.expression import Expression, apply
from wpk.operators.row import Attributes, Formula, OwnError, Rewrite

SPECIAL_ROUNDINGS = 8.0
"""expf, logf, tanhf, erff and powf err by 4 ulp at most (CUDA C++ guide, mathematical functions)."""

CHOOSES = OwnError()
"""It gives one of its operands, or a number that every type holds."""
SINGLE = OwnError(result=1.0)
"""One operation that is rounded once."""
SPECIAL = OwnError(result=SPECIAL_ROUNDINGS)
GATED = OwnError(result=SPECIAL_ROUNDINGS, argument=SPECIAL_ROUNDINGS)
"""x times a bounded function that is computed with cancellation."""
SATURATING = OwnError(result=SPECIAL_ROUNDINGS, one=SPECIAL_ROUNDINGS)
"""A function with a term of 1 that may cancel."""

ANY_ACTIVATION = Rewrite.ACTIVATION | Rewrite.BEFORE_VIEWS | Rewrite.BEFORE_TRANSPOSE


def direct(operation: str) -> Formula:
    """One operation of the expressions on the operands."""
    return lambda inputs, _: apply(operation, *inputs)


def swapped(operation: str) -> Formula:
    """One operation on two operands, the second one first."""
    return lambda inputs, _: apply(operation, inputs[1], inputs[0])


def fold(operation: str) -> Formula:
    """One operation between each two of all operands, from the first to the last."""
    return lambda inputs, _: reduce(lambda a, b: apply(operation, a, b), inputs)


def first(inputs: Sequence[Expression], _: Attributes) -> Expression:
    """The first operand as it is."""
    return inputs[0]
