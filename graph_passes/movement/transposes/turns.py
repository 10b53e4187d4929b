"""Transposes, those that take the first dimension away, and nodes that move before them."""

from collections.abc import Callable
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.query import dims, made_by
from wpk.graph_passes.movement.chains.reshape_chains import permutation


@dataclass(frozen=True)
class Turn:
    """A Transpose: its input, and where dimensions come from."""

    source: gs.Tensor
    perm: list[int]

    @property
    def keeps_rows(self) -> bool:
        """Whether the last dimension stays the last."""
        return self.perm[-1] == len(self.perm) - 1


@dataclass(frozen=True)
class Swap:
    """A node that moves before a Transpose.

    Attributes:
        output: What the node gives, and the transpose behind it gives from now on.
        make: Writes the node and returns what it makes.
        perm: Of the transpose behind.
    """

    output: gs.Tensor
    make: Callable[[GraphEditor], gs.Tensor]
    perm: list[int]


def transpose_of(tensor: gs.Tensor) -> Turn | None:
    """Return the Transpose that makes a tensor of one whose shape is known."""
    node = made_by(tensor, "Transpose")
    perm = permutation(node) if node is not None else None
    if node is None or perm is None or dims(node.inputs[0]) is None:
        return None
    return Turn(node.inputs[0], perm)


def turn_of(tensor: gs.Tensor) -> Turn | None:
    """Return the Transpose that makes a tensor, if it takes the first dimension away."""
    turn = transpose_of(tensor)
    return turn if turn is not None and turn.perm[0] != 0 else None


def turned(editor: GraphEditor, tensor: gs.Tensor, perm: list[int]) -> gs.Tensor:
    """Write a Transpose of a tensor whose shape is known."""
    shape = dims(tensor) or []
    moved = [shape[axis] for axis in perm]
    return editor.add("Transpose", [tensor], like=tensor, shape=moved, attrs={"perm": perm})
