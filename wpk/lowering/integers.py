"""Integers inside kernels: what they are computed in, and what is refused.

fp32 holds every integer of 24 bits, and what rounding makes of a larger one lies on the same side of a
small constant: so much may be computed together with floating point numbers. All other arithmetic of
integers is a body of its own, computed in 64 bits; each result loses the bits that its type does not
hold, as in ONNX Runtime.
"""

from collections.abc import Sequence
from dataclasses import replace

from wpk.dtypes import DType
from wpk.expression import Apply, Expression, Operand, Round, Scalar
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation
from wpk.operators import EXACT_IN_FP32, OPERATORS, Integers

_FORMS = (Integers.STAY, Integers.WRAP, Integers.COMPARE)


def integers_of(op: str, parts: Sequence[Computation]) -> DType | None:
    """Return what an element-wise operator on anything but fp64 is computed in: int64 or uint64, None for fp32.

    Args:
        op: The operator.
        parts: Its inputs.

    Raises:
        RefusedError: It is not defined for integers, or integers meet computed floating point numbers.
    """
    wide = next((part.numbers for part in parts if part.numbers is not None), None)
    kinds = {part.dtype for part in parts if part.dtype.is_integer}
    floats = [part for part in parts if part.dtype.is_float]
    if kinds and op != "Identity" and not floats and not _is_exact_in_fp32(op, parts):
        if OPERATORS[op].integers not in _FORMS:
            raise RefusedError(f"{op} on {' and '.join(sorted(kinds))} tensors")
        wide = DType.UINT64 if DType.UINT64 in kinds else DType.INT64
    if op == "Pow" and kinds and floats and parts[0].dtype.is_integer:
        raise RefusedError(f"Pow of {parts[0].dtype} numbers to a power of {parts[1].dtype}")
    if wide is not None and any(is_computed(p) and p.numbers is not wide for p in parts):
        raise RefusedError(f"{op} of integers and of what is computed in fp32 in one body")
    return wide


def is_computed(part: Computation) -> bool:
    """Tell whether a part is more than a tensor as it lies in memory, or a constant."""
    return part.anchor is not None or isinstance(part.expression, Apply | Round)


def _is_exact_in_fp32(op: str, parts: Sequence[Computation]) -> bool:
    """Tell whether an operator compares at most one tensor with constants that fp32 holds."""
    if OPERATORS[op].integers is not Integers.COMPARE or any(part.numbers for part in parts):
        return False
    tensors = [part for part in parts if part.operands or part.anchor]
    scalars = [p.expression.value for p in parts if isinstance(p.expression, Scalar)]
    return len(tensors) <= 1 and all(abs(value) < EXACT_IN_FP32 for value in scalars)


def wrapped(op: str, expression: Expression, dtype: DType) -> Expression:
    """Return the result of an operator on integers as its type holds it."""
    if OPERATORS[op].integers is not Integers.WRAP or dtype.bytes == 8 or not dtype.is_integer:
        return expression
    return Round(dtype, expression)


def narrowed(part: Computation, target: DType, *, is_stored: bool) -> Computation:
    """Return a cast between integer types: it drops the bits above, as ONNX Runtime does.

    A copy does so by itself, and a wider type holds all that a narrower one does.

    Raises:
        RefusedError: It is fused with work in floating point, which has no such operation.
    """
    if part.numbers is DType.FP64:
        raise RefusedError(f"a Cast of {part.dtype} to {target} fused with work in fp64")
    is_copy = part.expression == Operand(0) and not part.steps
    if part.anchor is None and ((is_stored and is_copy) or _holds(target, part.dtype)):
        return replace(part, dtype=target)
    if part.numbers is None and (part.anchor is not None or not is_copy):
        raise RefusedError(f"a Cast of {part.dtype} to {target} fused with other work")
    return replace(
        part,
        expression=Round(target, part.expression),
        dtype=target,
        numbers=part.numbers or DType.INT64,
    )


def _holds(target: DType, source: DType) -> bool:
    """Tell whether a type has all numbers of another."""
    signed = target.numpy.kind == "i"
    if signed == (source.numpy.kind == "i"):
        return target.bytes >= source.bytes
    return signed and target.bytes > source.bytes
