"""How loops take their turns: what cuts tensors into parts and puts them together, and whether turns go on."""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.known import stored
from wpk.graph_passes.core.query import made_by, values


@dataclass(frozen=True)
class Along:
    """How a tensor is cut into steps, or put together from them: along an axis, forward or backwards."""

    axis: int
    backwards: bool


def along_of(node: gs.Node, role: str, count: int) -> list[Along]:
    """Return how a Scan cuts each ``input``, or puts each ``output`` together; axes may be negative."""
    axes = node.attrs.get(f"scan_{role}_axes") or [0] * count
    directions = node.attrs.get(f"scan_{role}_directions") or [0] * count
    return [Along(int(a), bool(d)) for a, d in zip(axes, directions, strict=True)]


def holds(condition: gs.Tensor, before: gs.Tensor) -> bool:
    """Whether a body's condition is true, if the one before was: that very one, or a constant."""
    while condition is not before:
        maker = made_by(condition, "Identity", "Cast")
        if maker is None:
            known = values(stored(condition))
            return known is not None and bool(known.all())
        condition = maker.inputs[0]
    return True
