"""Expressions in words: what an epilogue adds to its kernel, and element-wise formulas."""

import re
from collections.abc import Iterator, Sequence

from wpk.expression import Acc, Apply, Expression, In, Operand, Quantised, Round, Scalar, leaves
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.signs import MINUS, TIMES

_INFIX = {"Add": "+", "Sub": MINUS, "Mul": TIMES, "Div": "÷"}
_LONGEST_FORMULA = 48


def epilogue_words(epilogue: Epilogue) -> str:
    """What follows the kernel's sum, in the order it happens: ``+bias relu``; empty if nothing."""
    words = " ".join(_phrases(epilogue.expression, epilogue.operands))
    return re.sub(r"\b(?:relu min 6|min 6 relu|max 0 min 6|min 6 max 0)\b", "relu6", words)


def formula(expression: Expression) -> str:
    """An expression over its operands ``a``, ``b``, … : ``relu(a + b)``; shortened when long."""
    text = _formula(expression)
    return text if len(text) <= _LONGEST_FORMULA else f"{text[: _LONGEST_FORMULA - 1]}…"


def _phrases(expression: Expression, operands: Sequence[Tensor]) -> list[str]:
    match expression:
        case In(_, argument):
            return _phrases(argument, operands)
        case Round(dtype, argument) | Quantised(dtype, argument):
            return [*_phrases(argument, operands), f"to {dtype}"]
        case Apply(operation, (argument,)):
            return [*_phrases(argument, operands), operation.lower()]
        case Apply(operation, (left, right)) if _has_acc(left) != _has_acc(right):
            kernel, other = (left, right) if _has_acc(left) else (right, left)
            reverse = operation in ("Sub", "Div") and kernel is right
            word = f"{_INFIX.get(operation, operation.lower() + ' ')}{_other(other, operation, operands)}"
            return [*_phrases(kernel, operands), f"{word} reversed" if reverse else word]
        case Apply():
            return _joined(expression, operands)
        case _:
            return []


def _joined(expression: Apply, operands: Sequence[Tensor]) -> list[str]:
    """An operation whose arguments share the accumulator: an activation with a name, or a formula."""
    used = set(_operations(expression))
    match expression:
        case Apply("Mul", (left, Apply("Sigmoid", (inner,)))) if left == inner:
            return [*_phrases(left, operands), "silu"]
        case Apply("Mul", (Apply("Sigmoid", (inner,)), right)) if right == inner:
            return [*_phrases(right, operands), "silu"]
        case Apply("Mul") if "Erf" in used and used <= {"Mul", "Add", "Div", "Erf"}:
            return ["gelu"] if not _tensors(expression) else ["+bias gelu"]
        case Apply("Mul" | "Div") if used <= {"Mul", "Add", "Div", "Max", "Min"} and (
            {"Max", "Min"} <= used
        ):
            return ["hard-swish"] if not _tensors(expression) else ["+bias hard-swish"]
        case _:
            return [formula(expression)]


def _other(expression: Expression, operation: str, operands: Sequence[Tensor]) -> str:
    """The side of an operation that the kernel did not compute."""
    if isinstance(expression, Operand):
        axes = sum(stride != 0 for stride in operands[expression.index].strides)
        if axes > 1:
            return "res" if operation == "Add" else "tensor"
        vector = {"Add": "bias", "Sub": "bias", "Mul": "scale", "Div": "scale"}
        return vector.get(operation, "vector") if axes else "scalar"
    if isinstance(expression, Scalar):
        return f"{expression.value:.4g}"
    return f"({formula(expression)})"


def _formula(expression: Expression) -> str:
    match expression:
        case Acc():
            return "sum"
        case Operand(index):
            return chr(ord("a") + index) if index < 26 else f"x{index}"
        case Scalar(value):
            return f"{value:.4g}"
        case In(_, argument):
            return _formula(argument)
        case Round(dtype, argument) | Quantised(dtype, argument):
            return f"{dtype}({_formula(argument)})"
        case Apply(operation, (left, right)) if operation in _INFIX:
            return f"{_bracketed(left)} {_INFIX[operation]} {_bracketed(right)}"
        case Apply(operation, arguments):
            return f"{operation.lower()}({', '.join(map(_formula, arguments))})"


def _bracketed(expression: Expression) -> str:
    text = _formula(expression)
    infix = isinstance(expression, Apply) and expression.operation in _INFIX
    return f"({text})" if infix else text


def _has_acc(expression: Expression) -> bool:
    return any(isinstance(leaf, Acc) for leaf in leaves(expression))


def _tensors(expression: Expression) -> list[Expression]:
    return [leaf for leaf in leaves(expression) if isinstance(leaf, Operand)]


def _operations(expression: Expression) -> Iterator[str]:
    match expression:
        case Apply(operation, arguments):
            yield operation
            for argument in arguments:
                yield from _operations(argument)
        case Round(_, argument) | In(_, argument) | Quantised(_, argument):
            yield from _operations(argument)
