"""Recognise LayerNormalization written with reductions.

    d / sqrt(mean(d^2) + eps) * gamma + beta    d = x - mean(x)    ->  LayerNormalization(x, ...)

The means go over the trailing axes, or over the channels of an image; gamma and beta are constants over these axes (absent: 1 and
none). Ba, Kiros, Hinton, "Layer Normalization", arXiv 1607.06450, equation 4.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import made_by
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.graph_passes.recognise.mean_square import divided_by_root, why_not_rows_or_channels
from wpk.graph_passes.recognise.norm_of_rows import following, write_norm

LAYER_NORM_OPSET = 17

_OP = "LayerNormalization"


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
    in_double = False

    def match(self, graph: gs.Graph, node: gs.Node) -> _Normalisation | Refusal | None:
        """Look around a root of a mean of squares."""
        found = _around(node)
        if found is None:
            return None
        reason = _why_not(graph, found)
        return refusal(found.quotient, reason) or found

    def rewrite(self, editor: GraphEditor, match: _Normalisation) -> None:
        """Write LayerNormalization, which takes the scale and the bias that follow."""
        last = match.quotient
        gamma = following(editor, last, "Mul", match.axes)
        if gamma is not None:
            last = last.outputs[0].outputs[0]
        beta = following(editor, last, "Add", match.axes)
        if beta is not None:
            last = last.outputs[0].outputs[0]
        write_norm(editor, _OP, match.x, match.axes, match.epsilon, gamma, beta, last)


def _around(root: gs.Node) -> _Normalisation | None:
    """Match from ``sqrt(mean(d^2) + eps)`` both ways."""
    found = divided_by_root(root)
    difference = made_by(found.values, "Sub") if found is not None else None
    mean = made_by(difference.inputs[1], "ReduceMean") if difference is not None else None
    if found is None or difference is None or mean is None:
        return None
    if mean.inputs[0] is not difference.inputs[0]:
        return None
    if reduced_axes(mean) != found.axes or not mean.attrs.get("keepdims", 1):
        return None
    nodes = [mean, difference, *found.nodes]
    return _Normalisation(difference.inputs[0], found.axes, found.epsilon, nodes, found.quotient)


def _why_not(graph: gs.Graph, match: _Normalisation) -> str | None:
    if graph.opset < LAYER_NORM_OPSET:
        return f"LayerNormalization needs opset {LAYER_NORM_OPSET}, the graph has {graph.opset}"
    return why_not_rows_or_channels(graph, match.x, match.axes, match.nodes, match.quotient)
