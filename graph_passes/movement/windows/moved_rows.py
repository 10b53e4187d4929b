"""Move rows once where slices and concatenations of one tensor only change their order.

    Reshape(Transpose(Reshape(Concat(Slice(x), Slice(x)))))  ->  Reshape(Gather(Reshape(x), rows))

Rows are runs of the last dimension of x, and ``rows`` is constant. Exact: no element is computed. Swin
Transformers roll their maps along two dimensions and part them in windows: four copies and a transpose of
what one kernel reads by index.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import SPATIAL, VIEWS, is_elementwise
from wpk.graph_passes.core.query import dims, given, integers, is_graph_output, is_op, producer
from wpk.graph_passes.movement.chains.element_places import (
    Places,
    first_places,
    keeps_runs,
    longest_run,
    moved,
    whole_rows,
)

_MOVEMENT = ("Slice", "Concat", *VIEWS)
_MOST_ELEMENTS = 1 << 25
_MOST_NODES = 32


@dataclass(frozen=True)
class _Rows:
    """The last node of a region that moves rows of a tensor.

    Attributes:
        output: What the region gives.
        source: What it reads.
        rows: Of the source, in the order of the output; of each batch.
        count: Rows that the source has; of each batch.
    """

    output: gs.Tensor
    source: gs.Tensor
    rows: NDArray[np.int64]
    count: int


class MovedRows(Rule[_Rows]):
    """Gather rows by constant places instead of joining slices of the tensor that has them."""

    name = "moved-rows"
    ops = ("Concat",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rows | None:
        """Match the widest region around a Concat that reads one tensor."""
        output = _last_view(graph, node)
        source = None if output is None else _only_source(output)
        if output is None or source is None or _is_map(source):
            return None
        shape, target = dims(source), dims(output)
        if not shape or not target or len(shape) < 2:  # no rows
            return None
        width, *others = [*shape[::-1][:-1], *target[1:]]
        if not isinstance(width, int) or not all(isinstance(size, int) for size in others):
            return None
        run = max(1, width)
        places = _places(source, output, run)
        if places is None:  # something takes rows apart, and may join them again
            places, run = _places(source, output, 1), 1
        if places is None or not places.size:
            return None
        rows = whole_rows(places, width // run)
        whole = int(np.prod([d for d in shape if isinstance(d, int)]))
        return None if rows is None else _Rows(output, source, rows, whole // width)

    def rewrite(self, editor: GraphEditor, match: _Rows) -> None:
        """Write the Gather between two Reshapes."""
        shape, target = dims(match.source) or [], dims(match.output) or []
        batch = shape[0] if isinstance(shape[0], str) else 1
        width, name = shape[-1], match.output.name
        flat = np.array([-1 if batch != 1 else 1, match.count, width], np.int64)
        sizes = editor.constant(f"{name}_flat", flat)
        matrix = editor.add(
            "Reshape", [match.source, sizes], like=match.output, shape=[batch, match.count, width]
        )
        rows = editor.constant(f"{name}_rows", match.rows)
        moved = editor.add(
            "Gather", [matrix, rows], like=match.output, shape=[batch, len(match.rows), width],
            attrs={"axis": 1},
        )  # fmt: skip
        last = np.array([d if isinstance(d, int) else -1 for d in target], np.int64)
        back = editor.constant(f"{name}_sizes", last)
        editor.replace(match.output, editor.add("Reshape", [moved, back], like=match.output))


def _last_view(graph: gs.Graph, node: gs.Node) -> gs.Tensor | None:
    """What the movements behind a Concat give that only follow each other, or join its slices again."""
    tensor = node.outputs[0]
    while not is_graph_output(graph, tensor):
        readers = list({id(reader): reader for reader in tensor.outputs}.values())
        following = _joined_again(readers)
        if following is None and len(readers) == 1 and _views(readers[0], tensor):
            following = readers[0]
        if following is None:
            break
        if not following.outputs:  # a rewrite has taken its place
            return None
        tensor = following.outputs[0]
    return tensor


def _views(node: gs.Node, tensor: gs.Tensor) -> bool:
    """Whether a node is a view of a tensor, which does not give it its sizes."""
    return is_op(node, *VIEWS) and node.inputs[0] is tensor


def _joined_again(readers: list[gs.Node]) -> gs.Node | None:
    """The Concat that reads all slices of a tensor, where nobody else reads it or them."""
    behind = [reader.outputs[0].outputs for reader in readers if is_op(reader, "Slice")]
    if not behind or len(behind) != len(readers) or any(len(each) != 1 for each in behind):
        return None
    joins = {id(each[0]): each[0] for each in behind}
    join = next(iter(joins.values()))
    return join if len(joins) == 1 and is_op(join, "Concat") else None


def _only_source(tensor: gs.Tensor) -> gs.Tensor | None:
    """The one tensor that movements make another of; None where there are several."""
    sources: dict[int, gs.Tensor] = {}
    waiting, seen = [tensor], 0
    while waiting:
        each, seen = waiting.pop(), seen + 1
        node = producer(each)
        if seen > _MOST_NODES or isinstance(each, gs.Constant):
            return None
        if node is None or not is_op(node, *_MOVEMENT):
            sources[id(each)] = each
        elif is_op(node, "Concat"):
            waiting.extend(node.inputs)
        else:
            waiting.append(node.inputs[0])
    return next(iter(sources.values())) if len(sources) == 1 else None


def _is_map(tensor: gs.Tensor) -> bool:
    """Whether a convolution or pooling makes it, whose channels may come to lie last."""
    node = producer(tensor)
    for _ in range(_MOST_NODES):
        if node is None or not is_elementwise(node):
            break
        node = producer(next(t for t in node.inputs if not isinstance(t, gs.Constant)))
    return is_op(node, *SPATIAL)


def _places(source: gs.Tensor, tensor: gs.Tensor, run: int) -> Places | None:
    """Of each run of the first of a free batch: where it lies in the source, in runs; None where it is not certain.

    It is where all sizes but the first are numbers, and nothing is cut or joined along the first unless that
    is one, too: then every element of the batch is moved alike.
    """
    shape = [size if isinstance(size, int) else 1 for size in dims(source) or []]
    if int(np.prod(shape)) > _MOST_ELEMENTS:
        return None
    known: dict[int, Places] = {id(source): first_places(shape, run)}

    def of(each: gs.Tensor) -> Places | None:
        if id(each) not in known:
            node = producer(each)
            if node is None or not _keeps_batch(node):
                return None
            if run > 1 and (longest_run(node.outputs) % run or not keeps_runs(node)):
                return None
            data = [of(t) for t in (node.inputs if is_op(node, "Concat") else node.inputs[:1])]
            found = [array for array in data if array is not None]
            places = moved(node, found, run) if len(found) == len(data) else None
            if places is None:
                return None
            known[id(each)] = places
        return known[id(each)]

    return of(tensor)


def _keeps_batch(node: gs.Node) -> bool:
    """Whether a node moves every element of a free batch alike."""
    shapes = [dims(node.outputs[0]), dims(node.inputs[0])]
    if not all(shape and all(isinstance(size, int) for size in shape[1:]) for shape in shapes):
        return False
    if all(isinstance(shape[0], int) for shape in shapes if shape):
        return True
    if is_op(node, "Concat"):
        return int(node.attrs["axis"]) % len(shapes[0] or []) != 0
    axes = integers(given(node, 3)) if is_op(node, "Slice") else [1]
    return axes is not None and all(axis % len(shapes[1] or []) for axis in axes)
