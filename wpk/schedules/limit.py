"""Limits of schedules: one expression that filters a space, refuses in words, and is asserted in C++.

A limit is Python over the parameters of a schedule: integers, ``+ - * // % &``, comparisons (``a <= b <= c``
and ``a in (8, 16)``, too), ``and``, ``or``, ``min``, ``max`` and ``ceil_div``.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wpk.errors import ScheduleError

Figures = Mapping[str, NDArray[Any]]
"""Parameters of schedules, and what models count of them: one entry a schedule each."""

_Forms = Mapping[Any, Callable[..., Any]]
"""What each part of an expression becomes, of what its operands became."""

_ARRAYS: _Forms = {
    int: int,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: lambda *parts: reduce(np.logical_and, parts),
    ast.Or: lambda *parts: reduce(np.logical_or, parts),
    "min": np.minimum,
    "max": np.maximum,
    "ceil_div": lambda a, b: -(-a // b),
}

_Program = Callable[[Figures], Any]
"""What an expression is, of columns."""


def _of_columns(form: Callable[..., Any]) -> Callable[..., _Program]:
    def program(*parts: _Program) -> _Program:
        if len(parts) == 1:  # a chain of one
            return parts[0]
        if len(parts) == 2:
            a, b = parts
            return lambda columns: form(a(columns), b(columns))
        return lambda columns: form(*[part(columns) for part in parts])

    return program


_PROGRAMS: _Forms = {
    **{part: _of_columns(form) for part, form in _ARRAYS.items()},
    int: lambda number: lambda columns: number,
}


class _Cpp(NamedTuple):
    """An expression in C++, and how tightly its operator binds."""

    text: str
    binds: int = 9

    def under(self, binds: int) -> str:
        """Return the text, in parentheses where an operator outside would bind tighter."""
        return self.text if self.binds >= binds else f"({self.text})"


def _infix(symbol: str, binds: int, operands: int) -> Callable[[_Cpp, _Cpp], _Cpp]:
    return lambda a, b: _Cpp(f"{a.under(operands)} {symbol} {b.under(operands + 1)}", binds)


def _chain(symbol: str) -> Callable[..., _Cpp]:
    def chained(*parts: _Cpp) -> _Cpp:
        text = f" {symbol} ".join(part.under(2) for part in parts)
        return _Cpp(text, 1) if len(parts) > 1 else parts[0]

    return chained


def _call(name: str) -> Callable[[_Cpp, _Cpp], _Cpp]:
    return lambda a, b: _Cpp(f"wpk::{name}({a.text}, {b.text})")


_CPP: _Forms = {
    int: lambda number: _Cpp(str(number)),
    ast.Mult: _infix("*", 6, 6),
    ast.FloorDiv: _infix("/", 6, 6),
    ast.Mod: _infix("%", 6, 6),
    ast.Add: _infix("+", 5, 5),
    ast.Sub: _infix("-", 5, 5),
    ast.BitAnd: _infix("&", 3, 7),
    ast.Eq: _infix("==", 2, 4),
    ast.NotEq: _infix("!=", 2, 4),
    ast.Lt: _infix("<", 2, 4),
    ast.LtE: _infix("<=", 2, 4),
    ast.Gt: _infix(">", 2, 4),
    ast.GtE: _infix(">=", 2, 4),
    ast.And: _chain("&&"),
    ast.Or: _chain("||"),
    "min": _call("minOf"),
    "max": _call("maxOf"),
    "ceil_div": _call("ceilDivide"),
}


@dataclass(frozen=True)
class Limit:
    """What a legal schedule meets: ``Limit("stages >= 2", "the pipeline has at least two stages")``.

    Attributes:
        condition: An expression over parameters, or over what the models count (`ScheduleTemplate.figures`).
        rule: The same in words, naming what is allowed.
    """

    condition: str
    rule: str

    @property
    def names(self) -> frozenset[str]:
        """The parameters and figures that the condition speaks of."""
        return _names(self.condition)

    def holds(self, columns: Figures) -> NDArray[np.bool_]:
        """Return where columns of schedules meet the condition."""
        with np.errstate(divide="ignore", invalid="ignore"):  # an extent of 0 is no legal one
            met = np.asarray(value_of(self.condition, columns), bool)
        rows = _rows(columns)
        return met if met.shape == (rows,) else np.broadcast_to(met, rows)

    def refusal(self, columns: Figures) -> str:
        """Return the rule, and what the first of these schedules has instead."""
        seen = (f"{name}={columns[name][0]:g}" for name in columns if name in self.names)
        return f"{self.rule} ({', '.join(seen)})"

    @property
    def static_assert(self) -> str:
        """The limit in C++, in the scope of constants that are named as the parameters are."""
        condition = _fold(_tree(self.condition), _Cpp, _CPP)
        return f'static_assert({condition.text}, "{self.rule}");'


def value_of(expression: str, columns: Figures) -> Any:
    """Return what an expression is of columns, so that models count with those that limits are made of."""
    return _program(expression)(columns)


def meeting(limits: Sequence[Limit], columns: Figures) -> NDArray[np.bool_]:
    """Return where columns of schedules meet all limits."""
    met = np.ones(_rows(columns), bool)
    for limit in limits:
        met &= limit.holds(columns)
    return met


def _rows(columns: Figures) -> int:
    return len(next(iter(columns.values())))


@lru_cache(maxsize=1 << 14)  # conditions hold numbers of their problems
def _tree(condition: str) -> ast.expr:
    return ast.parse(condition, mode="eval").body


@lru_cache(maxsize=1 << 14)  # a search asks the same of many schedules
def _program(expression: str) -> _Program:
    program: _Program = _fold(_tree(expression), operator.itemgetter, _PROGRAMS)
    return program


@lru_cache(maxsize=1 << 14)
def _names(condition: str) -> frozenset[str]:
    nodes = ast.walk(_tree(condition))
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and n.id not in _ARRAYS)


def _fold(node: ast.expr, named: Callable[[str], Any], forms: _Forms) -> Any:
    """What an expression becomes, from its names and numbers up."""

    def of(part: ast.expr) -> Any:
        return _fold(part, named, forms)

    match node:
        case ast.Constant(int(number)):
            return forms[int](number)
        case ast.Name(name):
            return named(name)
        case ast.BinOp(left, op, right) if type(op) in forms:
            return forms[type(op)](of(left), of(right))
        case ast.Compare(left, [ast.In()], [ast.Tuple(choices)]):
            return forms[ast.Or](*(forms[ast.Eq](of(left), of(choice)) for choice in choices))
        case ast.Compare(first, ops, rest) if all(type(op) in forms for op in ops):
            chain = zip(ops, [first, *rest], rest, strict=False)
            return forms[ast.And](*(forms[type(op)](of(a), of(b)) for op, a, b in chain))
        case ast.BoolOp(op, parts):
            return forms[type(op)](*map(of, parts))
        case ast.Call(ast.Name(name), [a, b]) if name in forms:
            return forms[name](of(a), of(b))
    raise ScheduleError(
        f"a limit says '{ast.unparse(node)}', which is no expression of limits",
        fix="the docstring of wpk/schedules/limit.py lists what a limit may say",
    )
