"""Recognise GELU written out in arithmetic.

    0.5 x (1 + erf(x / sqrt 2))                            ->  Gelu(x)
    0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))      ->  Gelu(x, approximate = tanh)

In any order of the arithmetic (`wpk.graph_passes.recognise.polynomial`). Hendrycks and Gimpel, "Gaussian
Error Linear Units", arXiv 1606.08415, section 2. Gelu exists from opset 20 on, see `modern_forms`.
"""

import math

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import Refusal, Replacement, ReplacementRule, refusal
from wpk.graph_passes.core.query import dims, same_dims
from wpk.graph_passes.recognise.polynomial import (
    arithmetic_results,
    arithmetic_sources,
    as_polynomial,
    interior,
    matches,
    why_read_elsewhere,
)

GELU_OPSET = 20

_INNER = {
    "Erf": {(1, 0): math.sqrt(0.5)},
    "Tanh": {(1, 0): math.sqrt(2 / math.pi), (3, 0): 0.044715 * math.sqrt(2 / math.pi)},
}
_OUTER = {(1, 0): 0.5, (1, 1): 0.5}
_APPROXIMATE = {"Erf": "none", "Tanh": "tanh"}
# Constants of a float32 graph are right to 6e-8, products of two of them to 2e-7. Coarser constants
# (0.7979) are another function, wrong against the model by more than rounding; they stay.
_RELATIVE = 1e-6


class RecognizeGelu(ReplacementRule):
    """Replace the arithmetic of GELU by one node."""

    name = "recognize-gelu"
    ops = ("Erf", "Tanh")
    in_double = False

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Look around an Erf or Tanh; one whose argument fits and whose rest does not stays."""
        x = _argument(node)
        if x is None:
            return None
        root = _root(node, x)
        if root is None:
            return Refusal(node.name, f"what reads '{node.outputs[0].name}' is not a GELU")
        reason = _why_not(graph, node, x, root)
        return refusal(node, reason) or Replacement(
            root, "Gelu", [x], {"approximate": _APPROXIMATE[node.op]}
        )


def _argument(node: gs.Node) -> gs.Tensor | None:
    """Return the x that the argument of erf or tanh is GELU's polynomial of."""
    for x in arithmetic_sources(node.inputs[0]):
        if matches(as_polynomial(node.inputs[0], x), _INNER[node.op], _RELATIVE):
            return x
    return None


def _root(node: gs.Node, x: gs.Tensor) -> gs.Tensor | None:
    for root in arithmetic_results(node.outputs[0]):
        if matches(as_polynomial(root, x, node.outputs[0]), _OUTER, _RELATIVE):
            return root
    return None


def _why_not(graph: gs.Graph, node: gs.Node, x: gs.Tensor, root: gs.Tensor) -> str | None:
    if graph.opset < GELU_OPSET:
        return f"Gelu needs opset {GELU_OPSET}, the graph has {graph.opset}"
    if not same_dims(dims(x), dims(root)):
        return f"'{root.name}' has shape {dims(root)}, '{x.name}' has {dims(x)}"
    return why_read_elsewhere(graph, interior(root, x, node), root)
