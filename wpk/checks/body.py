"""What a node of an optimized graph computes, in float64 and with error bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from wpk.checks.bounded import DOUBLE, KERNELS, Arithmetic, Ball, Call, Floats, rounding
from wpk.checks.by_sample import cut_of_chain, for_parts, in_parts
from wpk.checks.doubles import computes_in_double, double_names
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import Array, NodeEvaluator, cast_type, widened
from wpk.checks.floors import MARGIN, has_floors, least_error
from wpk.checks.rounded import rounded
from wpk.checks.stretches import by_products, stretch
from wpk.dtypes import DType, from_numpy
from wpk.operators import OperatorKind, of_kind

_Rule = Callable[[Call], Floats | None]
"""Gives the error of a node's output."""

_Judged = tuple[_Rule, float, Arithmetic]
"""How the error of a node is bounded, the roundoff of its products, and its arithmetic."""

_Steps = Sequence[tuple[NodeEvaluator, _Judged | None]]
"""Nodes, each with how it is judged; None where nobody does."""


@dataclass(frozen=True)
class BodyOutput:
    """An output.

    Attributes:
        value: The output before it is rounded to memory.
        memory: The output as it lies in memory.
        tolerance: What a kernel's result may differ by, or what it may at least; what is not floating point only
            where a tie is undecided.
    """

    value: Array
    memory: Array
    tolerance: Floats


class NodeBody:
    """The nodes of the function that a node calls, or the node itself."""

    def __init__(
        self, node: onnx.NodeProto, function: onnx.FunctionProto | None, opsets: Mapping[str, int]
    ) -> None:
        """Prepare.

        Args:
            node: A node of the graph.
            function: The function that it calls, if any.
            opsets: Versions of the domains in the graph.
        """
        if function is None:
            self._nodes, self._inputs, self._outputs = [node], node.input, node.output
        else:
            opsets = {o.domain: o.version for o in function.opset_import}
            self._nodes = by_products(function.node)
            self._inputs, self._outputs = function.input, function.output
        self._opsets = opsets

    def __call__(
        self,
        arrays: Sequence[Array | None],
        weights: Collection[int],
        multiply_roundoff: float,
        dtypes: Sequence[DType],
    ) -> list[BodyOutput]:
        """The outputs that have a name; on all cores where each sample is computed by itself.

        Args:
            arrays: One for each input; None where an optional one is missing.
            weights: Places of the inputs that are constants.
            multiply_roundoff: u_mul.
            dtypes: The types of the outputs in memory.
        """
        return self._judged(bound_error, arrays, weights, multiply_roundoff, dtypes)

    def at_least(
        self,
        arrays: Sequence[Array | None],
        weights: Collection[int],
        multiply_roundoff: float,
        dtypes: Sequence[DType],
    ) -> list[BodyOutput] | None:
        """The same outputs, with less than their tolerances, which takes less (`wpk.checks.floors`).

        The arguments are those of a call.

        Returns:
            None where they have no floors: of an operator whose bound may fall where errors rise, of fp64, which bounds
            count no more of than NumPy rounds, and of what is not floating point.
        """
        given = dict(zip(self._inputs, arrays, strict=False))
        doubles = double_names(self._nodes, _types(given))
        in_double = any(computes_in_double(each, doubles) for each in self._nodes)
        is_judged = all(dtype.is_float for dtype in dtypes) and has_floors(self._nodes)
        if in_double or not is_judged:
            return None
        return self._judged(least_error, arrays, weights, multiply_roundoff, dtypes)

    def _judged(
        self,
        rule: _Rule,
        arrays: Sequence[Array | None],
        weights: Collection[int],
        multiply_roundoff: float,
        dtypes: Sequence[DType],
    ) -> list[BodyOutput]:
        found = self._evaluated(arrays, weights, dtypes, (rule, multiply_roundoff))
        outputs = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [BodyOutput(y, memory, np.asarray(t, np.float64)) for y, memory, t in outputs]

    def in_memory(
        self, arrays: Sequence[Array | None], weights: Collection[int], dtypes: Sequence[DType]
    ) -> list[Array]:
        """The same outputs as they lie in memory, and nothing of a kernel's error, which takes most of the time.

        Args:
            arrays: One for each input; None where an optional one is missing.
            weights: Places of the inputs that are constants.
            dtypes: The types of the outputs in memory.
        """
        return [*self._evaluated(arrays, weights, dtypes, None)]

    def _evaluated(
        self,
        arrays: Sequence[Array | None],
        weights: Collection[int],
        dtypes: Sequence[DType],
        judged: tuple[_Rule, float] | None,
    ) -> Sequence[Array]:
        """Of each output the three arrays of `BodyOutput`, by a rule and u_mul; without these only that in memory."""
        given = dict(zip(self._inputs, arrays, strict=False))
        fixed = {self._inputs[i]: array for i in weights if (array := arrays[i]) is not None}
        free = {name: a for name, a in given.items() if a is not None and name not in fixed}
        wide = {name: Ball(widened(array)) for name, array in fixed.items()}
        cut = cut_of_chain(self._nodes, [name for name in self._outputs if name], free, fixed)
        nodes = self._nodes if cut is None else for_parts(self._nodes, fixed, cut.axis)
        doubles = double_names(nodes, _types(given))
        in_double = [computes_in_double(each, doubles) for each in nodes]
        evaluators = [
            NodeEvaluator(each, self._opsets, narrows=True, in_double=double)
            for each, double in zip(nodes, in_double, strict=True)
        ]
        how: Sequence[_Judged | None] = [None] * len(nodes)
        stored = _rounded
        if judged is not None:
            rule, multiply_roundoff = judged
            products = _multiply_roundoffs(nodes, given, multiply_roundoff)
            how = [
                (rule, DOUBLE.roundoff, DOUBLE) if double else (rule, roundoff, KERNELS)
                for double, roundoff in zip(in_double, products, strict=True)
            ]
            stored = _least if rule is least_error else _whole

        def evaluate(*part: slice) -> list[Array]:
            own = {name: Ball(widened(array[part])) for name, array in free.items()}
            results = self._results(evaluators, wide | own, how)
            return [array for pair in zip(results, dtypes, strict=True) for array in stored(*pair)]

        if cut is None:
            return evaluate()
        before = (slice(None),) * cut.axis
        size = max(array.size for array in free.values())
        return in_parts(cut, size, lambda part: evaluate(*before, part))

    def _results(
        self,
        evaluators: Sequence[NodeEvaluator],
        known: dict[str, Ball],
        how: Sequence[_Judged | None],
    ) -> list[Ball]:
        """The outputs; with their errors where it is said how they are judged."""
        nodes = [each.node for each in evaluators]
        outputs = [name for name in self._outputs if name]
        first = 0
        while first < len(nodes):
            found = stretch(nodes, first, known)
            if found is None:
                _step(evaluators[first], how[first], known)
                first += 1
                continue
            some = slice(first, found.behind)
            steps = list(zip(evaluators[some], how[some], strict=True))
            read = {*outputs, *(name for node in nodes[found.behind :] for name in node.input)}
            kept = [name for node in nodes[some] for name in node.output if name in read]
            used = {name for node in nodes[some] for name in node.input} & known.keys()

            def work(
                part: dict[str, Ball], steps: _Steps = steps, kept: list[str] = kept
            ) -> list[Ball]:
                for step in steps:
                    _step(*step, part)
                return [part[name] for name in kept]

            operands = {name: known[name] for name in used}
            known.update(zip(kept, found.evaluated(operands, work), strict=True))
            first = found.behind
        return [known[name] for name in outputs]


def _step(evaluate: NodeEvaluator, how: _Judged | None, known: dict[str, Ball]) -> None:
    """Evaluate a node whose inputs are known; its outputs are known then."""
    node = evaluate.node
    inputs = [known.get(name) if name else None for name in node.input]
    outputs = evaluate([None if each is None else each.value for each in inputs])
    names = [each for each in node.output if each]
    for place, (name, output) in enumerate(zip(names, outputs, strict=False)):
        error = None
        if how is not None:
            rule, multiply_roundoff, arithmetic = how
            error = rule(Call(evaluate, inputs, outputs, multiply_roundoff, arithmetic, place))
        known[name] = Ball(output, error)


def _types(given: Mapping[str, Array | None]) -> dict[str, np.dtype[np.generic]]:
    return {name: array.dtype for name, array in given.items() if array is not None}


_KEEPS = {
    *of_kind(OperatorKind.VIEW, OperatorKind.MOVEMENT),
    "Abs",
    "Cast",
    "Constant",
    "Neg",
    "Relu",
}
"""Operators whose results have no more digits than their inputs."""


def _multiply_roundoffs(
    nodes: Sequence[onnx.NodeProto], given: Mapping[str, Array | None], multiply_roundoff: float
) -> list[float]:
    """Return u_mul of each node: 16-bit operands are exact as they lie in memory, but not what is computed of them.

    What a body computes in fp32 and multiplies on tensor cores for 16 bits is rounded on the way, as the
    probabilities of an attention are; that of a Cast is the Cast's own error.
    """
    types = [from_numpy(array.dtype) for array in given.values() if array is not None]
    narrow = [each.unit_roundoff for each in types if each in (DType.FP16, DType.BF16)]
    stored, found = {"", *given}, list[float]()
    for node in nodes:
        exact = stored.issuperset(node.input[:2])
        found.append(multiply_roundoff if exact or not narrow else max(multiply_roundoff, *narrow))
        keeps = node.op_type in _KEEPS and stored.issuperset(node.input)
        if keeps or cast_type(node) is not None:
            stored.update(node.output)
    return found


def _whole(result: Ball, dtype: DType) -> tuple[Array, Array, Floats]:
    memory, tolerance = rounded(result.value, dtype.numpy), rounding(result.value, dtype)
    if result.error is not None:
        tolerance += result.error
    return result.value, memory, tolerance


def _least(result: Ball, dtype: DType) -> tuple[Array, ...]:
    value, memory, tolerance = _whole(result, dtype)
    tolerance *= MARGIN
    return value, memory, tolerance


def _rounded(result: Ball, dtype: DType) -> tuple[Array, ...]:
    return (rounded(result.value, dtype.numpy),)
