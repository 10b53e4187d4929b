"""Epilogues as cuDNN's pointwise operations.

    Expression  ->  steps, each one method of ``cudnn.pygraph`` over earlier values

Activations that cuDNN names are recognised in the form in which lowering writes them: its compiled
engines know those names, while only its run-time compiler takes any mixture of arithmetic.
"""

from dataclasses import dataclass

from wpk.expression import Acc, Apply, Expression, In, Operand, Round, Scalar, apply
from wpk.operators import express


@dataclass(frozen=True)
class PointwiseTensor:
    """A tensor of the epilogue: 0 is the kernel's result, then the operands, then the steps."""

    index: int


@dataclass(frozen=True)
class PointwiseCall:
    """One pointwise operation.

    Attributes:
        method: Of ``cudnn.pygraph``.
        arguments: Tensors, or constants.
        options: The method's keywords for numbers.
    """

    method: str
    arguments: tuple[PointwiseTensor | float, ...]
    options: tuple[tuple[str, float], ...] = ()


METHODS = frozenset(
    (
        "abs", "add", "ceil", "cos", "div", "erf", "exp", "floor", "log", "max", "min", "mod", "mul",
        "neg", "pow", "reciprocal", "relu", "sigmoid", "sin", "softplus", "sqrt", "sub", "tanh",
    )
)  # fmt: skip
"""Methods that compute one operation of the same name."""

Parts = tuple[str, tuple[Expression, ...], tuple[tuple[str, float], ...]]


def why_no_steps(expression: Expression) -> str | None:
    """Say why cuDNN cannot compute an epilogue, in words; None if it can."""
    match expression:
        case Round(dtype, _):
            return f"its epilogue rounds to {dtype} on the way, which cuDNN's fused graphs do not"
        case In(dtype, _):
            return f"it is computed in {dtype}, which cuDNN's fused graphs do not"
        case Apply():
            parts = _named(expression)
            if parts is None:
                return f"its epilogue holds {expression.operation}, which cuDNN does not have"
            return next((why for part in parts[1] if (why := why_no_steps(part))), None)
        case _:
            return None


def pointwise_steps(expression: Expression, operands: int) -> tuple[PointwiseCall, ...]:
    """Return the steps that compute an epilogue over so many operands; the last one is the result.

    Equal parts of the expression are computed once. There are no steps where the kernel's result is
    stored as it is.

    Raises:
        ValueError: `why_no_steps` has a reason.
    """
    reason = why_no_steps(expression)
    if reason is not None:
        raise ValueError(reason)
    steps: list[PointwiseCall] = []
    known: dict[Expression, PointwiseTensor | float] = {}

    def value(part: Expression) -> PointwiseTensor | float:
        if part not in known:
            known[part] = computed(part)
        return known[part]

    def computed(part: Expression) -> PointwiseTensor | float:
        match part:
            case Acc():
                return PointwiseTensor(0)
            case Operand(index):
                return PointwiseTensor(1 + index)
            case Scalar(number):
                return number
        assert isinstance(part, Apply)  # `why_no_steps` refused the rest
        parts = _named(part)
        assert parts is not None
        method, arguments, options = parts
        steps.append(PointwiseCall(method, tuple(map(value, arguments)), options))
        return PointwiseTensor(operands + len(steps))

    result = value(expression)
    # A constant, an operand alone, or nothing but the kernel's result still has to be written.
    if isinstance(result, float) or (not steps and result != PointwiseTensor(0)):
        steps.append(PointwiseCall("identity", (result,)))
    return tuple(steps)


def tensor_first(expression: Expression, vectors: frozenset[int]) -> Expression:
    """Return the epilogue with ``(acc + vector) + tensor`` written as ``(acc + tensor) + vector``.

    The order in which cuDNN's compiled engines know residual and bias; the sum differs by rounding.

    Args:
        expression: The epilogue.
        vectors: The operands that are no whole tensors.
    """
    match expression:
        case Apply("Add", (Apply("Add", (Acc(), Operand(first))), Operand(second))) | Apply(
            "Add", (Operand(second), Apply("Add", (Acc(), Operand(first))))
        ) if first in vectors and second not in vectors:
            return apply("Add", apply("Add", Acc(), Operand(second)), Operand(first))
        case Apply(operation, arguments):
            return Apply(operation, tuple(tensor_first(part, vectors) for part in arguments))
        case _:
            return expression


def _named(expression: Apply) -> Parts | None:
    """The method that computes an operation from which parts; None where there is none."""
    for recognise in (_clip, _swish, _gelu, _branch):
        parts = recognise(expression)
        if parts is not None:
            return parts
    method = expression.operation.lower()
    return (method, expression.arguments, ()) if method in METHODS else None


def _clip(expression: Apply) -> Parts | None:
    """The forms ``min(max(x, low), high)`` and ``min(relu(x), high)``."""
    match expression:
        case Apply("Min", (Apply("Relu", (x,)), Scalar(high))) if high >= 0.0:
            return "relu", (x,), (("lower_clip", 0.0), ("upper_clip", high))
        case Apply("Min", (Apply("Max", (x, Scalar(low))), Scalar(high))) if low <= high:
            return "relu", (x,), (("lower_clip", low), ("upper_clip", high))
    return None


def _swish(expression: Apply) -> Parts | None:
    """X sigmoid(x), x sigmoid(beta x)."""
    match expression:
        case Apply("Mul", (x, Apply("Sigmoid", (inner,)))) | Apply(
            "Mul", (Apply("Sigmoid", (inner,)), x)
        ):
            if inner == x:
                return "swish", (x,), (("swish_beta", 1.0),)
            match inner:
                case Apply("Mul", (Scalar(beta), scaled)) if scaled == x:
                    return "swish", (x,), (("swish_beta", beta),)
    return None


def _gelu(expression: Apply) -> Parts | None:
    """The form ``(x / 2) (1 + erf(x / sqrt 2))`` and its approximation by tanh."""
    match expression:
        case Apply("Mul", (Apply("Mul", (_, x)), _)):
            for method, approximate in (("gelu", "none"), ("gelu_approx_tanh", "tanh")):
                if expression == express("Gelu", (x,), {"approximate": approximate}):
                    return method, (x,), ()
    return None


def _branch(expression: Apply) -> Parts | None:
    """The forms ``x < 0 ? slope x : x`` and ``x < 0 ? exp(x) - 1 : x``."""
    match expression:
        case Apply("Where", (Apply("Less", (x, Scalar(0.0))), below, above)) if above == x:
            match below:
                case Apply("Mul", (inner, Scalar(slope))) if inner == x:
                    return "leaky_relu", (x,), (("negative_slope", slope),)
                case Apply(
                    "Mul",
                    (Scalar(1.0), Apply("Sub", (Apply("Exp", (inner,)), Scalar(1.0)))),
                ) if inner == x:
                    return "elu", (x,), ()
    return None
