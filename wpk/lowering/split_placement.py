"""Which concatenations lie beside a tensor whose last part they begin with.

    m = [a | b | t],  Split(m) -> a, b, t,  c = Concat(t, u, v)

One buffer [a | b | t | u | v] holds both: ``m`` is its front, ``c`` its back, and ``t`` lies in both
without a copy. Branches that begin with one joined product end like this.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes import dims, is_op, producer
from wpk.lowering.placement import ALIGNMENT, Slot, element_bytes


@dataclass(frozen=True)
class SharedRows:
    """Tensors that lie inside buffers which are no tensor of the graph.

    Attributes:
        slots: Where they lie.
        wholes: Shapes of those buffers, without the leading axis.
    """

    slots: Mapping[str, Slot]
    wholes: Mapping[str, tuple[int, ...]]


def place_split_parts(
    graph: gs.Graph, movable: Collection[str], placed: Mapping[str, Slot]
) -> SharedRows:
    """Put as many concatenations as possible behind the tensor that makes their first input.

    Args:
        graph: The optimized graph, with shapes.
        movable: Names of the tensors that may lie anywhere.
        placed: Tensors that have a place inside another already; they stay there.
    """
    slots: dict[str, Slot] = {}
    wholes: dict[str, tuple[int, ...]] = {}
    for concat in graph.nodes:
        split = producer(concat.inputs[0]) if is_op(concat, "Concat") else None
        if split is None or not is_op(split, "Split"):
            continue
        front, back = split.inputs[0], concat.outputs[0]
        own = {*placed, *slots}
        if any(tensor.name not in movable or tensor.name in own for tensor in (front, back)):
            continue
        row = _shared_row(split, concat)
        if row is None:
            continue
        whole = f"{front.name}+{back.name}"
        slots[front.name] = Slot(whole, row.axis, 0)
        slots[back.name] = Slot(whole, row.axis, row.start)
        wholes[whole] = row.shape
    return SharedRows(slots, wholes)


@dataclass(frozen=True)
class _Row:
    """Where a concatenation begins in a buffer, along which axis, and the buffer's inner shape."""

    axis: int
    start: int
    shape: tuple[int, ...]


def _shared_row(split: gs.Node, concat: gs.Node) -> _Row | None:
    """Return the buffer for both; None where they would not align in it or do not fit together."""
    front, shared, back = split.inputs[0], concat.inputs[0], concat.outputs[0]
    shapes = [dims(tensor) for tensor in (front, shared, back)]
    if split.outputs[-1] is not shared or any(shape is None for shape in shapes):
        return None
    inner = [[n for n in (shape or [])[1:] if isinstance(n, int)] for shape in shapes]
    rank = len(shapes[0] or [])
    axis = int(concat.attrs["axis"]) % rank
    if axis == 0 or axis != int(split.attrs.get("axis", 0)) % rank:
        return None
    if any(len(sizes) != rank - 1 for sizes in inner):
        return None
    start = inner[0][axis - 1] - inner[1][axis - 1]
    row = list(inner[2])
    row[axis - 1] += start
    unit = math.prod(row[axis:]) * element_bytes(front)
    if any(length * unit % ALIGNMENT for length in (start, row[axis - 1])):
        return None
    return _Row(axis, start, tuple(row))
