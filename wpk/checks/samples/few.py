"""A few samples of a batch stand for all of them where a graph computes each sample alone.

Most models compute each sample of their batch from that sample alone, and each in the same way. Then the nodes of the
graph, given a few samples, give those samples of every tensor, whichever they are: to the operators and attributes that
would compute all samples. That is shown node by node, on the shapes of the whole batch (`wpk.checks.samples.rules`), while
the nodes are evaluated; where it cannot be shown `NotAloneError` is raised, and nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.checks.samples.batch import Along, Batch, NotAloneError
from wpk.checks.samples.rules import way_of
from wpk.checks.samples.way import Operand, Way
from wpk.lowering.flat_graph import read_names

Array = NDArray[np.generic]

KEPT = 4
"""Samples that stand for all. Two would show a sample that is taken for another; more show numbers that are rare."""

_FEWEST = 2 * KEPT
"""Samples of a batch from which on a few pay for what is repeated where they cannot stand for all."""


def batch_of(inputs: Mapping[str, Array]) -> Batch | None:
    """Return the batch of a model's inputs, all of which have it along axis 0; None where a few are no less work."""
    counts = {array.shape[:1] for array in inputs.values()}
    if len(counts) != 1:
        return None
    count = next(iter(counts))
    return Batch(count[0], KEPT) if count and count[0] >= _FEWEST else None


@dataclass(frozen=True)
class SomeOf:
    """A tensor, or what there is of it for a few samples.

    Attributes:
        array: The numbers.
        like: Takes the same of a whole tensor.
    """

    array: Array
    like: Callable[[Array], Array] = lambda whole: whole


@dataclass
class FewSamples:
    """Follows the samples through the tensors of one graph.

    Attributes:
        batch: How many samples there are, and how many are computed.
        along: Where samples lie in each tensor that is known so far; None where it holds none. A tensor that is
            missing is a constant, and holds none.
    """

    batch: Batch
    along: dict[str, Along | None] = field(default_factory=dict)

    def begin(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the few samples of a model's inputs."""
        self.along = dict.fromkeys(inputs, Along(0))
        return {name: array[: self.batch.kept] for name, array in inputs.items()}

    def way(self, node: onnx.NodeProto, arrays: Sequence[Array | None]) -> Way:
        """Return how a node computes the few samples, and note where those of its outputs lie.

        Args:
            node: The node.
            arrays: What it reads: tensors with samples have the few ones, all others are whole.

        Raises:
            NotAloneError: It may mix samples, or tell them apart.
        """
        names = read_names(node)
        given = [
            None if array is None else Operand(array, self.along.get(name))
            for name, array in zip(names, arrays, strict=True)
        ]
        way = way_of(self.batch, node, given)
        self.along |= {name: way.along for name in node.output if name}
        return way

    def require_alike(self, name: str, other: FewSamples, its: str) -> None:
        """Check that samples lie at the same place in a tensor of this graph and in one of another.

        Raises:
            NotAloneError: They do not.
        """
        if self.along.get(name) != other.along.get(its):
            raise NotAloneError(f"the samples of '{name}' lie elsewhere in the other graph")

    def some(self, name: str, array: Array) -> SomeOf:
        """Return a tensor of the graph with what takes the same samples of the whole one."""
        along = self.along.get(name)
        return (
            SomeOf(array) if along is None else SomeOf(array, partial(self.batch.part, along=along))
        )
