"""What the parts of a body are computed in: fp32, fp64 or integers of 64 bits.

A body with a tensor of fp64 is computed in fp64 from its first operation to its last, whatever the precision
that was asked for: what it reads in other types is widened, and rounded only where it is cast. Integers have
rules of their own (`wpk.lowering.integers`).
"""

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Expression, In
from wpk.lowering.integers import integers_of, is_computed
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation, Symbol


def numbers_of(op: str, parts: Sequence[Computation]) -> DType | None:
    """Return what an element-wise operator is computed in: fp64, int64 or uint64, None for fp32.

    Args:
        op: The operator.
        parts: Its inputs.

    Raises:
        RefusedError: It is not defined for integers, or what is computed in other numbers meets.
    """
    if not any(DType.FP64 in (part.dtype, part.numbers) for part in parts):
        return integers_of(op, parts)
    types = {part.dtype for part in parts}
    if DType.FP64 not in types and any(dtype.is_integer for dtype in types):
        raise RefusedError(f"{op} of integers fused with work in fp64")
    for part in parts:
        _require_joinable(op, part)
    return DType.FP64


def numbers_of_cast(part: Computation, target: DType) -> DType | None:
    """Return what a Cast of a part is computed in.

    Raises:
        RefusedError: The part is computed in integers, and not in fp64.
    """
    if DType.FP64 not in (part.dtype, part.numbers, target):
        return part.numbers
    if part.anchor is not None and part.numbers is None:
        return None  # the store widens it
    _require_joinable("Cast", part)
    return DType.FP64


def numbers_of_anchor(node: gs.Node, inputs: Sequence[Symbol | None]) -> DType | None:
    """Return what an operator that is not element-wise is computed in: fp64, None for fp32.

    Raises:
        RefusedError: What its body computes before it is computed in other numbers.
    """
    given = [each for each in inputs if each is not None]
    numbers = DType.FP64 if any(each.dtype is DType.FP64 for each in given) else None
    for each in given:
        before = each.numbers if isinstance(each, Computation) else None
        if before is not None and before is not numbers:
            raise RefusedError(f"{node.op} of what is computed in {before} in the same body")
    return numbers


def _require_joinable(op: str, part: Computation) -> None:
    """Refuse a part that is computed, and cannot be so in fp64."""
    if is_computed(part) and part.numbers not in (None, DType.FP64):
        raise RefusedError(f"{op} in fp64 of what is computed in {part.numbers} in one body")
    if part.anchor is not None and part.numbers is None:
        raise RefusedError(f"{op} in fp64 of what {part.anchor.node.op} computes in fp32")


def whole(result: Computation) -> Expression:
    """Return the expression of a result with what it is computed in.

    Raises:
        RefusedError: Integers are computed with in one body with an operator that is not element-wise.
    """
    return computed_in(result.numbers, result.expression, has_anchor=result.anchor is not None)


def computed_in(
    numbers: DType | None, expression: Expression, *, has_anchor: bool = True
) -> Expression:
    """Return an expression with what it is computed in: of an anchor's epilogue or prologue, or alone.

    Raises:
        RefusedError: Integers are computed with in one body with an operator that is not element-wise.
    """
    if numbers is None:
        return expression
    if has_anchor and numbers is not DType.FP64:
        raise RefusedError("integers are computed with in one body with another operator")
    return In(numbers, expression)
