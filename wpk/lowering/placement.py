"""Which tensors lie inside others: inputs of a concatenation inside its output, where that aligns.

Concatenations are visited from the end of the graph, so that a chain of them (a dense block) gets
one buffer: the last one owns it, and an earlier one whose inputs already lie there side by side is a
view of it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes import dims, made_by
from wpk.lowering.views import contiguous_strides, reshaped_strides

ALIGNMENT = 16  # bytes of the widest access
_LEAST_ALIGNMENT = 4
"""Of what nobody reads but the concatenation: a copy would be written with such narrow accesses, too."""

Sizes = tuple[int | None, ...]

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")


@dataclass(frozen=True)
class Slot:
    """A tensor's place inside a concatenation's output.

    Attributes:
        parent: Name of the concatenation's output.
        axis: Axis of the concatenation.
        start: First index along it.
        seen: The tensor's shape as the concatenation sees it, where that is a view of the tensor; the leading axis
            is None where it is the tensor's own.
    """

    parent: str
    axis: int
    start: int
    seen: Sizes = ()


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
            written, seen = _written(tensor, whole, axis)
            if (
                written.name in movable
                and written.name not in slots
                and _aligned(tensor, start, axis, _needed(tensor, written))
            ):
                slots[written.name] = Slot(whole.name, axis, start, seen)
    return slots


def _written(tensor: gs.Tensor, whole: gs.Tensor, axis: int) -> tuple[gs.Tensor, Sizes]:
    """What an operator writes where a piece is a view of it, and the shape of the piece; else the piece itself."""
    written = tensor
    while (view := made_by(written, *_VIEWS)) is not None:
        written = view.inputs[0]
    seen, own = dims(tensor) or [], dims(written) or []
    inner, rest = ([size for size in shape[1:] if isinstance(size, int)] for shape in (seen, own))
    if written is tensor or len(inner) != len(seen) - 1 or len(rest) != len(own) - 1:
        return tensor, ()
    first, wanted = seen[0], own[0]
    if not isinstance(first, int) or not isinstance(wanted, int):
        if first is None or first != wanted:
            return tensor, ()
        first = wanted = 1
    shape = (first, *inner)
    row = (*shape[:axis], int(whole.shape[axis]), *shape[axis + 1 :])
    if reshaped_strides(shape, contiguous_strides(row), [wanted, *rest]) is None:
        return tensor, ()
    lead = first if seen[0] == first else None
    return written, (lead, *inner)


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


def _aligned(tensor: gs.Tensor, start: int, axis: int, needed: int) -> bool:
    """Whether the piece starts at an aligned address (its rows' distance is the parent's business)."""
    step = prod(int(n) for n in tensor.shape[axis + 1 :]) * element_bytes(tensor)
    return start * step % needed == 0


def _needed(piece: gs.Tensor, written: gs.Tensor) -> int:
    """Bytes that a piece begins at a multiple of: few where no operator reads what is written there."""
    tensor = piece
    while len(tensor.outputs) == 1 and tensor is not written:
        tensor = tensor.inputs[0].inputs[0]
    return _LEAST_ALIGNMENT if len(tensor.outputs) == 1 else ALIGNMENT


def element_bytes(tensor: gs.Tensor) -> int:
    """Return the bytes of an element; 16-bit types that NumPy lacks are ints in graphsurgeon."""
    return 2 if isinstance(tensor.dtype, int) else int(getattr(tensor.dtype, "itemsize", 0) or 4)
