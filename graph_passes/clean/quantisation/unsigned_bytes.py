"""Store quantised tensors whose zero point is the least int8 without a sign.

    QuantizeLinear(x, s, -128)  ->  q in int8, DequantizeLinear(q, s, -128)
    QuantizeLinear(x, s, 0)     ->  q in uint8, DequantizeLinear(q, s, 0)

So are the tensors behind a Relu: the least number is 0. Both forms stand for the same numbers, and limit
them to the same; in the second one the zeros that a convolution pads with are zeros in memory, and a
product of bytes needs no correction.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.byte_products import byte_type
from wpk.graph_passes.core.query import given, is_graph_output, is_op, uniform

_LEAST = -128
_ZERO = 2


class UnsignedBytes(Rule[gs.Node]):
    """Replace int8 with a zero point of -128 by uint8 with none."""

    name = "unsigned-bytes"
    ops = ("QuantizeLinear",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal | None:
        """Match a tensor that is read by nothing but its DequantizeLinear."""
        q = node.outputs[0]
        if uniform(given(node, _ZERO)) != _LEAST:
            return None
        reason = f"'{q.name}' is a graph output" if is_graph_output(graph, q) else None
        reason = reason or next((why for why in map(_why_not_restored, q.outputs) if why), None)
        return refusal(node, reason) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write both sides anew."""
        q = match.outputs[0]
        zero = editor.constant(
            f"{q.name}_no_zero_point", np.zeros(match.inputs[_ZERO].shape, np.uint8)
        )
        attrs = {key: value for key, value in match.attrs.items() if key != "output_dtype"}
        inputs = [*match.inputs[:_ZERO], zero]
        stored = editor.add(
            "QuantizeLinear", inputs, like=q, name=f"{q.name}_unsigned", attrs=attrs
        )
        stored.dtype = np.dtype(np.uint8)
        for reader in list(q.outputs):
            reader.inputs = [stored, reader.inputs[1], zero]


def _why_not_restored(reader: gs.Node) -> str | None:
    if not is_op(reader, "DequantizeLinear"):
        return f"'{reader.name}' reads the integers"
    if uniform(given(reader, _ZERO)) != _LEAST or byte_type(reader.inputs[0]) is None:
        return f"'{reader.name}' takes them from another zero point"
    return None
