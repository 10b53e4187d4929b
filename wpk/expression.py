"""Expressions over elements: one IR for epilogues, prologues and element-wise operators.

An expression is a tree of frozen nodes. It is printed only as a C++ *type* that
``wpk/kernels/numbers/expression.cuh`` evaluates in fp32, and is evaluated here in NumPy for tests. Its
canonical text is part of a problem's identity.

Where fp32 does not hold the numbers, `In` around the whole says what they are computed in: int64, uint64
or fp64.

Leaves: the accumulator of the kernel that the expression follows (`Acc`), an operand of the problem
(`Operand`, by index into the problem's ``operands``), a scalar (`Scalar`).
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wpk.dtypes import DType
from wpk.expression_operations import OF_INTEGERS, OPERATIONS


@dataclass(frozen=True)
class Acc:
    """What the kernel computed for this element: accumulator, pooled, reduced or normalised value."""


@dataclass(frozen=True)
class Operand:
    """The element of the problem's ``operands[index]`` at this position (strides may be zero)."""

    index: int


@dataclass(frozen=True)
class Divisor(Operand):
    """An operand that is divided by, the same everywhere; behind it stands the reciprocal of its double, rounded once.

    Only units are made of such expressions, of what `wpk.problems.lifted` gives.
    """


@dataclass(frozen=True)
class Quantised:
    """The argument divided by a scale, rounded, limited and brought to 8 bits, and back: `wpk.problems.quantisation`.

    Only units are made of such expressions, of what `wpk.problems.lifted` gives.

    Attributes:
        dtype: Of 8 bits.
        argument: What is quantised.
        index: Of the first of the operands that are its numbers.
        is_moved: Whether there is a zero point.
        is_guarded: Whether NaN has a number of its own.
    """

    dtype: DType
    argument: "Expression"
    index: int
    is_moved: bool
    is_guarded: bool


@dataclass(frozen=True)
class Scalar:
    """A constant: of fp32, or of fp64 within an `In` of that."""

    value: float


@dataclass(frozen=True)
class Apply:
    """``operation(*arguments)``; the operation is one of `OPERATIONS`."""

    operation: str
    arguments: tuple["Expression", ...]

    def __post_init__(self) -> None:
        """Refuse unknown operations and wrong counts where they are written, not where they run."""
        arity = OPERATIONS[self.operation].arity
        if len(self.arguments) != arity:
            raise ValueError(f"{self.operation} takes {arity} arguments, got {len(self.arguments)}")


@dataclass(frozen=True)
class Round:
    """The argument rounded to a narrower floating point type and back, or truncated to an integer type (a Cast)."""

    dtype: DType
    argument: "Expression"


@dataclass(frozen=True)
class In:
    """A whole expression that is computed in another type than fp32: int64, uint64 or fp64.

    Results of integers wrap around; a `Round` inside drops the bits that a narrower integer type does not hold.
    """

    dtype: DType
    argument: "Expression"


Expression = Acc | Operand | Scalar | Apply | Round | In | Quantised


def apply(operation: str, *arguments: Expression) -> Apply:
    """Shorthand for `Apply`."""
    return Apply(operation, arguments)


def leaves(expression: Expression) -> Iterator[Expression]:
    """All leaves, left to right, with repetitions."""
    match expression:
        case Apply(_, arguments):
            for argument in arguments:
                yield from leaves(argument)
        case Round(_, argument) | In(_, argument) | Quantised(_, argument):
            yield from leaves(argument)
        case _:
            yield expression


def flops(expression: Expression) -> int:
    """Operations per element, as the performance models count them."""
    match expression:
        case Apply(operation, arguments):
            return OPERATIONS[operation].flops + sum(map(flops, arguments))
        case Round(_, argument) | In(_, argument) | Quantised(_, argument):
            return flops(argument)
        case _:
            return 0


def substitute(expression: Expression, replace: Callable[[Expression], Expression]) -> Expression:
    """The tree with every leaf replaced by ``replace(leaf)``."""
    match expression:
        case Apply(operation, arguments):
            return Apply(operation, tuple(substitute(a, replace) for a in arguments))
        case Round(dtype, argument):
            return Round(dtype, substitute(argument, replace))
        case Quantised():
            raise ValueError("units are made of quantised expressions; problems keep their parts")
        case In(dtype, argument):
            return In(dtype, substitute(argument, replace))
        case _:
            return replace(expression)


def numbers_of(expression: Expression) -> DType:
    """What an expression is computed in."""
    return expression.dtype if isinstance(expression, In) else DType.FP32


def cpp_type(expression: Expression) -> str:
    """The C++ type that ``wpk/kernels/numbers/expression.cuh`` evaluates; also the canonical text.

    Scalars are printed as the bits of their value in what they are computed in, so the text is exact.
    """
    return _cpp_type(expression, numbers_of(expression))


def _cpp_type(expression: Expression, numbers: DType) -> str:
    match expression:
        case Acc():
            return "wpk::Acc"
        case Divisor(index):
            return f"wpk::Divisor<{index}>"
        case Operand(index):
            return f"wpk::Operand<{index}>"
        case Scalar(value) if numbers is DType.FP64:
            return f"wpk::DoubleScalar<0x{fp64_bits(value):016x}ull>"
        case Scalar(value):
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
            return f"wpk::Scalar<0x{bits:08x}u>"
        case Apply(operation, arguments):
            return f"wpk::{operation}<{', '.join(_cpp_type(a, numbers) for a in arguments)}>"
        case Round(dtype, argument):
            return f"wpk::Round<{dtype.c_name}, {_cpp_type(argument, numbers)}>"
        case Quantised(dtype, argument, index, is_moved, is_guarded):
            form = f"{index}, {str(is_moved).lower()}, {str(is_guarded).lower()}"
            return f"wpk::Quantised<{dtype.c_name}, {_cpp_type(argument, numbers)}, {form}>"
        case In(dtype, argument):
            return f"wpk::In<{dtype.c_name}, {_cpp_type(argument, numbers)}>"


def fp64_bits(value: float) -> int:
    """The bits of a number in fp64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def evaluate(expression: Expression, acc: Any, operands: Sequence[Any]) -> Any:
    """Evaluate in NumPy at the precision of the arrays given (float64 for references)."""
    match expression:
        case Acc():
            return acc
        case Operand(index):
            return operands[index]
        case Scalar(value):
            return np.float64(value)
        case Apply(operation, arguments):
            return OPERATIONS[operation].numpy(*(evaluate(a, acc, operands) for a in arguments))
        case Round(dtype, argument):
            exact = np.asarray(evaluate(argument, acc, operands))
            return exact.astype(dtype.numpy).astype(exact.dtype)
        case Quantised():
            raise ValueError("units are made of quantised expressions; problems keep their parts")
        case In(DType.FP64, argument):
            return evaluate(argument, acc, [_floating(operand) for operand in operands])
        case In(dtype, argument):
            numbers = [np.asarray(operand).astype(dtype.numpy) for operand in operands]
            with np.errstate(all="ignore"):
                return _in_integers(argument, numbers, dtype)


def _floating(operand: Any) -> Any:
    """An operand in float64, or in what has more digits."""
    array = np.asarray(operand)
    return array if array.dtype.itemsize > 8 else array.astype(np.float64)


def _in_integers(expression: Expression, operands: Sequence[Any], dtype: DType) -> Any:
    """Evaluate in integers of a type, which wrap around."""
    match expression:
        case Operand(index):
            return operands[index]
        case Scalar(value):
            return np.asarray(value).astype(dtype.numpy)
        case Apply(operation, arguments):
            numpy = OF_INTEGERS.get(operation, OPERATIONS[operation].numpy)
            return numpy(*(_in_integers(each, operands, dtype) for each in arguments))
        case Round(narrow, argument):
            return _in_integers(argument, operands, dtype).astype(narrow.numpy).astype(dtype.numpy)
        case _:
            raise ValueError(f"{expression} among integers")
