"""What operators a model is partitioned into, in words that an older wpk would use, too: to compare partitions.

    PYTHONPATH=OLDER python -P benchmarks/zoo/operators.py MODEL.onnx

As a script it prints the operators of the wpk that is on the path, and the names of its passes, as JSON. It needs nothing of wpk that has changed since
forms were chosen: kinds of problems, and the values and constants that an operator reads and writes. What an operator is
*called*, how its weights are packed and in which order its values lie does not enter.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wpk.lowering.program import Operator, Program


_PRODUCTS = {"Convolution": "Product", "Matmul": "Product"}
"""Kinds by what they are here: which of both a filter of one pixel, or of patches that do not overlap, is, lowering says."""


@dataclass(frozen=True, order=True)
class Work:
    """What an operator does, as far as a partition says it.

    Attributes:
        kind: Class of its problem; ``Product`` for convolutions and products of matrices.
        reads: Elements of the values that it reads, ascending.
        weights: Elements of the matrices and filters among its constants, ascending.
        writes: Elements of the values that it writes, ascending.
    """

    kind: str
    reads: tuple[int, ...]
    weights: tuple[int, ...]
    writes: tuple[int, ...]

    def __str__(self) -> str:
        """``Matmul of 197x768 …``, as far as elements tell it."""
        weights = f" by {_several(self.weights)}" if self.weights else ""
        return f"{self.kind} of {_several(self.reads)}{weights} to {_several(self.writes)}"


Partition = Counter[Work]
"""A partition: what its operators do, each as often as there are such operators."""


def _several(elements: tuple[int, ...]) -> str:
    return " and ".join(map(str, elements)) or "nothing"


def works_of(program: Program) -> Iterator[tuple[Work, Operator]]:
    """What each operator of a program does, with the operator."""
    for operator in program.operators:
        read, written = [name for name in operator.inputs if name], operator.outputs
        values, constants = program.values, program.constants
        shapes = [constants[name].shape for name in read if name in constants]
        yield (
            Work(
                _PRODUCTS.get(kind := type(operator.problem).__name__, kind),
                _ascending(prod(values[name].shape) for name in read if name in values),
                _ascending(prod(shape) for shape in shapes if sum(n > 1 for n in shape) > 1),
                _ascending(prod(values[name].shape) for name in written if name in values),
            ),
            operator,
        )


def partition_of(program: Program) -> Partition:
    """The partition of a program."""
    return Counter(work for work, _ in works_of(program))


def _ascending(elements: Iterator[int]) -> tuple[int, ...]:
    return tuple(sorted(elements))


def written(partition: Partition) -> list[Any]:
    """A partition as plain data."""
    return [[*astuple(work), count] for work, count in sorted(partition.items())]


def digest(partition: Partition) -> str:
    """A name of a partition that no other one has."""
    return hashlib.sha256(json.dumps(written(partition)).encode()).hexdigest()[:16]


def read(data: list[Any]) -> Partition:
    """A partition from plain data."""
    return Counter({Work(k, tuple(r), tuple(w), tuple(o)): count for k, r, w, o, count in data})


def main() -> None:
    """Print the operators of a model in fp16, fixed sizes as its file has them, and the passes that there are."""
    from wpk.dtypes import Precision
    from wpk.lowering.model import lower_model

    lowered = lower_model(Path(sys.argv[1]), {}, Precision.FP16, fallback=True)
    passes = [record.name for record in lowered.passes]
    made = {"operators": written(partition_of(lowered.program)), "passes": passes}
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
