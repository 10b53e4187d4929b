"""Recognise HardSigmoid and HardSwish written with Clip.

    clip(x / 6 + 1/2, 0, 1)  ->  HardSigmoid(x, alpha = 1/6, beta = 1/2)
    x * clip(x + 3, 0, 6) / 6  and  x * HardSigmoid(x)  ->  HardSwish(x)

A factor may stand inside the Clip or outside: c * clip(a x + b, 0, h) is the first form when
c a = 1/6, c b = 1/2, c h = 1. Howard et al., "Searching for MobileNetV3", arXiv 1905.02244, 5.2.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import Refusal, Replacement, ReplacementRule
from wpk.graph_passes.core.query import close, dims, given, same_dims, uniform
from wpk.graph_passes.recognise.polynomial import (
    Polynomial,
    arithmetic_results,
    arithmetic_sources,
    as_polynomial,
    interior,
    why_read_elsewhere,
)

HARD_SWISH_OPSET = 14
_ALPHA, _BETA = 1 / 6, 0.5


class RecognizeHardSwish(ReplacementRule):
    """Replace the arithmetic around a Clip or HardSigmoid by one node."""

    name = "recognize-hard-swish"
    ops = ("Clip", "HardSigmoid")
    in_double = False

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Look around a Clip from 0 or a HardSigmoid; HardSwish goes first."""
        found = _find(node)
        if found is None:
            return None
        op, x, root = found
        reason = why_read_elsewhere(graph, interior(root, x, node), root)
        if op == "HardSwish" and graph.opset < HARD_SWISH_OPSET:
            reason = f"HardSwish needs opset {HARD_SWISH_OPSET}, the graph has {graph.opset}"
        if not same_dims(dims(x), dims(root)):
            reason = f"'{root.name}' has shape {dims(root)}, '{x.name}' has {dims(x)}"
        if reason is not None:
            return Refusal(node.name, reason)
        attributes = {"alpha": _ALPHA, "beta": _BETA} if op == "HardSigmoid" else {}
        return Replacement(root, op, [x], attributes)


def _find(node: gs.Node) -> tuple[str, gs.Tensor, gs.Tensor] | None:
    """Return (operator, x, root) for the widest form around ``node``."""
    wanted = [("HardSwish", (1, 1))]
    if node.op == "Clip":
        wanted.append(("HardSigmoid", (0, 1)))
    for x in arithmetic_sources(node.inputs[0]):
        ramp = _ramp(node, x)
        if ramp is None:
            continue
        for op, monomial in wanted:
            for root in arithmetic_results(node.outputs[0]):
                polynomial = as_polynomial(root, x, node.outputs[0])
                if _fits(ramp, polynomial, monomial):
                    return op, x, root
    return None


def _ramp(node: gs.Node, x: gs.Tensor) -> tuple[float, float, float] | None:
    """Read ``node`` as clip(a x + b, 0, h); return (a, b, h)."""
    if node.op == "HardSigmoid":
        if node.inputs[0] is not x:
            return None
        return float(node.attrs.get("alpha", 0.2)), float(node.attrs.get("beta", 0.5)), 1.0
    low, high = uniform(given(node, 1)), uniform(given(node, 2))
    inner = as_polynomial(node.inputs[0], x)
    if low != 0.0 or high is None or inner is None or not set(inner) <= {(0, 0), (1, 0)}:
        return None
    return inner.get((1, 0), 0.0), inner.get((0, 0), 0.0), high


def _fits(
    ramp: tuple[float, float, float], polynomial: Polynomial | None, monomial: tuple[int, int]
) -> bool:
    if polynomial is None or set(polynomial) != {monomial}:
        return False
    factor = polynomial[monomial]
    slope, offset, top = (factor * value for value in ramp)
    return close(slope, _ALPHA) and close(offset, _BETA) and close(top, 1.0)
