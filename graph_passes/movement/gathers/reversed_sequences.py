"""Write ReverseSequence as a Gather of places, which its lengths say.

ReverseSequence(x, lengths)  ->  GatherND<batch_dims = 1>(x, places)           where batches stand first
                             ->  Gather(Reshape(x), places * batches + batch)  where steps do
places[batch, step]           =  lengths[batch] - (step + 1)  where step < lengths[batch],  step elsewhere
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims

_BATCHES_SINCE = 12
"""The opset in which GatherND got ``batch_dims``."""


@dataclass(frozen=True)
class _Sequences:
    """A ReverseSequence, the shape of what it reverses, and whether the batch stands first."""

    node: gs.Node
    shape: Dims
    batch_first: bool


class ReversedSequences(Rule[_Sequences]):
    """Replace a ReverseSequence whose sequences have a known number of steps; a batch in front may be free."""

    name = "reversed-sequences"
    ops = ("ReverseSequence",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sequences | Refusal:
        """Match where the steps are counted, and so are batches that stand behind them."""
        batch_first = int(node.attrs.get("batch_axis", 1)) == 0
        shape = dims(node.inputs[0]) or [None, None]
        if batch_first and graph.opset < _BATCHES_SINCE:
            return Refusal(node.name, f"GatherND has no batches at opset {graph.opset}")
        reason = _why_not(shape, batch_first)
        words = f"'{node.inputs[0].name}' has shape {shape}: {reason}"
        return Refusal(node.name, words) if reason else _Sequences(node, shape, batch_first)

    def rewrite(self, editor: GraphEditor, match: _Sequences) -> None:
        """Compute the places, and gather."""
        to = _Writer(editor, match.node)
        gathered = to.by_batches(match.shape) if match.batch_first else to.by_steps(match.shape)
        editor.replace(match.node.outputs[0], gathered)


def _why_not(shape: Dims, batch_first: bool) -> str | None:
    if not isinstance(shape[int(batch_first)], int):
        return "its steps must be known"
    if not batch_first and not isinstance(shape[1], int):
        return "its batch is free, and stands behind the steps"
    if not batch_first and sum(not isinstance(size, int) for size in shape) > 1:
        return "several sizes behind the batch are free"
    return None


class _Writer(NodeParts):
    """Adds what computes the places, and gathers."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        super().__init__(editor, node)
        self.x, self.lengths = node.inputs

    def by_batches(self, shape: Dims) -> gs.Tensor:
        """Each batch has its own places."""
        batch, steps = shape[:2]
        column = self.reshaped(self.lengths, [batch, 1])
        places = self._places(column, np.arange(_known(steps))[None], [batch, steps])
        index = self.reshaped(places, [batch, steps, 1])
        return self.add("GatherND", self.x, index, shape=shape, batch_dims=1)

    def by_steps(self, shape: Dims) -> gs.Tensor:
        """Steps of all batches are rows, one behind the other."""
        steps, batch = map(_known, shape[:2])
        lengths = self.reshaped(self.lengths, [1, batch])
        places = self._places(lengths, np.arange(steps)[:, None], [steps, batch])
        first = self.add("Mul", places, self.ints([batch]), shape=[steps, batch])
        index = self.add("Add", first, self.ints(np.arange(batch)[None]), shape=[steps, batch])
        rows = self.reshaped(self.x, [steps * batch, *shape[2:]])
        return self.add("Gather", rows, index, shape=shape)

    def _places(self, lengths: gs.Tensor, walk: NDArray[np.int64], shape: Dims) -> gs.Tensor:
        step = self.ints(walk)
        behind = self.add("Sub", lengths, self.ints(walk + 1), shape=shape)
        reversed_here = self.add("Less", step, lengths, shape=shape, dtype=np.bool_)
        return self.add("Where", reversed_here, behind, step, shape=shape, like=lengths)


def _known(size: int | str | None) -> int:
    assert isinstance(size, int)
    return size
