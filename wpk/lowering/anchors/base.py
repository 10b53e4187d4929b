"""What every kind of anchor provides to lowering."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, In, Operand, Round, apply, substitute
from wpk.extent import Extent
from wpk.lowering.context import Context
from wpk.lowering.numbers import whole
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation, Symbol, of_view
from wpk.lowering.views import View
from wpk.problems import Epilogue, Problem


@dataclass(frozen=True)
class LoweredProblem:
    """A problem with the views that its operator reads, in the problem's order."""

    problem: Problem
    inputs: tuple[View, ...]


Inputs = Sequence[Symbol | None]
"""What a node's inputs stand for; None where an optional one is missing."""

AnchorShape = tuple[tuple[int, ...], Extent]
"""Shape and leading extent of an anchor's output."""


class AnchorRule(abc.ABC):
    """Lowering of one kind of anchor."""

    @abc.abstractmethod
    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """Return the shape and leading extent of the anchor's output.

        Raises:
            RefusedError: The node uses something that wpk does not carry.
        """

    @abc.abstractmethod
    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """Return the problem of an anchor and its epilogue.

        Args:
            anchor: The anchor, of this kind.
            result: What the body computes: a computation with this anchor.
            y: The output's memory, seen with the shape of the anchor's output.
            context: Precision and constants.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """


def only_view(symbol: Symbol | None, what: str) -> View:
    """Return the view that a symbol reads.

    Raises:
        RefusedError: It computes something first.
    """
    if isinstance(symbol, View):
        return symbol
    view = None if symbol is None else symbol.as_view()
    if view is None:
        raise RefusedError(f"{what} is computed inside the same body")
    return view


def computation(symbol: Symbol | None, what: str) -> Computation:
    """Return what a symbol computes, if only that it reads a view.

    Raises:
        RefusedError: It is missing.
    """
    if symbol is None:
        raise RefusedError(f"{what} without input")
    return of_view(symbol) if isinstance(symbol, View) else symbol


def integers(symbol: Symbol | None, context: Context, what: str) -> list[int] | None:
    """Return the integers of a constant parameter; None where it is missing.

    Raises:
        RefusedError: It is not constant.
    """
    values = None if symbol is None else constant_values(symbol, context, what)
    return None if values is None else [int(v) for v in values.reshape(-1)]


def constant_values(symbol: Symbol, context: Context, what: str) -> NDArray[Any]:
    """Return the values of a constant parameter.

    Raises:
        RefusedError: It is not constant.
    """
    values = context.values(symbol) if isinstance(symbol, View) else None
    if values is None:
        raise RefusedError(f"{what} must be constant")
    return values


def epilogue_of(result: Computation, y: View, views: Sequence[View]) -> Epilogue:
    """Return the epilogue over operand views that already have the domain of ``y``."""
    return Epilogue(stored(whole(result), y.dtype), tuple(view.tensor() for view in views))


def stored(expression: Expression, dtype: DType) -> Expression:
    """Return the expression without a last rounding to the type to which the store rounds anyway.

    What is read in fp64, or in another type for it, and only rounded so is a copy that converts.
    """
    match expression:
        case Round(last, argument) if last is dtype:
            return stored(argument, dtype)
        case In(DType.FP64, argument):
            inner = stored(argument, dtype)
            return inner if isinstance(inner, Operand) else In(DType.FP64, inner)
    return expression


def with_bias(result: Computation, bias: View, shape: tuple[int, ...]) -> Computation:
    """The result with ``bias`` (broadcastable to the anchor's output) added to its accumulator."""
    leading = result.anchor.leading if result.anchor else result.leading
    added = apply("Add", Acc(), Operand(len(result.operands)))
    operands = (*result.operands, bias.broadcast(shape, leading))
    return replace(on_accumulator(result, added), operands=operands)


def on_accumulator(result: Computation, expression: Expression) -> Computation:
    """Return the result with an expression over the accumulator in the accumulator's place."""
    whole = substitute(result.expression, lambda x: expression if isinstance(x, Acc) else x)
    return replace(result, expression=whole)
