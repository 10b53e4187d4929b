"""Write ONNX's Attention (opset 23) as the operators that it is defined by.

    Attention(q, k, v, mask)  ->  MatMul(Softmax(MatMul(q, k^T) * scale + mask), v)

with the reshapes and transposes of split heads where the inputs are (batch, sequence, hidden), and
a causal mask as a constant. Heads of keys and values that several heads of queries share are repeated, as
exporters write it. Every later pass then sees one form of attention, and operator fusion joins it again
as far as kernels compute it. Caches of keys and values, and windows, are refused.
"""

from math import sqrt

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, given, rank

_MASK, _FIRST_CACHE = 3, 4
_WINDOWS = ("left_window_size", "right_window_size")


class AttentionParts(Rule[gs.Node]):
    """Replace Attention by two products and a softmax."""

    name = "attention-parts"
    ops = ("Attention",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match what the operators of older opsets can say."""
        reason = _why_not(node)
        return refusal(node, reason) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the products and the softmax."""
        editor.replace(match.outputs[0], _Parts(editor, match).output())


def _why_not(node: gs.Node) -> str | None:
    q, k, v = node.inputs[:3]
    mask = given(node, _MASK)
    if any(given(node, index) is not None for index in range(_FIRST_CACHE, len(node.inputs))):
        return "it has a cache of keys and values"
    if any(not tensor.is_empty() for tensor in node.outputs[1:]):
        return "it gives more than its result"
    if isinstance(q.dtype, int) or q.dtype is None:
        return f"'{q.name}' has a type that NumPy lacks, or none that is known"
    if mask is not None and mask.dtype not in (np.bool_, q.dtype):
        return f"the mask '{mask.name}' has another type than '{q.name}'"
    for tensor in (q, k, v):
        inner = list(tensor.shape or ())[1:]
        if rank(tensor) not in (3, 4) or not all(isinstance(n, int) for n in inner):
            return f"'{tensor.name}' has shape {tensor.shape}: all but the batch must be known"
    if rank(q) == 3 and "q_num_heads" not in node.attrs:
        return "the number of heads is not given"
    queries, keys, values = (_heads(node, index) for index in range(3))
    if keys != values or queries % keys:
        return f"{queries} heads of queries share {keys} of keys and {values} of values"
    if any(node.attrs.get(name, -1) >= 0 for name in _WINDOWS):
        return "it looks at a window of keys"
    if mask is not None and (rank(mask) is None or mask.shape[-1] != k.shape[-2]):
        return f"the mask has shape {mask.shape}, there are {k.shape[-2]} keys"
    if node.attrs.get("softcap", 0.0) and (mask is not None or node.attrs.get("is_causal", 0)):
        return "runtimes do not agree whether scores are capped before or after they are masked"
    return None


def _heads(node: gs.Node, index: int) -> int:
    tensor = node.inputs[index]
    if rank(tensor) == 4:
        return int(tensor.shape[1])
    return int(node.attrs["q_num_heads" if index == 0 else "kv_num_heads"])


class _Parts(NodeParts):
    """The nodes that one Attention becomes."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        super().__init__(editor, node)
        self.q = self._split(0)
        self.k, self.v = (self._repeated(self._split(index)) for index in (1, 2))

    def output(self) -> gs.Tensor:
        """Return the tensor that stands for the node's output."""
        weights = self._weights(self._scores())
        heads: Dims = [*self.q.shape[:3], self.v.shape[3]]
        merged = self.add("MatMul", weights, self.v, shape=heads)
        if rank(self.node.inputs[0]) == 4:
            return merged
        batch, count, queries, size = heads
        rows = self.transposed(merged, [0, 2, 1, 3])
        assert isinstance(count, int)
        assert isinstance(size, int)
        return self.reshaped(rows, [batch, queries, count * size])

    def _split(self, index: int) -> gs.Tensor:
        """An input as (batch, head, row, element)."""
        tensor = self.node.inputs[index]
        if rank(tensor) == 4:
            return tensor
        batch, rows, hidden = tensor.shape
        count = _heads(self.node, index)
        split = self.reshaped(tensor, [batch, rows, count, hidden // count])
        return self.transposed(split, [0, 2, 1, 3])

    def _repeated(self, heads: gs.Tensor) -> gs.Tensor:
        """Keys or values with as many heads as queries have."""
        batch, count, rows, size = heads.shape
        wanted = self.q.shape[1]
        if count == wanted:
            return heads
        times = wanted // count
        apart = self.add("Unsqueeze", heads, self.ints([2]), shape=[batch, count, 1, rows, size])
        wide = self.ints([1, count, times, rows, size])
        each = self.add("Expand", apart, wide, shape=[batch, count, times, rows, size])
        return self.reshaped(each, [batch, wanted, rows, size])

    def _scores(self) -> gs.Tensor:
        """Scaled, capped and masked products of queries and keys."""
        *_, keys, size = self.k.shape
        across = self.transposed(self.k, [0, 1, 3, 2])
        scale = float(self.node.attrs.get("scale", 1.0 / sqrt(size)))
        scores = self.add("MatMul", self.q, across, shape=[*self.q.shape[:3], keys])
        scores = self.add("Mul", scores, self._number(scale))
        cap = float(self.node.attrs.get("softcap", 0.0))
        if cap > 0:
            scores = self.add("Tanh", self.add("Div", scores, self._number(cap)))
            scores = self.add("Mul", scores, self._number(cap))
        if self.node.attrs.get("is_causal", 0):
            unseen = np.full((self.q.shape[2], keys), -np.inf)
            hidden = np.triu(unseen, 1)  # nothing is added where keys are seen
            scores = self.add("Add", scores, self._constant(hidden))
        mask = given(self.node, _MASK)
        if mask is None:
            return scores
        if mask.dtype == np.bool_:
            return self.add("Where", mask, scores, self._number(-np.inf), like=scores)
        return self.add("Add", scores, mask)

    def _weights(self, scores: gs.Tensor) -> gs.Tensor:
        """The softmax; rows without a key that is seen are 0, which only a mask can make."""
        weights = self.add("Softmax", scores, axis=-1)
        if given(self.node, _MASK) is None:
            return weights
        empty = self.add("IsNaN", weights, dtype=np.bool_)
        return self.add("Where", empty, self._number(0.0), weights, like=weights)

    def _number(self, value: float) -> gs.Constant:
        return self._constant(np.array(value))

    def _constant(self, values: np.ndarray) -> gs.Constant:
        dtype = self.node.inputs[0].dtype
        return self.editor.constant(f"{self.node.name}_constant", values, dtype)
