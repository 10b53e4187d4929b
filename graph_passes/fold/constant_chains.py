"""Bring arithmetic with constants to one form, and one node.

    x - c              ->  x + (-c)
    x / c              ->  x * (1 / c)        where 1 / c is exact: c is a power of two
    (x + a) + b        ->  x + (a + b)
    (x * a) * b        ->  x * (a * b)
    x ** 2, x ** -1    ->  x * x, Reciprocal(x)
    x ** 0.5           ->  Sqrt(x)            where x is never negative
    Relu(Relu(x))      ->  Relu(x)
    Relu(Clip(x, a, b)), Clip(Relu(x), a, b), Clip(Clip(x, ...))  ->  Clip(x, a', b')

Sums and products of constants are taken in float64 and rounded once.
"""

import math

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Refusal, Replacement, ReplacementRule, refusal
from wpk.graph_passes.core.query import (
    dims,
    floats,
    given,
    is_float,
    made_by,
    rank,
    same_dims,
    split_constant,
    uniform,
    why_shared,
)
from wpk.graph_passes.fold.signs import is_never_negative


class ConstantForms(ReplacementRule):
    """Write subtraction, division and powers of constants as what is cheaper and merges."""

    name = "constant-forms"
    ops = ("Sub", "Div", "Pow")

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match operations by a constant; a division that is not exact as a product stays."""
        x, old = node.inputs
        constant = floats(old)
        if constant is None or isinstance(x, gs.Constant):
            return None
        if node.op == "Pow":
            return _power(node)
        if node.op == "Sub":
            op, array = "Add", -constant
        elif _is_power_of_two(constant):
            op, array = "Mul", 1.0 / constant
        else:
            return Refusal(node.name, f"1 / '{old.name}' is not exact")
        inverse = NewConstant(f"{old.name}_inverse", array, old.dtype)
        return Replacement(node.outputs[0], op, [x, inverse])


class ConstantChains(ReplacementRule):
    """Merge neighbouring additions, multiplications or clips by constants."""

    name = "constant-chains"
    ops = ("Add", "Mul", "Relu", "Clip")

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match pairs that nobody reads in between."""
        if node.op in ("Relu", "Clip"):
            return _clips(graph, node)
        outer = split_constant(node)
        first = made_by(outer[0], node.op) if outer is not None else None
        inner = split_constant(first) if first is not None else None
        if outer is None or inner is None:
            return None
        merged = _merged(node.op, inner[1], outer[1], rank(inner[0]) or 0)
        if merged is None:
            return None
        constant = NewConstant(f"{inner[1].name}_merged", merged, inner[1].dtype)
        reason = why_shared(graph, outer[0])
        return refusal(node, reason) or Replacement(node.outputs[0], node.op, [inner[0], constant])


def _is_power_of_two(constant: np.ndarray) -> bool:
    mantissa, exponent = np.frexp(constant)
    normal = np.abs(exponent) < 14  # so that the inverse is normal in float16 too
    return bool((np.abs(mantissa) == 0.5).all() and normal.all())


def _power(node: gs.Node) -> Replacement | None:
    exponent = uniform(node.inputs[1])
    x, output = node.inputs[0], node.outputs[0]
    if not same_dims(dims(x), dims(output)) or x.dtype != output.dtype:
        return None
    if exponent == 2.0:
        return Replacement(output, "Mul", [x, x])
    if exponent == 0.5 and is_never_negative(x):  # the root of minus infinity is none
        return Replacement(output, "Sqrt", [x])
    return Replacement(output, "Reciprocal", [x]) if exponent == -1.0 else None


def _merged(op: str, first: gs.Tensor, second: gs.Tensor, dimensions: int) -> np.ndarray | None:
    """Combine the constants of two nodes; None if they broaden what has so many dimensions."""
    a, b = floats(first), floats(second)
    if a is None or b is None or max(a.ndim, b.ndim) > dimensions:
        return None
    size = np.broadcast_shapes(a.shape, b.shape)
    # Neither may be blown up: two vectors along different axes would merge into a matrix.
    if math.prod(size) > max(a.size, b.size):
        return None
    merged: np.ndarray = a + b if op == "Add" else a * b
    return merged


def _clips(graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
    """Match a Relu or Clip of another one."""
    first, output = made_by(node.inputs[0], "Relu", "Clip"), node.outputs[0]
    if first is None:
        return None
    reason = why_shared(graph, first.outputs[0])
    if reason is not None:
        return Refusal(node.name, reason)
    if not is_float(output):
        return None
    if first.op == "Relu" and node.op == "Relu":
        return Replacement(output, None, [first.outputs[0]])
    ranges = [_clip_range(first), _clip_range(node)]
    if ranges[0] is None or ranges[1] is None:
        return Refusal(node.name, "the bounds of a Clip are not constant")
    (low_1, high_1), (low_2, high_2) = ranges[0], ranges[1]
    low, high = min(max(low_1, low_2), high_2), max(min(high_1, high_2), low_2)
    bounds = [
        NewConstant(f"{node.name}_{name}", np.array(value), output.dtype)
        for name, value in (("low", low), ("high", high))
    ]
    return Replacement(output, "Clip", [first.inputs[0], *bounds])


def _clip_range(node: gs.Node) -> tuple[float, float] | None:
    if node.op == "Relu":
        return 0.0, math.inf
    bounds = []
    for index, default in ((1, -math.inf), (2, math.inf)):
        tensor = given(node, index)
        value = default if tensor is None else uniform(tensor)
        if value is None:
            return None
        bounds.append(value)
    return bounds[0], bounds[1]
