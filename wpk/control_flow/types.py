"""What an If, a Loop or a Scan reads, carries and collects, and its bodies as models."""

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

OPERATORS = ("If", "Loop", "Scan")

MAX_DEPTH = 4
"""In how many bodies a body may lie."""

Constant = NDArray[np.generic]

Source = int | Constant
"""What is read: an input of the node's model, by its number, or a constant."""

Size = int | str
"""Of an axis; a free dimension is its name."""


class NotDrivenError(ValueError):
    """The bodies of a node cannot be driven one by one; the message says why."""


@dataclass(frozen=True)
class Body:
    """A body as a model.

    Attributes:
        model: Its inputs are those that the node gives it, then what it reads from outside. An output
            without a shape has that which the body gives it.
        captured: Numbers of the node's model's inputs that it reads from outside.
    """

    model: onnx.ModelProto
    captured: tuple[int, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of all inputs."""
        return tuple(each.name for each in self.model.graph.input)

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the inputs that the node gives."""
        return self.inputs[: len(self.inputs) - len(self.captured)]

    @property
    def read(self) -> tuple[str, ...]:
        """Names of the inputs that are read from outside, in the order of `captured`."""
        return self.inputs[len(self.inputs) - len(self.captured) :]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return tuple(each.name for each in self.model.graph.output)


@dataclass(frozen=True)
class Conditional:
    """An If: the outputs of either body are those of the node's model.

    Attributes:
        condition: Which body is executed.
        bodies: Where it holds, and where it does not.
    """

    condition: Source
    bodies: tuple[Body, Body]


@dataclass(frozen=True)
class Sliced:
    """A Scan's input, cut along its first axis.

    Attributes:
        source: What is cut.
        backwards: Whether the last part belongs to the first turn.
    """

    source: Source
    backwards: bool


@dataclass(frozen=True)
class Collected:
    """An output that has a part of each turn, along its first axis.

    Attributes:
        places: How many parts it has; None where the turns decide.
        backwards: Whether the first turn gives the last part.
    """

    places: Size | None
    backwards: bool


@dataclass(frozen=True)
class Turns:
    """A Loop or a Scan: its body, executed again and again.

    A Loop gives its body the turn's number and whether the condition holds, then the states; a Scan the
    states, then a part of each sliced input. The body gives a Loop's next condition, the next states,
    then a part of each collected output.

    Attributes:
        count: How many turns at most, by a free dimension's name where it decides; None without a limit.
        condition: Whether the first turn takes place; None where nothing but the count decides.
        is_loop: Whether it is a Loop.
        may_end: Whether the body may end it.
        is_numbered: Whether the body reads the turn's number.
        states: What the states are at first.
        sliced: What the body is given a part of in each turn.
        collected: What it gives a part of in each turn, the part of each turn behind the other.
        results: For each output of the node's model the state, or behind all states the collected output.
        bodies: The body.
    """

    count: Source | str | None
    condition: Source | None
    is_loop: bool
    may_end: bool
    is_numbered: bool
    states: tuple[Source, ...]
    sliced: tuple[Sliced, ...]
    collected: tuple[Collected, ...]
    results: tuple[int, ...]
    bodies: tuple[Body]


ControlFlow = Conditional | Turns


def known_shape(info: onnx.ValueInfoProto) -> tuple[Size, ...]:
    """The shape of an input or output of a model.

    Raises:
        NotDrivenError: It is not known, or there is nothing in it.
    """
    tensor = info.type.tensor_type
    sizes = [each.dim_value or each.dim_param for each in tensor.shape.dim]
    if not tensor.HasField("shape") or not all(n if isinstance(n, str) else n > 0 for n in sizes):
        raise NotDrivenError(f"the shape of '{info.name}' is not known, or it has no elements")
    return tuple(sizes)


def has_shape(info: onnx.ValueInfoProto) -> bool:
    """Whether anything is said of the shape of an input or output of a model."""
    return bool(info.type.tensor_type.HasField("shape"))
