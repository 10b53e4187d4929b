"""Recognise LayerNormalization written with reductions.

    d / sqrt(mean(d^2) + eps) * gamma + beta    d = x - mean(x)    ->  LayerNormalization(x, ...)

The means go over the trailing axes; gamma and beta are constants over these axes (absent: 1 and
none). Ba, Kiros, Hinton, "Layer Normalization", arXiv 1607.06450, equation 4.
Root-mean-square normalisation (no mean) has no operator before opset 23 and stays a reduction with
element-wise neighbours, which fusion makes one kernel of.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    made_by,
    rank,
    same_dims,
    split_constant,
    static_shape,
    uniform,
)
from wpk.graph_passes.core.reductions import reduced_axes

LAYER_NORM_OPSET = 17


@dataclass(frozen=True)
class _Normalisation:
    """The parts of a normalisation.

    Attributes:
        x: What is normalised.
        axes: Along which the means go.
        epsilon: Added to the variance.
        nodes: Those that the operator replaces, save the last.
        quotient: The last node, which computes the quotient.
    """

    x: gs.Tensor
    axes: list[int]
    epsilon: float
    nodes: list[gs.Node]
    quotient: gs.Node


class RecognizeLayerNorm(Rule[_Normalisation]):
    """Replace the arithmetic of layer normalisation by one node, with scale and bias inside."""

    name = "recognize-layer-norm"
    ops = ("Sqrt",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Normalisation | Refusal | None:
        """Look around a root of a mean of squares."""
        found = _around(node)
        if found is None:
            return None
        reason = _why_not(graph, found)
        return refusal(found.quotient, reason) or found

    def rewrite(self, editor: GraphEditor, match: _Normalisation) -> None:
        """Write LayerNormalization, which takes the scale and the bias that follow."""
        shape = [int(dim) for dim in match.x.shape[match.axes[0] :]]
        last = match.quotient
        gamma = _following(editor.graph, last, "Mul", shape)
        if gamma is not None:
            last = last.outputs[0].outputs[0]
        beta = _following(editor.graph, last, "Add", shape)
        if beta is not None:
            last = last.outputs[0].outputs[0]
        if gamma is None:
            ones = np.ones(shape, match.x.dtype)
            gamma = editor.constant(f"{match.quotient.name}_ones", ones)
        output = last.outputs[0]
        new = editor.add(
            "LayerNormalization",
            [match.x, gamma] if beta is None else [match.x, gamma, beta],
            like=output,
            attrs={"axis": match.axes[0], "epsilon": match.epsilon, "stash_type": 1},
        )
        editor.replace(output, new)


def _around(root: gs.Node) -> _Normalisation | None:
    """Match from ``sqrt(mean(d^2) + eps)`` both ways."""
    shifted = made_by(root.inputs[0], "Add")
    sides = split_constant(shifted) if shifted is not None else None
    epsilon = uniform(sides[1]) if sides is not None else None
    variance = made_by(sides[0], "ReduceMean") if sides is not None else None
    square = made_by(variance.inputs[0], "Pow", "Mul") if variance is not None else None
    if shifted is None or epsilon is None or variance is None or square is None:
        return None
    squared_twice = square.op == "Mul" and square.inputs[0] is square.inputs[1]
    if not squared_twice and (square.op != "Pow" or uniform(square.inputs[1]) != 2.0):
        return None
    centred = square.inputs[0]
    difference = made_by(centred, "Sub")
    mean = made_by(difference.inputs[1], "ReduceMean") if difference is not None else None
    axes = reduced_axes(variance)
    if difference is None or mean is None or mean.inputs[0] is not difference.inputs[0]:
        return None
    keeps = mean.attrs.get("keepdims", 1) and variance.attrs.get("keepdims", 1)
    if axes is None or reduced_axes(mean) != axes or not keeps:
        return None
    nodes = [mean, difference, square, variance, shifted, root]
    quotient = _quotient(root, centred, nodes)
    if quotient is None:
        return None
    return _Normalisation(difference.inputs[0], axes, epsilon, nodes, quotient)


def _quotient(root: gs.Node, centred: gs.Tensor, nodes: list[gs.Node]) -> gs.Node | None:
    """Find d / sqrt or d * (1 / sqrt); appends the reciprocal to ``nodes``."""
    for reader in root.outputs[0].outputs:
        if reader.op == "Div" and reader.inputs[0] is centred:
            return reader
        one_over = reader.op == "Div" and uniform(reader.inputs[0]) == 1.0
        if reader.op == "Reciprocal" or one_over:
            for product in reader.outputs[0].outputs:
                if product.op == "Mul" and any(t is centred for t in product.inputs):
                    nodes.append(reader)
                    return product
    return None


def _why_not(graph: gs.Graph, match: _Normalisation) -> str | None:
    normal = match.quotient
    if graph.opset < LAYER_NORM_OPSET:
        return f"LayerNormalization needs opset {LAYER_NORM_OPSET}, the graph has {graph.opset}"
    if isinstance(match.x.dtype, int):
        return f"'{match.x.name}' has a type that NumPy lacks"
    dimensions = rank(match.x) or 0
    if match.axes != list(range(dimensions - len(match.axes), dimensions)):
        return f"it normalises axes {match.axes} of {dimensions}, which are not the last ones"
    shape = static_shape(gs.Variable("", None, (match.x.shape or [])[match.axes[0] :]))
    if shape is None:
        return f"the normalised dimensions of '{match.x.name}' are free"
    if not same_dims(dims(match.x), dims(normal.outputs[0])):
        return f"'{normal.outputs[0].name}' has another shape than '{match.x.name}'"
    inside = {id(node) for node in [*match.nodes, normal]}
    for node in match.nodes:
        tensor = node.outputs[0]
        if is_graph_output(graph, tensor) or any(id(r) not in inside for r in tensor.outputs):
            return f"'{tensor.name}' inside the pattern is read elsewhere"
    return None


def _following(graph: gs.Graph, node: gs.Node, op: str, shape: list[int]) -> gs.Tensor | None:
    """Return the constant that the only reader applies, when it spans the normalised axes."""
    tensor = node.outputs[0]
    if is_graph_output(graph, tensor) or len(tensor.outputs) != 1 or tensor.outputs[0].op != op:
        return None
    sides = split_constant(tensor.outputs[0])
    if sides is None or list(sides[1].shape) != shape or sides[1].dtype != tensor.dtype:
        return None
    return sides[1]
