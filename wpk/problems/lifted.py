"""A quantised problem with its numbers as operands: layers that differ in nothing but scales share what is left.

Scales, zero points and limits stand as `Scalar` in a problem's expressions, and every layer of a quantised network has
its own. Lifted, each number is an operand that is the same everywhere: problems of one structure then are equal, and
so are their kernels, which take the numbers as arguments.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from typing import Generic, TypeVar, cast

from wpk.dtypes import DType
from wpk.expression import Apply, Expression, Operand, Round, Scalar
from wpk.problems.elementwise import Elementwise
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.problem import Problem

P = TypeVar("P", bound=Problem)


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

    Numbers that say what is computed stay, too: exponents, infinities, those among integers, and those in front of a
    reduction.
    """
    return cast("Lifted[P]", _lifted(problem))


@lru_cache(maxsize=1 << 12)
def _lifted(problem: Problem) -> Lifted[Problem]:
    unchanged = Lifted(problem, tuple(range(len(problem.reads()))))
    if not _is_quantised(problem):
        return unchanged
    changed: dict[str, Expression | Epilogue | tuple[Tensor, ...]] = {}
    places: dict[int, float] = {}  # numbers by the identity of the tensors that stand for them
    for each in problem.expressions():
        lift = _Lift(each.operands)
        expression = lift.of(each.expression)
        tensors = tuple(_everywhere(problem) for _ in lift.numbers)
        places |= {id(t): number for t, number in zip(tensors, lift.numbers, strict=True)}
        follows = getattr(problem, each.field, None)
        if isinstance(follows, Epilogue):
            changed[each.field] = Epilogue(expression, (*follows.operands, *tensors))
        elif isinstance(problem, Elementwise):
            changed |= {each.field: expression, "inputs": (*problem.inputs, *tensors)}
    without = replace(problem, **changed)  # type: ignore[arg-type]
    originals = iter(unchanged.inputs)
    inputs = tuple(
        next(originals)
        if access is None or id(access.tensor) not in places
        else places[id(access.tensor)]
        for access in without.reads()
    )
    return Lifted(without, inputs) if len(inputs) > len(unchanged.inputs) else unchanged


def _everywhere(problem: Problem) -> Tensor:
    """A number that is the same at every element of the output."""
    return Tensor(DType.FP32, (0,) * len(problem.y.strides), 0, DType.FP32.bytes)


def _is_quantised(problem: Problem) -> bool:
    """Whether it multiplies, reads or writes numbers of 8 bits, or rounds to them on its way."""
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

    def _inside(self, expression: Expression) -> Expression:
        match expression:
            case Apply("Pow", (base, exponent)):
                return Apply("Pow", (self.of(base), exponent))
            case Apply(operation, arguments):
                return Apply(operation, tuple(self.of(each) for each in arguments))
            case Round(dtype, argument):
                return Round(dtype, self.of(argument))
            case _:
                return expression

    def _operand(self, scalar: Scalar) -> Expression:
        if not isfinite(scalar.value):
            return scalar
        self.numbers.append(float(scalar.value))
        return Operand(self._first + len(self.numbers) - 1)
