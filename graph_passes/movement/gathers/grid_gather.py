"""Read constant indices that form a grid axis by axis.

    GatherND(x, i), i[a, b] = [p[a], q[b]]  ->  Reshape(Gather(Gather(x, p), q, axis = 1))

A Gather that would read a whole axis in order is left out. Exporters write the mask of an attention so:
x[batch, keys].
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims, values

Places = NDArray[np.int64]


@dataclass(frozen=True)
class _Grid:
    """What a node reads.

    Attributes:
        node: The node.
        picks: The indices along some axes, which have a known size each.
        shape: That of the node's output.
    """

    node: gs.Node
    picks: dict[int, Places]
    shape: Dims


class GridGather(Rule[_Grid]):
    """Replace nodes that read a grid of an input by a Gather for each axis."""

    name = "grid-gather"
    ops = ("GatherND",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Grid | None:
        """Match constant indices, of which each axis changes along one of its own."""
        del graph
        shape, source = dims(node.outputs[0]), dims(node.inputs[0])
        if shape is None or source is None or values(node.inputs[0]) is not None:
            return None
        picks = _of_tuples(node, source)
        return None if picks is None else _Grid(node, picks, shape)

    def rewrite(self, editor: GraphEditor, match: _Grid) -> None:
        """Gather along each axis; a last Reshape gives the output's shape."""
        node, output = match.node, match.node.outputs[0]
        x, shape = node.inputs[0], list(dims(node.inputs[0]) or [])
        for axis, places in match.picks.items():
            if not _is_whole(places, shape[axis]):
                index = editor.constant(f"{node.name}_places", places)
                shape[axis] = places.size
                attrs = {"axis": axis}
                x = editor.add("Gather", [x, index], like=output, shape=shape, attrs=attrs)
        sizes = [size if isinstance(size, int) else 0 for size in match.shape]
        target = editor.constant(f"{node.name}_shape", np.array(sizes, np.int64))
        editor.replace(output, editor.add("Reshape", [x, target], like=output))


def _is_whole(places: Places, size: object) -> bool:
    return bool(places.size == size and (places == np.arange(places.size)).all())


def _of_tuples(node: gs.Node, source: Dims) -> dict[int, Places] | None:
    """The indices along each axis, where each changes along one axis of the index, in their order."""
    index = values(node.inputs[1])
    if index is None or index.size == 0 or int(node.attrs.get("batch_dims", 0)):
        return None
    count, last = index.shape[-1], -1
    sizes = source[:count]
    if count > len(source) or not all(isinstance(n, int) for n in sizes):
        return None
    picks: dict[int, Places] = {}
    taken = set[int]()
    for axis, size in enumerate(sizes):
        numbers = np.asarray(index[..., axis], np.int64)
        numbers = np.where(numbers < 0, numbers + int(size or 0), numbers)
        along = [a for a in range(numbers.ndim) if _changes(numbers, a)]
        if len(along) > 1 or (along and along[0] <= last):
            return None
        taken.update(along)
        last = along[0] if along else last
        first = tuple(slice(None) if a in along else 0 for a in range(numbers.ndim))
        picks[axis] = numbers[first].reshape(-1)
    repeats = [n for a, n in enumerate(index.shape[:-1]) if a not in taken and n != 1]
    return None if repeats else picks


def _changes(numbers: Places, axis: int) -> bool:
    return bool((numbers != np.take(numbers, [0], axis)).any())
