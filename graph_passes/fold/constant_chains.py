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

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import (
    dims,
    floats,
    given,
    is_float,
    live_nodes,
    made_by,
    rank,
    same_dims,
    split_constant,
    uniform,
    why_shared,
)
from wpk.graph_passes.fold.signs import is_never_negative


class ConstantForms(GraphPass):
    """Write subtraction, division and powers of constants as what is cheaper and merges."""

    name = "constant-forms"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite; a division that is not exact as a product is a refusal."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, "Sub", "Div", "Pow"):
            constant = floats(node.inputs[1])
            if constant is None or isinstance(node.inputs[0], gs.Constant):
                continue
            if node.op == "Pow":
                result.rewritten += int(_rewrite_power(editor, node))
                continue
            if node.op == "Sub":
                op, array = "Add", -constant
            else:
                if not _is_power_of_two(constant):
                    result.refuse(node, f"1 / '{node.inputs[1].name}' is not exact")
                    continue
                op, array = "Mul", 1.0 / constant
            output = node.outputs[0]
            new = editor.constant(f"{node.inputs[1].name}_inverse", array, node.inputs[1].dtype)
            editor.replace(output, editor.add(op, [node.inputs[0], new], like=output))
            result.rewritten += 1
        return result


class ConstantChains(GraphPass):
    """Merge neighbouring additions, multiplications or clips by constants."""

    name = "constant-chains"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Merge pairs that nobody reads in between."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, "Add", "Mul", "Relu", "Clip"):
            if node.op in ("Add", "Mul"):
                first, merged = _inner(node), _merged_constant(node)
            else:
                first, merged = made_by(node.inputs[0], "Relu", "Clip"), None
            if first is None or (node.op in ("Add", "Mul") and merged is None):
                continue
            reason = why_shared(graph, first.outputs[0])
            if reason is not None:
                result.refuse(node, reason)
                continue
            if merged is None:
                result.rewritten += int(_merge_clips(editor, first, node, result))
                continue
            sides = split_constant(first)
            if sides is None:
                continue
            output = node.outputs[0]
            constant = editor.constant(f"{sides[1].name}_merged", merged, sides[1].dtype)
            editor.replace(output, editor.add(node.op, [sides[0], constant], like=output))
            result.rewritten += 1
        return result


def _is_power_of_two(constant: np.ndarray) -> bool:
    mantissa, exponent = np.frexp(constant)
    normal = np.abs(exponent) < 14  # so that the inverse is normal in float16 too
    return bool((np.abs(mantissa) == 0.5).all() and normal.all())


def _rewrite_power(editor: GraphEditor, node: gs.Node) -> bool:
    exponent = uniform(node.inputs[1])
    x, output = node.inputs[0], node.outputs[0]
    if not same_dims(dims(x), dims(output)) or x.dtype != output.dtype:
        return False
    if exponent == 2.0:
        new = editor.add("Mul", [x, x], like=output)
    elif exponent == 0.5 and is_never_negative(x):  # the root of minus infinity is none
        new = editor.add("Sqrt", [x], like=output)
    elif exponent == -1.0:
        new = editor.add("Reciprocal", [x], like=output)
    else:
        return False
    editor.replace(output, new)
    return True


def _inner(node: gs.Node) -> gs.Node | None:
    """Return the node of the same operator, with a constant, that ``node`` continues."""
    sides = split_constant(node)
    first = made_by(sides[0], node.op) if sides is not None else None
    return first if first is not None and split_constant(first) is not None else None


def _merged_constant(node: gs.Node) -> np.ndarray | None:
    """Combine the constants of ``node`` and of the node before it; None if they broaden x."""
    first, sides = _inner(node), split_constant(node)
    inner = split_constant(first) if first is not None else None
    if first is None or sides is None or inner is None:
        return None
    a, b = floats(inner[1]), floats(sides[1])
    if a is None or b is None:
        return None
    if max(a.ndim, b.ndim) > (rank(inner[0]) or 0):
        return None
    size = np.broadcast_shapes(a.shape, b.shape)
    # Neither may be blown up: two vectors along different axes would merge into a matrix.
    if math.prod(size) > max(a.size, b.size):
        return None
    merged: np.ndarray = a + b if node.op == "Add" else a * b
    return merged


def _merge_clips(editor: GraphEditor, first: gs.Node, node: gs.Node, result: PassResult) -> bool:
    output = node.outputs[0]
    if not is_float(output):
        return False
    if first.op == "Relu" and node.op == "Relu":
        editor.replace(output, first.outputs[0])
        return True
    ranges = [_clip_range(first), _clip_range(node)]
    if ranges[0] is None or ranges[1] is None:
        result.refuse(node, "the bounds of a Clip are not constant")
        return False
    (low_1, high_1), (low_2, high_2) = ranges[0], ranges[1]
    low, high = min(max(low_1, low_2), high_2), max(min(high_1, high_2), low_2)
    bounds = [
        editor.constant(f"{node.name}_{name}", np.array(value), output.dtype)
        for name, value in (("low", low), ("high", high))
    ]
    editor.replace(output, editor.add("Clip", [first.inputs[0], *bounds], like=output))
    return True


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
