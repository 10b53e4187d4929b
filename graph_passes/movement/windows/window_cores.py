"""Attention whose matrices follow each other, as parts of a graph: what comes between projections and their result."""

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import VIEWS, is_elementwise, is_floating
from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    is_op,
    producer,
    rank,
    same_dims,
    static_shape,
)
from wpk.graph_passes.movement.chains.element_places import first_places, moved_runs, moves

_LEAST_RANK, _MOST_VIEWS = 4, 4
_MOST_HEAD = 256
"""Elements of a head: what one kernel of attention sums in registers."""


@dataclass(frozen=True)
class Core:
    """Two products and the softmax between them.

    Attributes:
        q: Left operand of the first product.
        k: Its right operand, keys as columns.
        v: Right operand of the last product.
        nodes: From the first product to the last.
    """

    q: gs.Tensor
    k: gs.Tensor
    v: gs.Tensor
    nodes: tuple[gs.Node, ...]

    @property
    def result(self) -> gs.Tensor:
        """What the last product gives."""
        return self.nodes[-1].outputs[0]

    @property
    def tokens(self) -> int:
        """Rows of each matrix."""
        return int(self.result.shape[-2])

    def reads(self, operand: gs.Tensor, source: gs.Tensor) -> bool:
        """Whether row i of matrix w of an operand has elements of row ``w * tokens + i`` of the source only."""
        shape, width = static_shape(operand), (static_shape(source) or [0])[-1]
        found = moved_runs(operand, source)
        if shape is None or found is None or not width:
            return False
        rows = found[0] // (width // found[1])
        rows = rows.swapaxes(-1, -2) if operand is self.k else rows
        *windows, _, tokens, _ = rows.shape
        wanted = np.arange(prod(windows) * tokens).reshape(*windows, 1, tokens, 1)
        return tokens == self.tokens and bool((rows == wanted).all())

    def parts(self, operand: gs.Tensor, source: gs.Tensor) -> gs.Tensor | None:
        """The last tensor between a source and an operand that nodes take parts for, row after row.

        That is the source itself where views alone make the operand; None where such a tensor has its rows in
        another order, or something else reads it.
        """
        tensor = operand
        while tensor is not source and is_op(producer(tensor), *VIEWS):
            node = producer(tensor)
            assert node is not None
            tensor = node.inputs[0]
        found, width = moved_runs(tensor, source), source.shape[-1]
        if found is None:
            return None
        rows = int(np.prod(source.shape)) // width
        kept = (found[0] // (width // found[1])).reshape(rows, -1) == np.arange(rows)[:, None]
        return tensor if bool(kept.all()) else None

    def merged(self, graph: gs.Graph) -> gs.Tensor | None:
        """The result with its heads side by side, row after row; None where views make no such tensor of it alone."""
        tensor, shape = self.result, static_shape(self.result)
        if shape is None:
            return None
        *windows, heads, tokens, size = shape
        outer = prod(windows)
        for _ in range(_MOST_VIEWS):
            readers = tensor.outputs
            if is_graph_output(graph, tensor) or len(readers) != 1 or not moves(readers[0]):
                return None
            tensor = readers[0].outputs[0]
            if static_shape(tensor) is None or tensor.shape[-1] != heads * size:
                continue
            found = moved_runs(tensor, self.result)
            if found is None:
                continue
            places = first_places([outer, heads, tokens, size], found[1]).swapaxes(1, 2)
            if np.array_equal(found[0].ravel(), places.ravel()):
                return tensor
        return None


def core_of(graph: gs.Graph, first: gs.Node) -> Core | None:
    """Return the attention that begins with a product of two computed operands; None where it is none of fixed sizes."""
    if not is_op(first, "MatMul") or any(isinstance(t, gs.Constant) for t in first.inputs):
        return None
    nodes, scores = [first], dims(first.outputs[0])
    while not is_op(nodes[-1], "Softmax"):
        following = _only_reader(graph, nodes[-1].outputs[0])
        if following is None or not same_dims(scores, dims(following.outputs[0])):
            return None
        others = [t for t in following.inputs if t is not nodes[-1].outputs[0]]
        constant = all(isinstance(t, gs.Constant) for t in others)
        if not (is_elementwise(following) and constant) and not is_op(following, "Softmax"):
            return None
        nodes.append(following)
    last = _only_reader(graph, nodes[-1].outputs[0])
    axis = nodes[-1].attrs.get("axis", -1)
    if last is None or not is_op(last, "MatMul") or last.inputs[0] is not nodes[-1].outputs[0]:
        return None
    core = Core(first.inputs[0], first.inputs[1], last.inputs[1], (*nodes, last))
    sizes = [static_shape(t) for t in (core.q, core.k, core.v, core.result)]
    known = all(s is not None and len(s) >= _LEAST_RANK and s[-2] * s[-1] > 0 for s in sizes)
    most = max(core.q.shape[-1], core.result.shape[-1]) if known else 0
    fits = known and axis in (-1, (rank(first.outputs[0]) or 0) - 1) and most <= _MOST_HEAD
    return core if fits and is_floating(core.result) else None


def _only_reader(graph: gs.Graph, tensor: gs.Tensor) -> gs.Node | None:
    if is_graph_output(graph, tensor) or len(tensor.outputs) != 1:
        return None
    return tensor.outputs[0]
