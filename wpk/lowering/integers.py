"""Integers inside kernels that compute in fp32: what is exact there, and what is refused.

fp32 holds every integer of 24 bits. So 8-bit integers can be computed with, where each result is
brought back into its type as ONNX Runtime's is: it wraps around. Wider ones can only be moved, and
compared with a small constant: what rounding makes of a large one lies on the same side of it.
"""

from collections.abc import Sequence

from wpk.dtypes import DType
from wpk.expression import Expression, Operand, Round, Scalar, apply
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation
from wpk.operators import OPERATORS, Integers

_WIDE = (DType.INT32, DType.INT64)
_NARROW = (DType.INT8, DType.UINT8)
_EXACT = 2**24  # fp32 holds every integer up to here
_NARROW_FORMS = (Integers.STAY, Integers.WRAP, Integers.COMPARE)
_BITS = {DType.INT8: 7, DType.UINT8: 8, DType.BOOL: 8, DType.INT32: 31, DType.INT64: 63}


def require_exact(op: str, parts: Sequence[Computation], fmod: bool) -> None:
    """Check that an element-wise operator is exact on the integers among its inputs.

    Args:
        op: The operator.
        parts: Its inputs.
        fmod: For Mod, whether its result has the sign of the dividend.

    Raises:
        RefusedError: It is not, or fp32 has no such operation.
    """
    if op == "Mod" and not fmod and any(part.dtype is not DType.UINT8 for part in parts):
        raise RefusedError("Mod with fmod=0 of numbers that may be negative")
    form = OPERATORS[op].integers
    kinds = {part.dtype for part in parts if not part.dtype.is_float}
    if kinds & set(_WIDE):
        if op != "Identity" and not (form is Integers.COMPARE and _against_small(parts)):
            raise RefusedError(f"{op} on integer tensors that are not constant")
    elif kinds & set(_NARROW) and form not in _NARROW_FORMS:
        raise RefusedError(f"{op} on {' and '.join(sorted(kinds))} tensors")


def _against_small(parts: Sequence[Computation]) -> bool:
    """Tell whether at most one operand is no constant, and fp32 holds the constants exactly."""
    wide = [part for part in parts if part.dtype in _WIDE]
    tensors = [part for part in wide if part.operands or part.anchor]
    scalars = [p.expression.value for p in wide if isinstance(p.expression, Scalar)]
    return len(tensors) <= 1 and all(abs(value) < _EXACT for value in scalars)


def wrapped(op: str, expression: Expression, dtype: DType) -> Expression:
    """Return the result of an operator as its type holds it: an 8-bit type loses the bits above.

    Exact in fp32: operands have 8 bits, so that sums and products have 17 at most.
    """
    if dtype not in _NARROW or OPERATORS[op].integers is not Integers.WRAP:
        return expression
    if op == "Div":
        expression = Round(DType.INT32, expression)
    low = Scalar(-128.0) if dtype is DType.INT8 else Scalar(0.0)
    turns = apply("Floor", apply("Mul", apply("Sub", expression, low), Scalar(1.0 / 256.0)))
    return apply("Sub", expression, apply("Mul", turns, Scalar(256.0)))


def require_plain_narrowing(part: Computation, target: DType, *, is_stored: bool) -> None:
    """Check that a cast to a narrower integer type is nothing but a copy.

    A copy drops the bits above, as ONNX Runtime does; an expression has no such operation.

    Raises:
        RefusedError: It is more.
    """
    source = part.dtype
    if source.is_float or target.is_float or target is DType.BOOL:
        return
    if _BITS[target] >= _BITS[source] and not (source is DType.INT8 and target is DType.UINT8):
        return
    if not is_stored or part.expression != Operand(0) or part.steps or part.anchor:
        raise RefusedError(f"a Cast of {source} to {target} fused with other work")
