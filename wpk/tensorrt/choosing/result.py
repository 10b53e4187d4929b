"""What was chosen for each group, and the engines that were built to find out; as the sidecar holds it."""

from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = 1
"""Raised when an older reader would misunderstand the record."""


@dataclass(frozen=True)
class GroupChoice:
    """A group of operators, what it takes either way, and which way was taken.

    Attributes:
        operators: Those that generated kernels would replace.
        beside: Other operators and nodes that TensorRT fuses with them; it keeps them.
        native_seconds: As TensorRT's own layers, with their share of inserted copies; None where
            that was not measured, as for all times here.
        plugin_seconds: With plugins, without copies.
        reformat_seconds: The copies inserted around the plugins.
        noise_seconds: What the difference must exceed.
        chosen: ``native`` or ``plugin``, in the engine that was kept.
        why: In words.
    """

    operators: tuple[str, ...]
    beside: tuple[str, ...]
    native_seconds: float | None
    plugin_seconds: float | None
    reformat_seconds: float | None
    noise_seconds: float | None
    chosen: str
    why: str


@dataclass(frozen=True)
class Rebuild:
    """An engine with several groups replaced, compared as a whole.

    Attributes:
        replaced: Its operators that are plugins.
        seconds: Of a whole execution; None where TensorRT did not build it.
        rival_seconds: Of the best engine before, measured in turns with it.
        noise_seconds: What the difference had to exceed.
        accepted: Whether it did.
        why: In words.
    """

    replaced: tuple[str, ...]
    seconds: float | None
    rival_seconds: float | None
    noise_seconds: float | None
    accepted: bool
    why: str


@dataclass(frozen=True)
class Choices:
    """All that was decided.

    Attributes:
        groups: By their first operators.
        rebuilds: In the order they were made.
        replaced: Operators that are plugins in the engine that was kept.
    """

    groups: tuple[GroupChoice, ...]
    rebuilds: tuple[Rebuild, ...]
    replaced: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The record for an engine's sidecar: plain lists, numbers and strings."""
        return {"schema": SCHEMA, **asdict(self)}
