"""What is proposed to compute a problem: the one type that search, store, plan and report carry."""

from dataclasses import dataclass
from enum import StrEnum

GENERATED = "generated"
"""The family of all kernels that wpk generates; a library is a family of its own."""

Configuration = tuple[tuple[str, int], ...]
"""Names and values that tell one candidate of a maker from its others."""


class Kind(StrEnum):
    """Who makes a candidate."""

    TEMPLATE = "template"
    LIBRARY = "library"
    RUNTIME = "runtime"
    CONTROL = "control"


@dataclass(frozen=True)
class Maker:
    """A schedule template, a library, a runtime that executes what neither computes, or engines of bodies.

    Attributes:
        name: The template's name, e.g. ``conv_mma``, the library's, e.g. ``cuDNN``, ``ONNX Runtime``, or
            ``engines of bodies``.
        version: The template's or the library's, as text: another one makes other kernels.
        kind: Which of them it is.
    """

    name: str
    version: str
    kind: Kind = Kind.TEMPLATE

    @property
    def family(self) -> str:
        """Whose candidates compete as one: `GENERATED`, or the library's name."""
        return GENERATED if self.kind is Kind.TEMPLATE else self.name

    @property
    def title(self) -> str:
        """The name as reports print it: a library's version says which implementations there are."""
        return self.name if self.kind is Kind.TEMPLATE else f"{self.name} {self.version}"


@dataclass(frozen=True)
class Candidate:
    """A way to compute a problem.

    Attributes:
        maker: The schedule template of a generated kernel, or the library of an implementation.
        configuration: The schedule's parameters, or which of the library's implementations.
    """

    maker: Maker
    configuration: Configuration

    @property
    def family(self) -> str:
        """See `Maker.family`."""
        return self.maker.family
