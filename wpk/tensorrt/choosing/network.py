"""The network that is built, as far as choosing has to know it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from wpk.errors import UnsupportedError


@dataclass(frozen=True)
class Network:
    """Operators, their ONNX nodes, and which of them generated kernels can replace.

    Attributes:
        operators: Names of each operator's nodes; a plugin in its place is named like the operator.
        bare: Names of the nodes that belong to no operator.
        replaceable: Operators that there is a plugin for.
        required: Operators that TensorRT has no implementation for; they are always replaced.
    """

    operators: Mapping[str, frozenset[str]]
    bare: frozenset[str] = field(default=frozenset())
    replaceable: frozenset[str] = field(default=frozenset())
    required: frozenset[str] = field(default=frozenset())

    def __post_init__(self) -> None:
        """Refuse what nobody can build.

        Raises:
            UnsupportedError: An operator has neither an implementation of TensorRT's nor a plugin.
        """
        lost = sorted(self.required - self.replaceable)
        if lost:
            raise UnsupportedError(
                f"neither TensorRT nor a plugin of wpk computes {len(lost)} operators: "
                + ", ".join(lost),
                fix="build a plan of wpk's own (--engine wpk)",
            )

    @cached_property
    def units(self) -> Mapping[str, str]:
        """What each name in an engine belongs to: an operator, or a bare node by itself."""
        owned = {node: name for name, nodes in self.operators.items() for node in nodes}
        return {**{node: node for node in self.bare}, **owned, **{n: n for n in self.operators}}

    @cached_property
    def names(self) -> frozenset[str]:
        """All names that stand for work of the network."""
        return frozenset(self.units)
