"""What a mutant is: one small change of a module's text that a test should notice.

Drawn are operators, comparisons, numbers, truth values, conditions, calls of min, max, any and all,
returned values, and statements that vanish. Left out is what tests need not hold to the letter:
docstrings, strings and what is formatted for people, annotations, assertions for the type checker.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

_SWAPPED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_EXCHANGED = (("min", "max"), ("any", "all"), ("minimum", "maximum"), ("floor", "ceil"))
_NAMES = {old: new for a, b in _EXCHANGED for old, new in ((a, b), (b, a))}
_TOLD = ("progress", "refuse")
"""Functions that only tell people something."""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        path: The module, from the checkout's root.
        line: Where, from 1.
        begin, end: Of the replaced bytes in the module's text.
        old: What stands there.
        new: What replaces it.
        kind: Which rule made it.
        source: The line.
    """

    path: str
    line: int
    begin: int
    end: int
    old: str
    new: str
    kind: str
    source: str

    @property
    def name(self) -> str:
        """Identifies it in one state of the sources."""
        return f"{self.path}:{self.begin}-{self.end}:{self.kind}:{self.new}"

    def applied(self, text: bytes) -> bytes:
        """The module's text with the change."""
        assert text[self.begin : self.end] == self.old.encode(), f"{self.path} has changed"
        return text[: self.begin] + self.new.encode() + text[self.end :]


@cache
def mutants_of(root: Path, path: str) -> tuple[Mutant, ...]:
    """All mutants of a module, in the order of its text, which is read once."""
    text = (root / path).read_bytes()
    found = _Finder(path, text).found(ast.parse(text))
    return tuple(sorted(found, key=lambda each: (each.begin, each.end, each.kind, each.new)))


class _Finder:
    """Goes through a module's syntax tree."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path, self._text = path, text
        self._starts = [0]
        for line in text.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def found(self, node: ast.AST) -> Iterator[Mutant]:
        """The mutants of a node and of all below it."""
        if _is_for_people(node):
            return
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.found(child)

    def _own(self, node: ast.AST) -> Iterator[Mutant]:
        match node:
            case ast.BinOp(left, operator, right) | ast.AugAssign(left, operator, right):
                yield from self._between(left, operator, right)
            case ast.Compare(left, operators, rights):
                for place, operator in enumerate(operators):
                    before = rights[place - 1] if place else left
                    yield from self._between(before, operator, rights[place])
            case ast.BoolOp(operator, operands):
                for before, after in pairwise(operands):
                    yield from self._between(before, operator, after)
            case ast.UnaryOp(ast.Not() | ast.USub(), operand):
                yield self._change(node, self._of(operand), "unary")
            case ast.Constant(value):
                yield from self._constants(node, value)
            case ast.If(test) | ast.IfExp(test) | ast.While(test):
                yield self._change(test, f"not ({self._of(test)})", "condition")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield self._change(test, f"not ({self._of(test)})", "condition")
            case ast.Call(function):
                yield from self._called(function)
            case ast.Return(ast.AST() as value) if not isinstance(value, ast.Constant):
                yield self._change(value, "None", "return")
            case ast.Expr(ast.Call() as call) if _is_for_people(call):
                return
            case ast.Raise() | ast.Expr(ast.Call()):
                yield self._change(node, "pass", "statement")
            case ast.Break() | ast.Continue():
                other = "continue" if isinstance(node, ast.Break) else "break"
                yield self._change(node, other, "loop")
        if isinstance(node, ast.AugAssign):
            yield self._change(node, "pass", "statement")

    def _between(self, left: ast.AST, operator: ast.AST, right: ast.AST) -> Iterator[Mutant]:
        """Another operator where the one between two operands stands."""
        if type(operator) not in _SWAPPED:
            return
        old, new = _SWAPPED[type(operator)]
        begin, end = self._span(left)[1], self._span(right)[0]
        place = self._text[begin:end].find(old.encode())
        yield self._at(begin + place, begin + place + len(old), new, "operator")

    def _constants(self, node: ast.Constant, value: object) -> Iterator[Mutant]:
        if isinstance(value, bool):
            yield self._change(node, str(not value), "constant")
        elif isinstance(value, int):
            yield self._change(node, str(value + 1), "constant")
        elif isinstance(value, float):
            yield self._change(node, repr(value * 2 or 1.0), "constant")

    def _called(self, function: ast.expr) -> Iterator[Mutant]:
        match function:
            case ast.Name(name) if name in _NAMES:
                yield self._change(function, _NAMES[name], "name")
            case ast.Attribute(attr=name) if name in _NAMES:
                end = self._span(function)[1]
                yield self._at(end - len(name), end, _NAMES[name], "name")

    def _change(self, node: ast.AST, new: str, kind: str) -> Mutant:
        return self._at(*self._span(node), new, kind)

    def _at(self, begin: int, end: int, new: str, kind: str) -> Mutant:
        line = self._text[:begin].count(b"\n") + 1
        source = self._text.split(b"\n")[line - 1].decode().strip()
        return Mutant(
            self._path, line, begin, end, self._text[begin:end].decode(), new, kind, source
        )

    def _of(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self._text[begin:end].decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]


def _is_for_people(node: ast.AST) -> bool:
    """Whether what stands here is text, a type, or for the type checker; a raised error is text, too."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(ast.Constant()):
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):
            return name in _TOLD or name.endswith("Error")
        case ast.FunctionDef(name):
            return name == "__str__"
        case ast.If(ast.Name("TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name("__all__")]):
            return True
        case ast.keyword("strict"):  # of zip: an assertion
            return True
        case ast.Assign(value=value) | ast.keyword(value=value):
            return _is_text(value)
    return False


def _is_text(value: ast.AST | None) -> bool:
    """Whether an expression can only be a string."""
    match value:
        case ast.JoinedStr() | ast.Constant(str()):
            return True
        case ast.IfExp(body=body, orelse=otherwise):
            return _is_text(body) and _is_text(otherwise)
        case ast.BinOp(left, ast.Add(), right):
            return _is_text(left) or _is_text(right)
        case ast.Call(ast.Attribute(ast.Constant(str()), "join")):
            return True
    return False
