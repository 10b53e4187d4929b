"""How a Scan cuts tensors into turns, and puts them together."""

from dataclasses import dataclass

import onnx_graphsurgeon as gs


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
