"""What a network is before an exporter wrote it, and what an exported graph of it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SIZES = {"batch": 2, "sequence": 12, "target": 8}
"""Sizes of named dimensions where an export fixes them, and of the inputs that are exported with."""

EXPORTERS = ("dynamo", "script")
"""Of torch: `torch.onnx.export` with ``dynamo=True`` and with ``dynamo=False``."""


@dataclass(frozen=True)
class Given:
    """An input of a network.

    Attributes:
        name: Of the input.
        shape: Its sizes; a word names a dimension of `SIZES`.
        below: Integers are drawn below this one; 0 for an input of numbers, 2 for a mask.
    """

    name: str
    shape: tuple[int | str, ...]
    below: int = 0

    def sizes(self, sizes: dict[str, int]) -> tuple[int, ...]:
        """The shape where named dimensions have these sizes."""
        return tuple(sizes[each] if isinstance(each, str) else each for each in self.shape)


@dataclass(frozen=True)
class Architecture:
    """A network.

    Attributes:
        name: What exported graphs of it are called.
        family: The library that it comes from.
        kind: What it does; ``classification`` and ``encoder`` need no fallback.
        build: Makes the module, ready for inference, of torch's present seed; or scikit-learn's
            fitted estimator.
        inputs: Its inputs, in the order of ``forward``.
    """

    name: str
    family: str
    kind: str
    build: Callable[[], Any]
    inputs: tuple[Given, ...]


@dataclass(frozen=True)
class Export:
    """A graph that an exporter makes of a network.

    Attributes:
        name: Of the `Architecture`.
        exporter: One of `EXPORTERS`, or ``sklearn``.
        free: Names of the dimensions that stay free.
    """

    name: str
    exporter: str
    free: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``resnet18.dynamo.batch``, as the graph is called."""
        return ".".join([self.name, self.exporter, "-".join(self.free) or "fixed"])

    @staticmethod
    def parse(text: str) -> Export:
        """Read what `str` gives."""
        name, exporter, free = text.rsplit(".", 2)
        return Export(name, exporter, () if free == "fixed" else tuple(free.split("-")))
