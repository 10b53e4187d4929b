"""What a kernel issues for each element that it stores, as its unit computes it.

Operations of floating point are an issue slot each. What one of the special function units does for 16 lanes in a cycle,
where four schedulers issue 128, holds a warp's slot eight times as long: so do roundings and conversions that
are not written otherwise. The counts are those of machine code for sm_90a (nvdisasm), addresses and loads left out.
"""

from wpk.dtypes import DType, Precision
from wpk.expression import (
    Acc,
    Apply,
    Divisor,
    Expression,
    In,
    Operand,
    Quantised,
    Round,
)
from wpk.expression_operations import OPERATIONS
from wpk.operators import express
from wpk.problems.lifted import lifted
from wpk.problems.normalisation import NormKind
from wpk.problems.normed_matmul import NormedMatmul
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.problem import Problem
from wpk.problems.row_moments import MomentsMatmul

_SPECIAL = 8.0
"""A rounding or a conversion on the special function units."""

_QUOTIENT = 11.0
"""By an argument or a literal, correctly rounded (`wpk/kernels/numbers/quotient.cuh`)."""

_BYTES_OF, _FLOAT8_OF = 6.0, 5.0
"""To 8 bits by a known scale: limits, two of the quotient, the place of integers, a share of a packing."""

_FROM_SUM, _FROM_BYTE, _FROM_FLOAT8 = 2.0, 2.0, 3.0
"""A sum in int32, at half the rate; a byte out of a word, into a float; two conversions at half the rate."""

_ROUNDED = {True: 20.0, False: 2.0}
"""To floating point and back, of 8 bits and of 16."""


_NORMED = 5.0
"""A product of a normalised row: the mean's share taken off it, its scale, and the column's sum with its address."""

_NORMED_KNOWN = 3.0
"""The same where a column's sum is loaded for several rows at once. An estimate."""

_GELU = {"Erf": 11.0, "Tanh": 16.0}
"""A GELU of either form, which is one function (`wpk/kernels/numbers/gelu.cuh`): eleven instructions; or seven, two of
which the special function units hold longer than all of them are issued."""

_SUMMED = {NormKind.LAYER: 6.0, NormKind.RMS: 3.0}
"""An element of a row that is stored with its moments: into fp32, its sums, and a share of the group's shuffles. An estimate."""


def stored_slots(problem: Problem) -> float:
    """Return the issue slots of an element's expressions: a GELU takes 11, which many columns of a tile make a long end."""
    without = lifted(problem).problem
    slots = 0.0
    if isinstance(problem, NormedMatmul):
        slots += _NORMED if problem.moments is None else _NORMED_KNOWN
    if isinstance(problem, MomentsMatmul):
        slots += _SUMMED[problem.kind]
    for each in without.expressions():
        follows = getattr(without, each.field, None)
        tensors = (
            follows.operands if isinstance(follows, Epilogue) else getattr(without, "inputs", ())
        )
        slots += _slots(each.expression, tensors, without)
    return slots


def _slots(expression: Expression, tensors: tuple[Tensor, ...], problem: Problem) -> float:
    def of(inner: Expression) -> float:
        return _slots(inner, tensors, problem)

    if (form := _form_of_gelu(expression)) is not None:
        bell, argument = form
        return of(argument) + _GELU[bell]
    match expression:
        case Quantised(dtype, argument, _, is_moved, is_guarded):
            own = _BYTES_OF if dtype.is_byte else _FLOAT8_OF
            return of(argument) + own + is_moved + 2 * is_guarded
        case Apply("Div", (dividend, Divisor())):
            return of(dividend) + _QUOTIENT
        case Apply("RoundEven" | "Floor" | "Ceil", (argument,)):
            return of(argument) + _SPECIAL
        case Apply(operation, arguments):
            return OPERATIONS[operation].flops + sum(map(of, arguments))
        case Round(dtype, argument):
            is_float = dtype.is_float or dtype.is_fp8
            return of(argument) + (_ROUNDED[dtype.is_fp8] if is_float else 2 * _SPECIAL)
        case In(_, argument):
            return of(argument)
        case Acc():
            return _FROM_SUM if problem.matrix_precision is Precision.INT8 else 0.0
        case Operand(index):
            return _read(tensors[index].dtype) if index < len(tensors) else 0.0
        case _:
            return 0.0


def _form_of_gelu(expression: Expression) -> tuple[str, Expression] | None:
    """Return whether an expression is a GELU by Erf or by Tanh, and of what; None if it is none."""
    match expression:
        case Apply("Mul", (Apply("Mul", (_, x)), Apply("Add", (_, Apply("Erf" | "Tanh" as bell))))):
            approximate = "tanh" if bell == "Tanh" else "none"
            if expression == express("Gelu", (x,), {"approximate": approximate}):
                return bell, x
    return None


def _read(dtype: DType) -> float:
    if dtype.is_fp8:
        return _FROM_FLOAT8
    return _FROM_BYTE if dtype.is_byte else 0.0
