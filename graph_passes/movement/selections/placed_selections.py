"""Give every row that a NonMaxSuppression may select a place, so that kernels select, and only what is left is dropped.

    y = NonMaxSuppression(boxes, scores)  ->  p = selection(boxes, scores)    y = Compress(p, p[:, 0] >= 0)

The selection is a function whose body is the operator, and a ScatterND of its rows into as many rows of -1 as there may
be of each class of each batch, where they stand in their order. How many rows are left a run decides, which no kernel
can: that Compress is ONNX Runtime's, and reads the places alone instead of all boxes and scores.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.functions import make_call
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, floats, given, integers, static_shape

_MOST_BOXES = 2**16
"""Of a batch, which kernels look at."""

_SINCE = 13
"""The opset whose forms the body has."""

_WORD, _BOX, _ROW = 4, 16, 24
"""Bytes of a score, a box and a selected row."""


@dataclass(frozen=True)
class _Selection:
    """A NonMaxSuppression, and its sizes."""

    node: gs.Node
    batch: int
    classes: int
    most: int


class PlacedSelections(Rule[_Selection]):
    """Write the function; runs when types are set, before operators are fused."""

    name = "placed-selections"
    ops = ("NonMaxSuppression",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Selection | Refusal:
        """Match known sizes and constant limits."""
        found = _sizes(graph, node)
        return Refusal(node.name, found) if isinstance(found, str) else found

    def rewrite(self, editor: GraphEditor, match: _Selection) -> None:
        """Write the selection, and drop what was not selected."""
        to, output = _Writer(editor, match.node), match.node.outputs[0]
        name = editor.new_name(f"{output.name}_rows")
        match.node.outputs = [gs.Variable(name, np.dtype(np.int64), [None, 3])]
        placed = to.placed(match)
        first = to.add("Gather", placed, to.ints(0), shape=placed.shape[:1], axis=1)
        selected = to.add("GreaterOrEqual", first, to.ints(0), dtype=np.bool_)
        kept = to.add("Compress", placed, selected, shape=list(output.shape), axis=0)
        editor.replace(output, kept)
        make_call(editor.graph, to.body, placed, stem=match.node.name)


def _sizes(graph: gs.Graph, node: gs.Node) -> _Selection | str:
    boxes, scores = (static_shape(tensor) for tensor in node.inputs[:2])
    if boxes is None or scores is None or 0 in (*boxes, *scores):
        return "the sizes of its boxes and scores are not known"
    limit = integers(given(node, 2))
    if limit is None or len(limit) != 1 or limit[0] < 1:
        return "how many boxes it selects of a class is not constant, or none"
    for place in (3, 4):
        if given(node, place) is not None and floats(given(node, place)) is None:
            return f"'{node.inputs[place].name}' is not constant"
    batch, classes, count = scores
    most = min(limit[0], count)
    if count > _MOST_BOXES:
        return f"{count} boxes, at most {_MOST_BOXES} are carried"
    if graph.opset < _SINCE:
        return f"opset {graph.opset} has other forms of what places its rows"
    read = batch * count * (_BOX + classes * _WORD)
    if batch * classes * most * _ROW > read:
        return f"{batch * classes * most} rows may be selected, which are more bytes than it reads"
    return _Selection(node, batch, classes, most)


class _Writer(NodeParts):
    """Adds nodes, and remembers those of the selection's body."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        super().__init__(editor, node)
        self.body: list[gs.Node] = [node]

    def placed(self, match: _Selection) -> gs.Tensor:
        """The rows of the operator, in their places among rows of -1."""
        rows, classes = match.node.outputs[0], match.batch * match.classes
        batch, kind = (
            self.inside("Gather", rows, self.ints(i), shape=[None], axis=1) for i in (0, 1)
        )
        batches = self.inside("Mul", batch, self.ints(match.classes), shape=[None])
        key = self.inside("Add", batches, kind, shape=[None])
        truth = self.ints([0, 1])
        hot = self.inside("OneHot", key, self.ints([classes]), truth, shape=[classes, None], axis=0)
        counts = self.inside("ReduceSum", hot, self.ints([1]), shape=[classes], keepdims=0)
        before = self.inside("CumSum", counts, self.ints(0), shape=[classes], exclusive=1)
        start = self.inside("Gather", before, key, shape=[None])
        shape = self.inside("Shape", rows, shape=[2])
        count = self.inside("Gather", shape, self.ints(0), shape=[])
        walk = self.inside("Range", self.ints(0), count, self.ints(1), shape=[None])
        rank = self.inside("Sub", walk, start, shape=[None])
        first = self.inside("Mul", key, self.ints(match.most), shape=[None])
        place = self.inside("Add", first, rank, shape=[None])
        index = self.inside("Reshape", place, self.ints([-1, 1]), shape=[None, 1])
        whole: Dims = [classes * match.most, 3]
        empty = self.inside(
            "Expand", self.ints([-1]), self.ints([classes * match.most, 3]), shape=whole
        )
        return self.inside("ScatterND", empty, index, rows, shape=whole)

    def inside(self, op: str, *inputs: gs.Tensor, shape: Dims, **attributes: Any) -> gs.Tensor:
        """Add a node of the body; all of them compute with int64."""
        made = self.add(op, *inputs, shape=shape, dtype=np.int64, **attributes)
        self.body.append(made.inputs[0])
        return made
