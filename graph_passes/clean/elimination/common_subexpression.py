"""Compute once what is computed twice.

    y1 = op(a, b), y2 = op(a, b)  ->  y2 = y1        same operator, attributes and inputs

Inputs are the same when they are one tensor, or two constants with equal content. Calls of local
functions count too: they are pure.
"""

import hashlib
from collections.abc import Hashable

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import RANDOM_OPS, values, why_not_replace_all

# Constants above this are the same only when they are one tensor: hashing all weights costs more
# than it finds.
_MAX_HASHED_BYTES = 1 << 16


class CommonSubexpressions(GraphPass):
    """Redirect the readers of a repeated node to the first one.

    The pass has its own loop, since it remembers the nodes that it has seen.
    """

    name = "common-subexpressions"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Merge, in topological order, so that a repeated chain falls in one run."""
        result = PassResult()
        editor = GraphEditor(graph)
        seen: dict[Hashable, gs.Node] = {}
        for node in list(graph.nodes):
            key = _key(node)
            if key is None:
                continue
            first = seen.setdefault(key, node)
            if first is node:
                continue
            pairs = [
                (old, new)
                for old, new in zip(node.outputs, first.outputs, strict=True)
                if not old.is_empty()
            ]
            reason = why_not_replace_all(graph, pairs)
            if reason is not None:
                result.refuse(node, reason)
                continue
            for old, new in pairs:
                editor.replace(old, new)
            result.rewritten += 1
        return result


def _key(node: gs.Node) -> Hashable | None:
    """Describe what ``node`` computes; None for what must not be merged."""
    if not node.outputs or node.op in (*RANDOM_OPS, "Dropout"):
        return None
    attributes: list[tuple[str, Hashable]] = []
    for name, value in sorted(node.attrs.items()):
        described = _describe_attribute(value)
        if described is None:
            return None
        attributes.append((name, described))
    present = tuple(not tensor.is_empty() for tensor in node.outputs)
    inputs = tuple(_describe_input(tensor) for tensor in node.inputs)
    return (node.op, node.domain or "", tuple(attributes), inputs, present)


def _describe_attribute(value: object) -> Hashable | None:
    if isinstance(value, gs.Constant):
        return _describe_input(value)
    if isinstance(value, (int, float, str)):
        return (type(value).__name__, value)
    if isinstance(value, list) and all(isinstance(item, (int, float, str)) for item in value):
        return tuple(value)
    return None


def _describe_input(tensor: gs.Tensor) -> Hashable:
    if tensor.is_empty():
        return None
    if isinstance(tensor, gs.Constant):
        size = int(np.prod(tensor.shape, dtype=np.int64))
        array = values(tensor) if size <= _MAX_HASHED_BYTES // 8 else None
        if array is not None:
            digest = hashlib.sha256(array.tobytes()).hexdigest()
            return (str(array.dtype), array.shape, digest)
    return id(tensor)
