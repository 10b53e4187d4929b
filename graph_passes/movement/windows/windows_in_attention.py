"""Let attention alone read windows; what treats each row alike computes in the order of the image.

    Parted(x) -> LayerNorm -> MatMul -> attention -> MatMul -> Joined
    ->  x -> LayerNorm -> MatMul -> Gather -> attention -> Gather -> MatMul

Exact: no element is computed of others than before. Swin rolls its maps and parts them in windows, MaxViT
parts them in windows and in grids: each is an order of the rows of an image, which projections, norms,
activations and residuals do not see. The Gathers become part of the attention, whose kernel reads and writes
where the image lies, and residuals part of the projections.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.kinds import ROWS
from wpk.graph_passes.core.query import Dims, dims, is_op, producer, static_shape
from wpk.graph_passes.movement.chains.element_places import moves
from wpk.graph_passes.movement.windows.row_orders import Attending, Reading, Region, RowOrders, Rows

_WORDS = "attention reads windows where their image lies"


class WindowsInAttention(GraphPass):
    """Compute in the image's order between movements that part it in windows and join them.

    It sees the whole graph first: whether an order is needed shows where the last reader of it is.
    """

    name = "windows-in-attention"
    is_choice = True

    def apply(self, graph: gs.Graph) -> PassResult:
        """Find all regions, then rewrite those that are to be."""
        result = PassResult()
        editor = GraphEditor(graph)
        for region in list(RowOrders(graph).regions()):
            if self.takes(result, region.nodes, _WORDS):
                _rewrite(editor, region)
                result.rewritten += 1
        return result


def _rewrite(editor: GraphEditor, region: Region) -> None:
    """Give attention its order, and everything else the image's."""
    image = _image(region)
    inside = {id(node) for node in region.nodes}
    instead: dict[int, gs.Tensor] = {}
    for each in region.attending:
        instead[id(each.merged)] = _around(editor, each, image, {id(t) for t in region.ordered})
    for tensor in region.ordered:
        editor.rename(tensor, f"{tensor.name}_in_place")
        tensor.shape = [*image, tensor.shape[-1]] if image else tensor.shape
    for reading in region.readings:
        source = instead.get(id(reading.source), reading.source)
        node, index = reading.node, reading.index
        shape = static_shape(node.inputs[index]) or []
        shape = [*image, shape[-1]] if image and id(node) in inside else shape
        read = _lying(editor, reading, source, shape)
        node.inputs = [read if i == index else t for i, t in enumerate(node.inputs)]
    for node in region.nodes:
        if is_op(node, *ROWS):
            node.attrs["axis"] = -1


def _image(region: Region) -> list[int]:
    """The dimensions of what the region reads first, without channels: residuals are added in that shape.

    They are none where a node of the region works on tensors of its own rank only.
    """
    inside = {id(each) for each in region.ordered}
    inside |= {id(each.merged) for each in region.attending}
    first = next(each for each in region.readings if id(each.source) not in inside)
    shape = static_shape(first.source) or []
    image = [shape[0], *shape[2:]] if first.source_first else shape[:-1]
    row_wise = [node for node in region.nodes if any(id(t) in inside for t in node.outputs)]
    ranks = [len(t.shape) for n in row_wise for t in n.inputs if isinstance(t, gs.Constant)]
    fixed = any(is_op(node, "Gemm") for node in row_wise) or max(ranks, default=0) > len(image) + 1
    return [] if fixed else image


def _around(
    editor: GraphEditor, attending: Attending, image: list[int], ordered: set[int]
) -> gs.Tensor:
    """Move the rows that attention reads in their order, and those that it gives back to the image."""
    done: set[int] = set()
    for part in attending.sources:
        readers = [node for node in part.outputs if moves(node)]
        _taken(editor, part, ordered, done)
        moved = _gathered(editor, part, attending.rows, static_shape(part) or [])
        for node in readers:
            node.inputs = [moved if t is part else t for t in node.inputs]
    merged = attending.merged
    shape = [*image, merged.shape[-1]] if image else static_shape(merged) or []
    return _gathered(editor, merged, np.argsort(attending.rows), shape)


def _taken(editor: GraphEditor, part: gs.Tensor, ordered: set[int], done: set[int]) -> None:
    """Let what takes a part of a projection do so in the image's order, in the shapes that it had; once."""
    while id(part) not in ordered:
        node = producer(part)
        if node is None or id(node) in done:
            return
        done.add(id(node))
        for each in node.outputs:
            editor.rename(each, f"{each.name}_in_place")
        part = node.inputs[0]
        if id(part) in ordered:
            sizes = editor.constant(f"{part.name}_sizes", np.array(part.shape, np.int64))
            shaped = editor.add("Reshape", [part, sizes], like=part, shape=part.shape)
            node.inputs = [shaped if t is part else t for t in node.inputs]


def _gathered(editor: GraphEditor, tensor: gs.Tensor, rows: Rows, shape: list[int]) -> gs.Tensor:
    """The tensor with its rows in another order, in a shape."""
    flat: Dims = [1, len(rows), *_row(static_shape(tensor) or [], len(rows))]
    matrix = _shaped(editor, tensor, flat)
    index = editor.constant(f"{tensor.name}_rows", rows)
    moved = editor.add("Gather", [matrix, index], like=tensor, shape=flat, attrs={"axis": 1})
    return _shaped(editor, moved, shape)


def _row(shape: list[int], rows: int) -> list[int]:
    """The sizes of a row: heads stay apart, since a part of each may be what is read; the one part of three does not."""
    counts = np.cumprod(shape).tolist()
    if rows in counts:
        row = [size for size in shape[counts.index(rows) + 1 :] if size != 1]
        return row or [1]
    return [int(np.prod(shape)) // rows]


def _lying(editor: GraphEditor, reading: Reading, source: gs.Tensor, shape: list[int]) -> gs.Tensor:
    """What a node reads, in a shape and in the order of the image."""
    if reading.source_first:
        source = _turned(editor, source, (0, *range(2, len(source.shape)), 1))
    if not reading.result_first:
        return _shaped(editor, source, shape)
    last = _shaped(editor, source, [shape[0], *shape[2:], shape[1]])
    return _turned(editor, last, (0, len(shape) - 1, *range(1, len(shape) - 1)))


def _turned(editor: GraphEditor, tensor: gs.Tensor, perm: tuple[int, ...]) -> gs.Tensor:
    shape = [tensor.shape[axis] for axis in perm]
    return editor.add("Transpose", [tensor], like=tensor, shape=shape, attrs={"perm": list(perm)})


def _shaped(editor: GraphEditor, tensor: gs.Tensor, shape: Sequence[int | str | None]) -> gs.Tensor:
    if dims(tensor) == list(shape):
        return tensor
    sizes = editor.constant(f"{tensor.name}_sizes", np.array(shape, np.int64))
    return editor.add("Reshape", [tensor, sizes], like=tensor, shape=list(shape))
