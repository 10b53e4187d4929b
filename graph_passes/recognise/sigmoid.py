"""Recognise the logistic function written with Exp.

    1 / (1 + exp(-x))        ->  Sigmoid(x)
    n / (1 + exp(-x))        ->  n * Sigmoid(x)        with n = x: SiLU

x * Sigmoid(x) is SiLU's canonical form: two element-wise nodes that fuse into one expression, so
that no operator of a later opset (Swish, 24) is needed. Swish(x, alpha) is brought to that form.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import dims, made_by, same_dims, uniform, why_shared
from wpk.graph_passes.recognise.polynomial import as_polynomial, matches


@dataclass(frozen=True)
class _Logistic:
    """A quotient by 1 + exp(-x), or a Swish, which has no exponential."""

    node: gs.Node
    x: gs.Tensor
    exponential: gs.Node | None = None


class RecognizeSigmoid(Rule[_Logistic]):
    """Replace quotients by ``1 + exp(-x)`` by Sigmoid, and Swish by ``x * Sigmoid(x)``."""

    name = "recognize-sigmoid"
    ops = ("Div", "Reciprocal", "Swish")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Logistic | Refusal | None:
        """Match; exp(-x) that is read elsewhere keeps its quotient."""
        if node.op == "Swish":
            x = node.inputs[0]
            if isinstance(x.dtype, int) and node.attrs.get("alpha", 1.0) != 1.0:
                return Refusal(node.name, f"'{x.name}' has a type that NumPy lacks")
            return _Logistic(node, x)
        found = _denominator(node.inputs[-1])
        if found is None:
            return None
        exponential, x = found
        reason = why_shared(graph, exponential.outputs[0])
        reason = reason or why_shared(graph, node.inputs[-1])
        reason = reason or _why_broader(node, x)
        return refusal(node, reason) or _Logistic(node, x, exponential)

    def rewrite(self, editor: GraphEditor, match: _Logistic) -> None:
        """Write Sigmoid, and the numerator's multiplication."""
        node, exponential = match.node, match.exponential
        if exponential is None:
            _write_swish(editor, node)
            return
        output = node.outputs[0]
        sigmoid = editor.add("Sigmoid", [match.x], like=exponential.outputs[0])
        if node.op == "Div" and uniform(node.inputs[0]) != 1.0:
            sigmoid = editor.add("Mul", [node.inputs[0], sigmoid], like=output)
        editor.replace(output, sigmoid)


def _why_broader(node: gs.Node, x: gs.Tensor) -> str | None:
    """Say why x has not the shape of what its sigmoid would replace: a constant broadens it."""
    replaced = [node.inputs[-1]]
    if node.op != "Div" or uniform(node.inputs[0]) == 1.0:
        replaced.append(node.outputs[0])
    for tensor in replaced:
        if not same_dims(dims(x), dims(tensor)):
            return f"'{tensor.name}' has shape {dims(tensor)}, '{x.name}' has {dims(x)}"
    return None


def _denominator(tensor: gs.Tensor) -> tuple[gs.Node, gs.Tensor] | None:
    """Read ``tensor`` as 1 + exp(-x); return the Exp node and x."""
    total = made_by(tensor, "Add")
    if total is None:
        return None
    for operand in total.inputs:
        exponential = made_by(operand, "Exp")
        if exponential is None:
            continue
        if not matches(as_polynomial(tensor, operand), {(0, 0): 1.0, (1, 0): 1.0}, 0.0):
            return None
        negated = exponential.inputs[0]
        node = made_by(negated, "Neg", "Mul", "Sub")
        for x in node.inputs if node is not None else []:
            if not isinstance(x, gs.Constant) and matches(
                as_polynomial(negated, x), {(1, 0): -1.0}, 0.0
            ):
                return exponential, x
    return None


def _write_swish(editor: GraphEditor, node: gs.Node) -> None:
    x, output = node.inputs[0], node.outputs[0]
    alpha = float(node.attrs.get("alpha", 1.0))
    argument = x
    if alpha != 1.0:
        factor = editor.constant(f"{node.name}_alpha", np.array(alpha), x.dtype)
        argument = editor.add("Mul", [x, factor], like=output)
    sigmoid = editor.add("Sigmoid", [argument], like=output)
    editor.replace(output, editor.add("Mul", [x, sigmoid], like=output))
