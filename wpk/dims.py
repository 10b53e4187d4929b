"""Dimension expressions: sizes that are known, or that a free dimension decides when an engine runs.

The operations are TensorRT's nine dimension operations, so that a launch description can be handed
to a TensorRT plugin as it is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import add, eq, floordiv, lt, mul, sub

from wpk.errors import EngineError

MAX_NODES = 256
"""Operations of an expression that is read: those of templates and buffers have less than ten."""

_LIMIT = 2**63
"""Sizes and what they are computed from fit into 64 bits."""


class DimOperation(StrEnum):
    """TensorRT's ``DimensionOperation``, by its names."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    SUB = "sub"
    MIN = "min"
    CEIL_DIV = "ceil_div"
    FLOOR_DIV = "floor_div"
    EQUAL = "equal"
    LESS = "less"


@dataclass(frozen=True)
class DimNode:
    """``operation(left, right)`` over dimension expressions."""

    operation: DimOperation
    left: "DimExpr"
    right: "DimExpr"


DimExpr = int | str | DimNode
"""An int, the name of a free dimension, or an operation on two expressions."""


def evaluate(expression: DimExpr, dims: Mapping[str, int]) -> int:
    """The value of an expression under an assignment of the free dimensions.

    Raises:
        EngineError: A free dimension has no value in ``dims``, something is divided by zero, or a
            number does not fit into 64 bits.
    """
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        if expression not in dims:
            raise EngineError(
                f"free dimension {expression!r} has no value; known: {sorted(dims)}",
                fix="give inputs whose shapes decide it, or fix it with --shapes",
            )
        return dims[expression]
    left, right = evaluate(expression.left, dims), evaluate(expression.right, dims)
    divides = expression.operation in (DimOperation.CEIL_DIV, DimOperation.FLOOR_DIV)
    result = None if divides and right == 0 else int(_MEANINGS[expression.operation](left, right))
    if result is None or not -_LIMIT <= result < _LIMIT:
        raise EngineError(
            f"a size is {expression.operation}({left}, {right}), which "
            + ("divides by zero" if result is None else "64 bits do not hold"),
            fix="give smaller arrays; if they are not large, this is a bug in the launch's sizes",
        )
    return result


_MEANINGS: dict[DimOperation, Callable[[int, int], int]] = {
    DimOperation.SUM: add,
    DimOperation.PROD: mul,
    DimOperation.MAX: max,
    DimOperation.SUB: sub,
    DimOperation.MIN: min,
    DimOperation.CEIL_DIV: lambda a, b: -(-a // b),
    DimOperation.FLOOR_DIV: floordiv,
    DimOperation.EQUAL: eq,
    DimOperation.LESS: lt,
}


def product(a: DimExpr, b: DimExpr) -> DimExpr:
    """``a * b``, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1:
        return b
    if b == 1:
        return a
    return DimNode(DimOperation.PROD, a, b)


def ceil_div(a: DimExpr, b: int) -> DimExpr:
    """``ceil(a / b)``, folded where ``a`` is known."""
    if b == 1:
        return a
    return -(-a // b) if isinstance(a, int) else DimNode(DimOperation.CEIL_DIV, a, b)


def minimum(a: DimExpr, b: DimExpr) -> DimExpr:
    """The smaller one, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return DimNode(DimOperation.MIN, a, b)


def names_of(expression: DimExpr) -> Iterator[str]:
    """Yield the free dimensions in an expression, from left to right."""
    if isinstance(expression, DimNode):
        yield from names_of(expression.left)
        yield from names_of(expression.right)
    elif isinstance(expression, str):
        yield expression


def renamed(expression: DimExpr, names: Mapping[str, str]) -> DimExpr:
    """Return an expression with other names in place of those that are listed."""
    if isinstance(expression, DimNode):
        left, right = renamed(expression.left, names), renamed(expression.right, names)
        return DimNode(expression.operation, left, right)
    return names.get(expression, expression) if isinstance(expression, str) else expression


def to_json(expression: DimExpr) -> object:
    """Plain JSON: an int, a string, or ``[operation, left, right]``."""
    if isinstance(expression, DimNode):
        return [expression.operation.value, to_json(expression.left), to_json(expression.right)]
    return expression


def from_json(data: object) -> DimExpr:
    """Inverse of `to_json`.

    Raises:
        ValueError: ``data`` is no dimension expression, or has more than `MAX_NODES` operations.
    """
    expression, nodes = _read(data, 0)
    if nodes > MAX_NODES:
        raise ValueError(f"an expression of more than {MAX_NODES} operations")
    return expression


def _read(data: object, nodes: int) -> tuple[DimExpr, int]:
    """The expression, and the number of operations so far; beyond the limit nothing is read."""
    if isinstance(data, bool) or not isinstance(data, int | str | list):
        raise ValueError(f"expected an int, a name or [operation, left, right], got {_short(data)}")
    if isinstance(data, int) and not -_LIMIT <= data < _LIMIT:
        raise ValueError("expected an integer of 64 bits")
    if not isinstance(data, list):
        return data, nodes
    if nodes > MAX_NODES:
        return 0, nodes
    if len(data) != 3:
        raise ValueError(f"expected [operation, left, right], got {_short(data)}")
    left, nodes = _read(data[1], nodes + 1)
    right, nodes = _read(data[2], nodes)
    return DimNode(DimOperation(data[0]), left, right), nodes


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:60]}…"
