"""Epilogues as cuDNN's pointwise operations: which ones it can say, and in which orders."""

from wpk.expression import Expression
from wpk.libraries.cudnn_pointwise import tensor_first, why_no_steps
from wpk.problems import Epilogue, Tensor


def orders(epilogue: Epilogue) -> tuple[Expression, ...]:
    """Return the epilogue as it is, and with the residual before the bias."""
    vectors = frozenset(
        index
        for index, operand in enumerate(epilogue.operands)
        if sum(stride != 0 for stride in operand.strides) < 2
    )
    return tuple(dict.fromkeys((epilogue.expression, tensor_first(epilogue.expression, vectors))))


def why_no_epilogue(epilogue: Epilogue) -> str | None:
    """Say why cuDNN cannot be asked for what happens to a result, in words; None if it can."""
    return why_no_operands(epilogue.operands) or why_no_steps(epilogue.expression)


def why_no_operands(
    operands: tuple[Tensor, ...], role: str = "an operand of its epilogue"
) -> str | None:
    """Say why cuDNN does not read some operands, in words; None if it does."""
    other = next((o.dtype for o in operands if not o.dtype.is_float), None)
    return None if other is None else f"{role} is {other}"
