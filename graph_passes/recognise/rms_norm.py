"""Recognise RMSNormalization written with a reduction.

    x / sqrt(mean(x^2) + eps) * gamma    ->  RMSNormalization(x, gamma)

The mean goes over the trailing axes, or over the channels of an image; gamma is a constant over these axes (absent: 1). Casts on either
side stay, and fusion takes them into the operator. Zhang, Sennrich, "Root Mean Square Layer
Normalization", arXiv 1910.07467, equation 4. ONNX has the operator from opset 23 on, to which the graph
is raised where it can be.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.definitions.modern_forms import ModernForms
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import RMS_NORM
from wpk.graph_passes.recognise.mean_square import (
    MeanSquare,
    divided_by_root,
    why_not_rows_or_channels,
)
from wpk.graph_passes.recognise.norm_of_rows import following, write_norm

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
        reason = why_not_rows_or_channels(
            graph, found.values, found.axes, found.nodes, found.quotient
        )
        return refusal(found.quotient, reason or why_too_old(graph)) or found

    def rewrite(self, editor: GraphEditor, match: MeanSquare) -> None:
        """Write RMSNormalization, which takes the scale that follows."""
        ModernForms(RMS_NORM_OPSET).apply(editor.graph)
        last = match.quotient
        gamma = following(editor, last, "Mul", match.axes)
        if gamma is not None:
            last = last.outputs[0].outputs[0]
        write_norm(editor, RMS_NORM, match.values, match.axes, match.epsilon, gamma, None, last)


def why_too_old(graph: gs.Graph) -> str | None:
    """Say why a graph has no RMSNormalization and cannot be raised to an opset that has it."""
    stays = ModernForms(RMS_NORM_OPSET).refusals(graph)
    if not stays:
        return None
    return f"RMSNormalization needs opset {RMS_NORM_OPSET}, the graph has {graph.opset}: {stays[0].reason}"
