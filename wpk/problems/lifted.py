"""A quantised problem with its numbers as operands: layers that differ in nothing but scales share what is left.

Scales, zero points and limits stand as `Scalar` in a problem's expressions, and every layer of a quantised network has
its own. Lifted, each number is an operand that is the same everywhere: problems of one structure then are equal, and
so are their kernels, which take the numbers as arguments.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Generic, TypeVar, cast

import numpy as np

from wpk.dtypes import DType
from wpk.expression import Apply, Divisor, Expression, Operand, Quantised, Round, Scalar
from wpk.problems.access import Access
from wpk.problems.attention import Attention
from wpk.problems.elementwise import Elementwise
from wpk.problems.normalisation import Normalisation
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.problem import Problem
from wpk.problems.quantisation import Quantisation, quantisation_of, restored_quantisation_of

P = TypeVar("P", bound=Problem)

_LEAST_DIVISOR, _MOST_DIVISOR = 2.0**-64, 2.0**65
"""Of divisors that kernels divide by with their reciprocals: `isOrdinaryDivisor` of wpk/kernels/numbers/quotient.cuh."""


@dataclass(frozen=True)
class Lifted(Generic[P]):
    """A problem without numbers of its own.

    Attributes:
        problem: The same, whose expressions read an operand where the original has a number.
        inputs: For each of its inputs which one of the original it is, or the number that it stands for.
    """

    problem: P
    inputs: tuple[int | float, ...]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers, in the order of their inputs."""
        return tuple(each for each in self.inputs if isinstance(each, float))


def lifted(problem: P) -> Lifted[P]:
    """Return a problem without its numbers; one that is not quantised keeps them, for they seldom tell layers apart.

    Numbers that say what is computed stay, too: exponents, infinities and those among integers. So do those in front of
    a `Reduction`, whose kernels hold as many elements at once as their inputs allow, and those of attention, whose
    scores' operands are held in registers for a whole tile.
    """
    return cast("Lifted[P]", _lifted(problem))


@lru_cache(maxsize=1 << 12)
def _lifted(problem: Problem) -> Lifted[Problem]:
    unchanged = Lifted(problem, tuple(range(len(problem.reads()))))
    if not is_quantised(problem):
        return unchanged
    numbers = _Numbers(problem)
    changed: dict[str, Expression | Epilogue | tuple[Tensor, ...]] = {}
    for each in () if isinstance(problem, Attention) else problem.expressions():
        follows = getattr(problem, each.field, None)
        if isinstance(follows, Epilogue):
            stored = problem.y.dtype if each.field == "epilogue" else None
            expression, operands = numbers.taken(each.expression, follows.operands, stored)
            changed[each.field] = Epilogue(expression, operands)
        elif isinstance(problem, Elementwise | Normalisation):
            stored = problem.y.dtype if isinstance(problem, Elementwise) else None
            asked = each.expression, problem.inputs, stored
            changed[each.field], changed["inputs"] = numbers.taken(*asked)
    without = replace(problem, **changed)
    if not numbers.known:
        return unchanged
    originals = iter(unchanged.inputs)
    behind = map(numbers.behind, without.reads())
    inputs = (next(originals) if number is None else number for number in behind)
    return Lifted(without, tuple(inputs))


class _Numbers:
    """The numbers of a problem's expressions, by the operands that stand for them.

    Attributes:
        known: Each operand with its number.
    """

    def __init__(self, problem: Problem) -> None:
        self._strides = (0,) * len(problem.y.strides)
        self.known: list[tuple[Tensor, float]] = []

    def taken(
        self, expression: Expression, operands: tuple[Tensor, ...], stored: DType | None
    ) -> tuple[Expression, tuple[Tensor, ...]]:
        """An expression without its numbers, and its operands with those that stand for them.

        Args:
            expression: The expression.
            operands: What it reads.
            stored: The type in which its results are stored; None where something follows.
        """
        lift = _Lift(len(operands))
        whole = quantisation_of(expression, stored) if stored is not None else None
        without = lift.of(expression) if whole is None else lift.quantised(whole)
        found = [
            (Tensor(DType.FP32, self._strides, 0, DType.FP32.bytes), number)
            for number in lift.numbers
        ]
        self.known += found
        return without, (*operands, *(tensor for tensor, _ in found))

    def behind(self, access: Access | None) -> float | None:
        """The number that an input stands for; None for the operator's own: equal tensors are told apart."""
        if access is None:
            return None
        return next((number for each, number in self.known if each is access.tensor), None)


def is_quantised(problem: Problem) -> bool:
    """Return whether it multiplies, reads or writes numbers of 8 bits, or rounds to them on its way."""
    precision = problem.matrix_precision
    if precision is not None and precision.is_quantised:
        return True
    accesses = (each for each in (*problem.reads(), *problem.writes()) if each is not None)
    return any(_is_narrow(each.tensor.dtype) for each in accesses) or any(
        _rounds_narrowly(each.expression) for each in problem.expressions()
    )


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_byte or dtype.is_fp8


def _rounds_narrowly(expression: Expression) -> bool:
    match expression:
        case Round(dtype, argument):
            return _is_narrow(dtype) or _rounds_narrowly(argument)
        case Apply(_, arguments):
            return any(map(_rounds_narrowly, arguments))
        case _:
            return False


class _Lift:
    """Numbers of an expression that become operands behind those that it has.

    Equal parts of an expression keep equal numbers: a kernel computes them once.
    """

    def __init__(self, operands: int) -> None:
        self.numbers: list[float] = []
        self._first = operands
        self._done: dict[Expression, Expression] = {}

    def of(self, expression: Expression) -> Expression:
        if isinstance(expression, Scalar):
            return self._operand(expression)
        if expression not in self._done:
            self._done[expression] = self._inside(expression)
        return self._done[expression]

    def quantised(self, found: Quantisation) -> Quantised:
        """A quantisation by operands."""
        argument = self.of(found.argument)
        place = self._first + len(self.numbers)
        self.numbers += found.numbers()
        return Quantised(found.dtype, argument, place, found.is_moved, found.is_guarded)

    def _inside(self, expression: Expression) -> Expression:
        if (restored := restored_quantisation_of(expression)) is not None:
            return self.quantised(restored)
        match expression:
            case Apply("Pow", (base, exponent)):
                return Apply("Pow", (self.of(base), exponent))
            case Apply("Div", (dividend, Scalar(value))):
                return Apply("Div", (self.of(dividend), self._divisor(value)))
            case Apply(operation, arguments):
                return Apply(operation, tuple(self.of(each) for each in arguments))
            case Round(dtype, argument):
                return Round(dtype, self.of(argument))
            case _:
                return expression

    def _divisor(self, value: float) -> Expression:
        """A divisor with its reciprocal, which kernels divide by; a literal where these would over- or underflow."""
        divisor = np.float32(value)
        if not _LEAST_DIVISOR <= abs(divisor) < _MOST_DIVISOR:
            return Scalar(value)
        place = self._first + len(self.numbers)
        self.numbers += [float(divisor), float(np.float32(1) / (2 * divisor))]
        return Divisor(place)

    def _operand(self, scalar: Scalar) -> Expression:
        if not isfinite(scalar.value):
            return scalar
        self.numbers.append(float(scalar.value))
        return Operand(self._first + len(self.numbers) - 1)
