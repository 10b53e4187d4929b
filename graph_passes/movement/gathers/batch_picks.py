"""Read one place of each element of a batch as what it is.

    GatherND(x, Concat(b, i))             ->  GatherND<batch_dims = 1>(x, i)     b[n, ...] = n, of all n
    Gather(Reshape(x, [-1, d]), s b + i)  ->  GatherND<batch_dims = 1>(x, i)     0 <= i < s

Exporters write ``x[arange(batch), places]`` so: the token at which a sentence ends. The places of the
batch are a constant, or a Range over a free dimension; in the second form the batch is free, and i is
the place of an extreme among s, without which it could reach another element of the batch.
"""

from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims, is_op, made_by, producer, rank, same_dims
from wpk.graph_passes.core.sizes import ONE, ZERO, Size, known_sizes
from wpk.graph_passes.movement.gathers.counting import count_of

_VIEWS = ("Reshape", "Flatten")
_SAME_NUMBERS = ("Reshape", "Squeeze", "Unsqueeze", "Cast", "Identity")


class _Pick(NamedTuple):
    """A node, what it reads, and the parts of the tuples that are left; ``flat`` where they are single numbers."""

    node: gs.Node
    source: gs.Tensor
    parts: list[gs.Tensor]
    flat: bool


class BatchPicks(Rule[_Pick]):
    """Leave the places of the batch out."""

    name = "batch-picks"
    ops = ("GatherND", "Gather")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Pick | None:
        """Match indices that count through the batch, whatever else they say."""
        del graph
        return _of_tuples(node) if is_op(node, "GatherND") else _of_rows(node)

    def rewrite(self, editor: GraphEditor, match: _Pick) -> None:
        """Join what is left of the tuples."""
        output, parts = match.node.outputs[0], match.parts
        index = parts[0]
        if match.flat:
            shape: Dims = [*(dims(index) or []), 1]
            axes = editor.constant(f"{output.name}_axes", np.array([-1], np.int64))
            index = editor.add("Unsqueeze", [index, axes], like=index, shape=shape)
        elif len(parts) > 1:
            widths = [(part.shape or [None])[-1] for part in parts]
            known = all(isinstance(width, int) for width in widths)
            shape = [*(dims(index) or [])[:-1], int(np.sum(widths)) if known else None]
            index = editor.add("Concat", parts, like=index, shape=shape, attrs={"axis": -1})
        attrs = {"batch_dims": 1}
        editor.replace(
            output, editor.add("GatherND", [match.source, index], like=output, attrs=attrs)
        )


def _of_tuples(node: gs.Node) -> _Pick | None:
    source, index = node.inputs
    joined, sizes = made_by(index, "Concat"), known_sizes((dims(source) or [])[:1])
    if joined is None or not sizes or node.attrs.get("batch_dims", 0) or rank(index) is None:
        return None
    first, *parts = joined.inputs
    last = int(joined.attrs["axis"]) in (-1, len(index.shape) - 1)
    single = len(index.shape) > 1 and dims(first) is not None and first.shape[-1] == 1
    if not (last and parts and single and _counts(first, sizes[0], ONE)):
        return None
    return _Pick(node, source, parts, flat=False)


def _of_rows(node: gs.Node) -> _Pick | None:
    view, total = made_by(node.inputs[0], *_VIEWS), made_by(node.inputs[1], "Add")
    if view is None or total is None or node.attrs.get("axis", 0) != 0:
        return None
    batch, size, *inner = [*(dims(view.inputs[0]) or []), None, None]
    rows = (dims(view.outputs[0]) or [])[1:]
    if not isinstance(batch, str) or not isinstance(size, int) or inner[:-2] != rows:
        return None
    for own, other in (total.inputs, total.inputs[::-1]):
        whole = same_dims(dims(other), dims(total.outputs[0]))
        if whole and _counts(own, Size(1, (batch,)), Size(size)) and _is_below(other, size):
            return _Pick(node, view.inputs[0], [other], flat=True)
    return None


def _counts(tensor: gs.Tensor, batch: Size, step: Size) -> bool:
    """Whether integers are a multiple of the place along the first axis, which is the whole batch."""
    count = count_of(tensor)
    if count is None or count.start or not count.sizes or count.sizes[0] != batch:
        return False
    steps = (ZERO if batch == ONE else step, *[ZERO] * (len(count.sizes) - 1))
    return count.steps == steps


def _is_below(tensor: gs.Tensor, size: int) -> bool:
    """Whether integers are places of an extreme along an axis of so many elements."""
    node = producer(tensor)
    while node is not None and is_op(node, *_SAME_NUMBERS):
        if node.outputs[0].dtype not in (np.int32, np.int64):
            return False
        node = producer(node.inputs[0])
    if node is None or not is_op(node, "ArgMax", "ArgMin"):
        return False
    shape = dims(node.inputs[0])
    return shape is not None and shape[int(node.attrs.get("axis", 0))] == size
