"""How a node computes a few samples of a batch, and what rules of operators ask of the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from wpk.checks.bounded import attribute_of
from wpk.checks.samples.batch import Along, Array, Batch, NotAloneError, Shape


@dataclass(frozen=True)
class Operand:
    """What a node reads.

    Attributes:
        array: The few samples, or a tensor that holds none.
        along: Where samples lie; None where it holds none.
    """

    array: Array
    along: Along | None

    @property
    def shape(self) -> Shape:
        """Its shape as it is."""
        return self.array.shape


Change = Callable[[Array], Array]
"""Makes of an operand what the node reads for the few samples; of what lies beside it element by element, too."""


@dataclass(frozen=True)
class Way:
    """How a node computes the few samples.

    Attributes:
        along: Where samples lie in its outputs; None where these hold none.
        changes: What becomes of operands, by their places.
    """

    along: Along | None
    changes: Mapping[int, Change] = field(default_factory=dict)

    def operands(self, arrays: Sequence[Array | None]) -> list[Array | None]:
        """Return what the node is evaluated on."""
        return [
            self.changes[place](array) if array is not None and place in self.changes else array
            for place, array in enumerate(arrays)
        ]


Given = Sequence[Operand | None]


Rule = Callable[[Batch, onnx.NodeProto, Given], Way]


def mixes(node: onnx.NodeProto) -> NotAloneError:
    return NotAloneError(f"'{node.name}' ({node.op_type}) may mix samples")


def require(fits: bool, node: onnx.NodeProto) -> None:
    if not fits:
        raise mixes(node)


def first_of(node: onnx.NodeProto, given: Given) -> tuple[Operand, Along]:
    """The first operand and where its samples lie; no other holds any."""
    first, *others = given
    if (
        first is None
        or first.along is None
        or any(e is not None and e.along is not None for e in others)
    ):
        raise mixes(node)
    return first, first.along


def two(node: onnx.NodeProto, given: Given) -> tuple[Operand, Operand]:
    """Two operands."""
    first, second = given
    if first is None or second is None:
        raise mixes(node)
    return first, second


def optional(node: onnx.NodeProto, given: Given, place: int) -> list[int] | None:
    """The integers of an operand that holds no samples; None where it is missing."""
    operand = given[place] if place < len(given) else None
    if operand is None:
        return None
    require(operand.along is None and operand.array.dtype.kind in "iu", node)
    return [int(each) for each in operand.array.reshape(-1)]


def numbers(node: onnx.NodeProto, given: Given, place: int) -> list[int]:
    """The integers of an operand that holds no samples, and must be there."""
    found = optional(node, given, place)
    if found is None:
        raise mixes(node)
    return found


def axes_of(node: onnx.NodeProto, given: Given, rank: int) -> list[int] | None:
    """The axes that the second operand or an attribute names, counted from the first; None where neither does."""
    named = optional(node, given, 1)
    axes = named if named is not None else attribute_of(node, "axes", None)
    return None if axes is None else [axis % rank for axis in axes]


def whole_shape(batch: Batch, operand: Operand) -> Shape:
    return tuple(
        batch.whole(n) if operand.along is not None and place == operand.along.axis else n
        for place, n in enumerate(operand.shape)
    )


def aligned(
    batch: Batch, node: onnx.NodeProto, shapes: Mapping[int, tuple[Shape, Along | None]]
) -> Way:
    """Operands that are broadcast: samples meet samples, or what is the same for all of them."""
    rank = max(len(shape) for shape, _ in shapes.values())
    held = {
        (along.axis + rank - len(shape), along.times, shape[along.axis])
        for shape, along in shapes.values()
        if along is not None
    }
    require(len(held) == 1, node)
    ((place, times, extent),) = held
    changes: dict[int, Change] = {}
    for index, (shape, along) in shapes.items():
        own = place - rank + len(shape)
        if along is None and own >= 0 and shape[own] != 1:
            require(shape[own] == batch.whole(extent), node)
            changes[index] = _part(batch, Along(own, times))
    return Way(Along(place, times), changes)


def _part(batch: Batch, along: Along) -> Change:
    return lambda array: batch.alike(array, along) if array.ndim else array
