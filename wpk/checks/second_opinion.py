"""A second opinion on what a node computes: ONNX Runtime's, beside the float64 evaluator's.

Passes are judged by evaluating nodes before and after them with one evaluator. A mistake of the
evaluator that suits a mistake of a pass would cancel out; so every distinct kind of node is executed by
ONNX Runtime too, on the same values rounded to fp32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np
import onnx

from wpk.checks.bounded import Arithmetic, Ball, Call, rounding
from wpk.checks.compare import compare
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import Array, NodeEvaluator, widened
from wpk.checks.node_parts import cut_of, filters_of
from wpk.checks.runtime_nodes import execute_node, narrowed
from wpk.checks.witness import require_onnxruntime
from wpk.dtypes import DType, is_float
from wpk.operators import OPERATORS, ErrorRule

RUNTIME = Arithmetic(2.0**-20, 2.0**-126, narrows=True)
"""What ONNX Runtime's CPU kernels are held to: fp32 with four bits less. They sum in one chain per
lane (sqrt(K) of the bound becomes K in the worst case), take variances as a difference of moments,
approximate tanh, erf and logistic by polynomials, and flush denormals. Any mistake in what is computed
is larger by orders of magnitude."""

_MOST_PARAMETERS = 64
"""A tensor of at most so many integers is a parameter, like a shape, and so are scales of a Resize: kinds of nodes differ by its values."""

_MOST_ELEMENTS = 1 << 20
"""Of an operand of which a part is enough: the evaluator computes every such part in the same way, each by itself."""

_MOST_PRODUCTS = 1 << 28
"""Of a convolution of which some filters are enough, all over the weight: each is multiplied by itself."""

_FEWEST = 2
"""Samples or filters that are compared at least, so that one taken for another is seen."""


class Verdict(StrEnum):
    """What ONNX Runtime says of the evaluator."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT = "cannot say"


@dataclass(frozen=True)
class Judgement:
    """The outcome for a node.

    Attributes:
        verdict: Whether ONNX Runtime computes the same.
        why: What differs, or why nothing can be said; empty where they agree.
    """

    verdict: Verdict
    why: str = ""


class SecondOpinion:
    """Executes nodes by ONNX Runtime, each kind once."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        """Prepare.

        Args:
            opsets: Versions of the domains.

        Raises:
            EngineError: ONNX Runtime is missing.
        """
        require_onnxruntime()
        self._opsets = dict(opsets)
        self._judged: set[bytes] = set()

    def judge(
        self, node: onnx.NodeProto, inputs: Sequence[Array | None], evaluate: NodeEvaluator
    ) -> Judgement | None:
        """Compare with the evaluator; None where this kind of node was judged before.

        Args:
            node: The node as it is in the graph.
            inputs: Its values; None where an optional one is missing.
            evaluate: The evaluator of the node.
        """
        kind = _kind(node, inputs)
        if kind in self._judged:
            return None
        self._judged.add(kind)
        inputs = _some_of(node, inputs)
        narrow = [None if each is None else narrowed(each) for each in inputs]
        reason = why_undecidable(node, narrow)
        if reason is not None:
            return Judgement(Verdict.CANNOT, reason)
        try:
            found = execute_node(node, narrow, self._opsets)
        except Exception as error:  # onnxruntime's exceptions share no base class
            return Judgement(Verdict.CANNOT, str(error).splitlines()[0])
        try:
            return _compared(evaluate, narrow, found)
        except (
            Exception
        ) as error:  # of the evaluator, on inputs that were moved to see how far it is off
            return Judgement(Verdict.CANNOT, f"{type(error).__name__}: {error}"[:200])


def _some_of(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> Sequence[Array | None]:
    """Operands of which no more than needed is as large as it may be: a part of what is computed in parts, along each axis."""
    while (size := _elements(node, inputs)) > _MOST_ELEMENTS:
        cut = cut_of(node, inputs)
        count = 0 if cut is None else max(_FEWEST, cut.extent * _MOST_ELEMENTS // size)
        if cut is None or count >= cut.extent:
            break
        inputs = cut.part(inputs, slice(count))
    filters = filters_of(node, inputs)
    if filters is None or filters.products <= _MOST_PRODUCTS:
        return inputs
    count = max(_FEWEST, filters.extent * _MOST_PRODUCTS // filters.products)
    return filters.part(inputs, slice(None, None, -(-filters.extent // count)))


def _elements(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> int:
    """Elements of the largest operand, or of a product that is larger."""
    given = [each for each in inputs if each is not None]
    size = max((each.size for each in given), default=0)
    if node.op_type == "MatMul" and all(each.ndim > 1 for each in given):
        first, second = given
        matrices = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        size = max(size, prod(matrices) * first.shape[-2] * second.shape[-1])
    return size


def _kind(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> bytes:
    """The operator, its attributes, its inputs' types and shapes, and what are parameters among them."""
    bare = onnx.NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    digest = hashlib.sha256(bare.SerializeToString())
    row = OPERATORS.get(node.op_type)
    numbers = None if row is None else row.parameters
    for place, each in enumerate(inputs):
        words = "none" if each is None else f"{each.dtype} {each.shape}"
        digest.update(words.encode())
        if each is None or each.size > _MOST_PARAMETERS:
            continue
        if each.dtype.kind in "iu" or (numbers is not None and place >= numbers):
            digest.update(each.tobytes())
    return digest.digest()


def _compared(
    evaluate: NodeEvaluator, inputs: Sequence[Array | None], found: Sequence[Array]
) -> Judgement:
    bounded = [None if each is None else Ball(widened(each)) for each in inputs]
    expected = evaluate([None if each is None else each.value for each in bounded])
    for place, (right, actual) in enumerate(zip(expected, found, strict=True)):
        if right.shape != actual.shape:
            why = f"output {place} has shape {list(right.shape)}, in ONNX Runtime {list(actual.shape)}"
            return Judgement(Verdict.DIFFERS, why)
        call = Call(evaluate, bounded, expected, RUNTIME.roundoff, RUNTIME, place)
        error = bound_error(call)
        tolerance = (0.0 if error is None else error) + rounding(right, DType.FP32)
        outcome = compare(np.asarray(actual), right, np.asarray(tolerance))
        if not outcome.passed:
            why = (
                f"{outcome.wrong} of {outcome.total} elements of output {place}: {outcome.example}"
            )
            return Judgement(Verdict.DIFFERS, f"{why}, ONNX Runtime's being the first")
    return Judgement(Verdict.AGREES)


def _divides_integers_by_zero(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> bool:
    divisor = inputs[1] if node.op_type in ("Div", "Mod") else None
    return divisor is not None and divisor.dtype.kind in "iu" and not divisor.all()


def _largest_of_nan(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> bool:
    row = OPERATORS.get(node.op_type)
    selects = row is not None and row.error in (ErrorRule.LARGEST, ErrorRule.LIMITED)
    return selects and any(
        bool(np.isnan(each).any()) for each in inputs if each is not None and is_float(each.dtype)
    )


UNDECIDABLE = (
    (_divides_integers_by_zero, "an integer is divided by zero, which ends ONNX Runtime's process"),
    (_largest_of_nan, "ONNX leaves open what the largest of NaN is"),
)
"""The nodes for which ONNX Runtime is no witness, with reasons."""


def why_undecidable(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> str | None:
    """Return why ONNX Runtime is no witness of a node; None where it is one."""
    return next((why for fits, why in UNDECIDABLE if fits(node, inputs)), None)
