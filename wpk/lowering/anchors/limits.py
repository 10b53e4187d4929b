"""Limits of a convolution's input: a Max and a Min by one constant for each channel, in its body."""

from collections.abc import Sequence
from dataclasses import fields, replace

from wpk.expression import Apply, Expression, Operand, Round
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation, Symbol
from wpk.lowering.views import View
from wpk.problems import ClampedConvolution, Convolution


def input_and_limits(symbol: Symbol | None, context: Context) -> tuple[View, tuple[View, ...]]:
    """The tensor that a convolution reads, and its limits: none, lower ones, or lower and upper.

    Raises:
        RefusedError: It computes something else first.
    """
    view = symbol if isinstance(symbol, View) else None if symbol is None else symbol.as_view()
    if view is not None:
        return view, ()
    if not isinstance(symbol, Computation) or symbol.is_settled:
        raise RefusedError("the input is computed inside the same body")
    expression, limits = symbol.expression, list[View]()
    for operation in ("Min", "Max"):
        inner, constant = _split(_unrounded(expression), operation, symbol.operands, context)
        if constant is not None:
            limits.insert(0, constant)
            expression = inner
        elif operation == "Max":
            raise RefusedError("the input is computed inside the same body")
    inner = _unrounded(expression)
    if not isinstance(inner, Operand):
        raise RefusedError("the input is computed inside the same body")
    return symbol.operands[inner.index], tuple(limits)


def clamped(problem: Convolution, limits: Sequence[View]) -> Convolution:
    """Return the problem of a convolution with these limits (none: as it is)."""
    if not limits:
        return problem
    upper = limits[1].tensor() if limits[1:] else None
    values = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return ClampedConvolution(**values, lower=limits[0].tensor(), upper=upper)


def _unrounded(expression: Expression) -> Expression:
    """Remove a rounding behind limits: they are numbers of the input's type, so it changes nothing."""
    while isinstance(expression, Round):
        expression = expression.argument
    return expression


def _split(
    expression: Expression, operation: str, operands: Sequence[View], context: Context
) -> tuple[Expression, View | None]:
    """Return what is limited and the constant limit; None where ``expression`` is no such operation."""
    match expression:
        case Apply(name, (first, Operand(index))) if name == operation:
            limit = operands[index]
            steps = zip(limit.shape, limit.strides, strict=True)
            by_channel = all(s == 0 or n == 1 for i, (n, s) in enumerate(steps) if i != 1)
            if limit.source in context.constants and by_channel:
                strides = tuple(s if i == 1 else 0 for i, s in enumerate(limit.strides))
                return first, replace(limit, strides=strides)
    return expression, None
