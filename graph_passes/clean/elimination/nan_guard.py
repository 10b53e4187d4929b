"""Remove the NaN guard behind a softmax where it can be proven to do nothing.

    Where(IsNaN(s), c, s)  ->  s        s = Softmax(x), every x finite

A softmax of finite numbers is never NaN: the largest exponent is 0, so its sum is at least 1. One of
a row that is all -inf (a mask that hides everything), or that holds inf or NaN, is NaN, and there
the guard is part of the model. So it goes only where `magnitude_bounds` proves x finite for every
input: in an encoder of token ids that is so, since embeddings are tables and layer normalisation
bounds what enters each attention; behind a floating-point input it is not, and the guard stays, to
be fused into the softmax as two element-wise nodes.
"""

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.clean.elimination.magnitude import magnitude_bounds
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import live_nodes, made_by, why_not_replace


class NanGuard(GraphPass):
    """Remove ``Where(IsNaN(s), c, s)`` behind a softmax of finite numbers.

    The pass has its own loop, since it bounds all tensors once, and only where there is a guard.
    """

    name = "nan-guard"

    def __init__(self, storage: DType = DType.FP32) -> None:
        """Set the type in which tensors will be stored: in fp16 more of them may overflow."""
        self.storage = storage

    def apply(self, graph: gs.Graph) -> PassResult:
        """Remove what is proven idle; refuse the others, naming the tensor without a bound."""
        result = PassResult()
        guards = [node for node in live_nodes(graph, "Where") if _softmax_behind(node)]
        bounds = magnitude_bounds(graph, self.storage) if guards else {}
        editor = GraphEditor(graph)
        for guard in guards:
            softmax = _softmax_behind(guard)
            if softmax is None:
                continue
            logits, guarded = softmax.inputs[0], guard.inputs[2]
            reason = why_not_replace(graph, guard.outputs[0], guarded)
            if logits.name not in bounds:
                reason = f"'{logits.name}' may hold infinities for some input, which softmax to NaN"
            if reason is not None:
                result.refuse(guard, reason)
                continue
            editor.replace(guard.outputs[0], guarded)
            result.rewritten += 1
        return result


def _softmax_behind(guard: gs.Node) -> gs.Node | None:
    if not guard.outputs:
        return None
    test = made_by(guard.inputs[0], "IsNaN")
    if test is None or test.inputs[0] is not guard.inputs[2]:
        return None
    return made_by(guard.inputs[2], "Softmax")
