"""Which product, convolution or norm is the last that a tensor comes from: whose kernel can compute what follows."""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import MATRIX, ROWS, is_elementwise
from wpk.graph_passes.core.query import is_op, producer
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES

_MOST_NODES = 32
"""That are looked through."""


class LatestAnchors:
    """Products, convolutions and norms of a graph whose nodes are in topological order."""

    def __init__(self, graph: gs.Graph) -> None:
        """Count the nodes."""
        self._position = {id(node): index for index, node in enumerate(graph.nodes)}

    def before(self, tensor: gs.Tensor) -> int:
        """Return the place of the last one that makes a tensor; -1 where none does.

        It makes it itself, or through element-wise nodes, Reshapes and Transposes.
        """
        waiting, seen, latest = [tensor], 0, -1
        while waiting and seen < _MOST_NODES:
            maker, seen = producer(waiting.pop()), seen + 1
            if maker is None:
                continue
            if is_op(maker, *MATRIX, *ROWS):
                latest = max(latest, self._position.get(id(maker), -1))
            elif is_elementwise(maker):
                waiting.extend(maker.inputs)
            elif is_op(maker, *RESHAPES, "Transpose"):
                waiting.append(maker.inputs[0])
        return latest
