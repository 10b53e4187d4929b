"""A recurrent node, read: which of ONNX's many forms it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import dims, given, is_op
from wpk.operators import OperatorKind, of_kind

OPERATORS = of_kind(OperatorKind.RECURRENT)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

X, W, R, B, LENGTHS, H0, C0, PEEPHOLES = range(8)
"""Places of the inputs."""

DEFAULT_ACTIVATIONS: Mapping[str, Sequence[str]] = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}


@dataclass(frozen=True)
class RecurrentNode:
    """A node of one of `OPERATORS`.

    Attributes:
        node: The node.
        hidden: Size of a state.
        steps: Steps of all sequences.
    """

    node: gs.Node
    hidden: int
    steps: int

    @classmethod
    def read(cls, node: gs.Node) -> "RecurrentNode | str":
        """Return the node, or why it cannot be read."""
        if not is_op(node, *OPERATORS) or len(node.inputs) <= R:
            return f"{node.op} is no recurrent operator with weights"
        x, r = dims(node.inputs[X]), dims(node.inputs[R])
        time = int(bool(node.attrs.get("layout", 0)))
        steps = x[time] if x is not None and len(x) == 3 else None
        hidden = r[-1] if r is not None and len(r) == 3 else None
        if not isinstance(steps, int):
            return f"the number of steps of '{node.inputs[X].name}' is not known"
        if not isinstance(hidden, int):
            return f"the size of '{node.inputs[R].name}' is not known"
        return cls(node, hidden, steps)

    @property
    def batch_first(self) -> bool:
        """Whether the batch is the first dimension of inputs and outputs."""
        return bool(self.node.attrs.get("layout", 0))

    @property
    def batch(self) -> int | str | None:
        """The size of the batch: a number or a symbol."""
        shape = dims(self.node.inputs[X]) or [None] * 3
        return shape[0 if self.batch_first else 1]

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions, each forward or reverse."""
        direction = self.node.attrs.get("direction", "forward")
        return ("forward", "reverse") if direction == "bidirectional" else (direction,)

    @property
    def activations(self) -> tuple[str, ...]:
        """Names of the activations of the first direction, as ONNX writes them."""
        default = DEFAULT_ACTIVATIONS[self.node.op]
        named = [str(each).capitalize() for each in self.node.attrs.get("activations", [])]
        return tuple(named[: len(default)]) or tuple(default)

    def input(self, place: int) -> gs.Tensor | None:
        """Return an input; None where it is missing."""
        return given(self.node, place)

    def output(self, place: int) -> gs.Tensor | None:
        """Return an output; None where the node does not give it."""
        outputs = self.node.outputs
        return None if place >= len(outputs) or outputs[place].is_empty() else outputs[place]
