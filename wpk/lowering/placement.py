"""Which tensors lie inside others: inputs of a concatenation inside its output, where that aligns.

Concatenations are visited from the end of the graph, so that a chain of them (a dense block) gets
one buffer: the last one owns it, and an earlier one whose inputs already lie there side by side is a
view of it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import onnx_graphsurgeon as gs

ALIGNMENT = 16  # bytes of the widest access


@dataclass(frozen=True)
class Slot:
    """A tensor's place inside a concatenation's output.

    Attributes:
        parent: Name of the concatenation's output.
        axis: Axis of the concatenation.
        start: First index along it.
    """

    parent: str
    axis: int
    start: int


def place_concatenations(graph: gs.Graph, movable: Collection[str]) -> dict[str, Slot]:
    """Return the slots for as many inputs of concatenations as may lie in place.

    Args:
        graph: The optimized graph, with shapes.
        movable: Names of the tensors that may lie anywhere: written by an operator, not the
            model's own, not refused before.
    """
    slots: dict[str, Slot] = {}
    for node in reversed(graph.nodes):
        if node.op != "Concat" or node.domain not in (None, "", "ai.onnx"):
            continue
        whole, pieces = node.outputs[0], _pieces(node)
        if pieces is None:
            continue
        if whole.name not in slots and whole.name in movable and _side_by_side(pieces, slots):
            first = slots[pieces[0][0].name]
            slots[whole.name] = Slot(first.parent, first.axis, first.start)
            continue
        for tensor, start, axis in pieces:
            if (
                tensor.name in movable
                and tensor.name not in slots
                and _aligned(tensor, start, axis)
            ):
                slots[tensor.name] = Slot(whole.name, axis, start)
    return slots


Piece = tuple[gs.Tensor, int, int]


def _pieces(node: gs.Node) -> list[Piece] | None:
    """Each input with its start along the axis; None where shapes are unknown or the axis leads."""
    rank = len(node.outputs[0].shape or ())
    axis = int(node.attrs["axis"]) % rank if rank else 0
    if axis == 0 or len({t.name for t in node.inputs}) != len(node.inputs):
        return None
    pieces: list[Piece] = []
    start = 0
    for tensor in node.inputs:
        if tensor.shape is None or not all(isinstance(n, int) for n in tensor.shape[1:]):
            return None
        pieces.append((tensor, start, axis))
        start += tensor.shape[axis]
    return pieces


def _side_by_side(pieces: list[Piece], slots: dict[str, Slot]) -> bool:
    """Whether all pieces already lie in one parent in this order without gaps."""
    placed = [slots.get(tensor.name) for tensor, _, _ in pieces]
    first = placed[0]
    if first is None:
        return False
    return all(
        slot is not None
        and (slot.parent, slot.axis) == (first.parent, axis)
        and slot.start - first.start == start
        for slot, (_, start, axis) in zip(placed, pieces, strict=True)
    )


def _aligned(tensor: gs.Tensor, start: int, axis: int) -> bool:
    """Whether the piece starts at an aligned address (its rows' distance is the parent's business)."""
    step = prod(int(n) for n in tensor.shape[axis + 1 :]) * element_bytes(tensor)
    return start * step % ALIGNMENT == 0


def element_bytes(tensor: gs.Tensor) -> int:
    """Return the bytes of an element; 16-bit types that NumPy lacks are ints in graphsurgeon."""
    return 2 if isinstance(tensor.dtype, int) else int(getattr(tensor.dtype, "itemsize", 0) or 4)
