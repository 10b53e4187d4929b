"""Recognise RMSNormalization written with a reduction.

    x / sqrt(mean(x^2) + eps) * gamma    ->  RMSNormalization(x, gamma)

The mean goes over the trailing axes; gamma is a constant over these axes (absent: 1). Casts on either
side stay, and fusion takes them into the operator. Zhang, Sennrich, "Root Mean Square Layer
Normalization", arXiv 1910.07467, equation 4. ONNX has the operator from opset 23 on, to which the graph
is raised where it can be.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.modern_forms import ModernForms
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.recognise.mean_square import (
    MeanSquare,
    divided_by_root,
    following,
    row_shape,
    why_not_rows,
)

RMS_NORM_OPSET = 23


class RecognizeRmsNorm(Rule[MeanSquare]):
    """Replace the arithmetic of root-mean-square normalisation by one node, with the scale inside."""

    name = "recognize-rms-norm"
    ops = ("Sqrt",)
    in_double = False

    def match(self, graph: gs.Graph, node: gs.Node) -> MeanSquare | Refusal | None:
        """Look around a root of a mean of squares."""
        found = divided_by_root(node)
        if found is None:
            return None
        reason = why_not_rows(graph, found.values, found.axes, found.nodes, found.quotient)
        return refusal(found.quotient, reason or why_too_old(graph)) or found

    def rewrite(self, editor: GraphEditor, match: MeanSquare) -> None:
        """Write RMSNormalization, which takes the scale that follows."""
        ModernForms(RMS_NORM_OPSET).apply(editor.graph)
        shape = row_shape(match.values, match.axes) or []
        last = match.quotient
        gamma = following(editor.graph, last, "Mul", shape)
        if gamma is not None:
            last = last.outputs[0].outputs[0]
        else:
            ones = np.ones(shape, match.values.dtype)
            gamma = editor.constant(f"{match.quotient.name}_ones", ones)
        output = last.outputs[0]
        attrs = {"axis": match.axes[0], "epsilon": match.epsilon, "stash_type": 1}
        new = editor.add("RMSNormalization", [match.values, gamma], like=output, attrs=attrs)
        editor.replace(output, new)


def why_too_old(graph: gs.Graph) -> str | None:
    """Say why a graph has no RMSNormalization and cannot be raised to an opset that has it."""
    stays = ModernForms(RMS_NORM_OPSET).refusals(graph)
    if not stays:
        return None
    return f"RMSNormalization needs opset {RMS_NORM_OPSET}, the graph has {graph.opset}: {stays[0].reason}"
