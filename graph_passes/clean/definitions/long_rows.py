"""Normalise whole maps by means over places and channels, which many blocks share.

    Reshape(InstanceNormalization(Reshape(x, [n, 1, ...]); s, b))  ->  (x - m) / sqrt(v + epsilon) * s + b
    m = mean(x),  v = mean((x - m)^2)        each over places, then over channels

torch writes the group norm of a single group so. One row of a hundred thousand
elements would be the work of a single block, or one of a million that of a cluster, while all others wait. It comes
behind the recognition of norms, which would put the parts together again.
"""

import math

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.group_norm import GroupNorm, group_norm
from wpk.graph_passes.core.query import dims, floats, why_shared

LEAST_ELEMENTS, LEAST_OF_CLUSTERS = 1 << 14, 1 << 20
"""Of a row: shorter ones take a block, or where the target has them a cluster of 16 blocks, no longer than five kernels
take to start and to read it."""


class LongRows(Rule[GroupNorm]):
    """Write norms of whole maps as means and arithmetic."""

    name = "long-rows"
    ops = ("Reshape",)

    def __init__(self, *, clusters: bool = True) -> None:
        """Make the pass; with clusters several blocks share a row that one kernel reads."""
        self._least = LEAST_OF_CLUSTERS if clusters else LEAST_ELEMENTS

    def match(self, graph: gs.Graph, node: gs.Node) -> GroupNorm | Refusal | None:
        """Match norms of one long row for each of the batch."""
        found = group_norm(node)
        if found is None or found.rows[1:2] != [1]:
            return None
        norm = found.norm
        sizes = [size for size in found.shape[1:] if isinstance(size, int)]
        if len(sizes) < len(found.shape) - 1:
            return None
        if math.prod(sizes) < self._least:
            return Refusal(
                norm.name, f"rows of {math.prod(sizes)} elements are work for one kernel"
            )
        if any(floats(tensor) is None for tensor in norm.inputs[1:]):
            return Refusal(norm.name, f"the scale or the bias of '{norm.name}' is not constant")
        reason = why_shared(graph, norm.outputs[0])
        return refusal(norm, reason) or found

    def rewrite(self, editor: GraphEditor, match: GroupNorm) -> None:
        """Write the means, and what is made of them."""
        x, output, norm = match.source, match.last.outputs[0], match.norm
        mean = _mean(editor, x)
        # Each of the two kernels that read what is centred computes it anew: it need not lie in memory.
        centred = editor.add("Sub", [x, mean], like=x)
        variance = _mean(editor, editor.add("Mul", [centred, centred], like=x))
        epsilon = np.array(norm.attrs.get("epsilon", 1e-5), np.float32)
        small = editor.constant(f"{norm.name}_epsilon", epsilon, x.dtype)
        tensor = variance
        for op, others in (("Add", [small]), ("Sqrt", []), ("Reciprocal", [])):
            tensor = editor.add(op, [tensor, *others], like=variance)
        tensor = editor.add("Mul", [editor.add("Sub", [x, mean], like=x), tensor], like=output)
        scale, bias = (floats(each) for each in norm.inputs[1:3])
        for op, values, nothing in (("Mul", scale, 1.0), ("Add", bias, 0.0)):
            if values is not None and not bool((values == nothing).all()):
                number = editor.constant(f"{norm.name}_{op}", values.reshape(()), x.dtype)
                tensor = editor.add(op, [tensor, number], like=output)
        editor.replace(output, tensor)


def _mean(editor: GraphEditor, tensor: gs.Tensor) -> gs.Tensor:
    """The mean over places, then over channels."""
    shape = dims(tensor) or []
    ones = [1] * (len(shape) - 2)
    places = editor.add("GlobalAveragePool", [tensor], like=tensor, shape=[*shape[:2], *ones])
    target = np.array([-1, 1, shape[1], *ones[1:]], np.int64)
    sizes = editor.constant(f"{tensor.name}_channels", target)
    turned = editor.add(
        "Reshape", [places, sizes], like=tensor, shape=[shape[0], 1, shape[1], *ones[1:]]
    )
    return editor.add("GlobalAveragePool", [turned], like=tensor, shape=[shape[0], 1, *ones])
