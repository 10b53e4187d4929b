"""Where buffers lie in one arena: the order of the steps decides who may share.

Buffers of the model's inputs and outputs live for the whole run. Two others may share memory where
every step that touches one is done before any step that touches the other begins; where steps are
independent (`wpk.plan.order`) neither is. Largest first, each buffer takes the lowest offset where it
meets no buffer that it may not share with (greedy by size, the strategy that works best on networks in
Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Generic, TypeVar

from wpk.dims import evaluate
from wpk.lowering.program import Buffer, Operator, Value
from wpk.plan.order import Order, mask

ALIGNMENT = 256
"""Bytes that every offset is a multiple of."""

_Name = TypeVar("_Name", int, str)


@dataclass(frozen=True)
class Layout(Generic[_Name]):
    """Pieces of memory that lie beside and over each other.

    Attributes:
        offsets: Where each piece begins, a multiple of `ALIGNMENT`.
        bytes: The size of all of them together.
    """

    offsets: dict[_Name, int]
    bytes: int


@dataclass(frozen=True)
class MemoryPlan(Layout[str]):
    """All buffers in the arena.

    Attributes:
        sizes: Bytes of each buffer, rounded up to `ALIGNMENT`.
        peak_bytes: Most bytes that are alive during any one step: no plan can need less.
    """

    sizes: dict[str, int]
    peak_bytes: int


def plan_memory(
    buffers: Mapping[str, Buffer],
    values: Mapping[str, Value],
    order: Order,
    pinned: Iterable[str],
    dims: Mapping[str, int],
) -> MemoryPlan:
    """Lay out the arena.

    Args:
        buffers: All buffers by name.
        values: All values by name.
        order: The steps, and which must follow which.
        pinned: Values that are alive from before the first step to after the last.
        dims: Values of the free dimensions.
    """
    pinned = tuple(pinned)
    lives = lifetimes(values, order.steps, pinned)
    sizes = {name: aligned(evaluate(buffers[name].bytes, dims)) for name in lives}
    layout = lay_out(sizes, _sharing(values, order, pinned))
    peak = max(
        (
            sum(sizes[n] for n, (first, last) in lives.items() if first <= step <= last)
            for step in range(-1, len(order.steps) + 1)
        ),
        default=0,
    )
    return MemoryPlan(layout.offsets, layout.bytes, sizes, peak)


def aligned(size: int) -> int:
    """A size rounded up to `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def lay_out(sizes: Mapping[_Name, int], may_share: Callable[[_Name, _Name], bool]) -> Layout[_Name]:
    """Lay pieces of memory out so that those which may not share lie apart.

    Args:
        sizes: The bytes of each piece, multiples of `ALIGNMENT`; of equal pieces the first is placed first.
        may_share: Tells whether two pieces may lie in the same place.
    """
    offsets: dict[_Name, int] = {}
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        taken = sorted(
            (offset, offset + sizes[other])
            for other, offset in offsets.items()
            if not may_share(name, other)
        )
        candidate = 0
        for start, end in taken:
            if candidate + sizes[name] > start:
                candidate = max(candidate, end)
        offsets[name] = candidate
    end = max((offset + sizes[name] for name, offset in offsets.items()), default=0)
    return Layout(offsets, end)


def lifetimes(
    values: Mapping[str, Value], steps: Sequence[Operator], pinned: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """Return the first and last step of each buffer: -1 where it lives before them, their count where it stays."""
    lives = {values[name].buffer: (-1, len(steps)) for name in pinned}
    for buffer, touching in _touching(values, steps).items():
        lives.setdefault(buffer, (min(touching), max(touching)))
    return lives


def _touching(values: Mapping[str, Value], steps: Sequence[Operator]) -> dict[str, set[int]]:
    """The steps that touch each buffer."""
    touching: dict[str, set[int]] = {}
    for step, operator in enumerate(steps):
        for name in (*operator.inputs, *operator.outputs):
            if name in values:
                touching.setdefault(values[name].buffer, set()).add(step)
    return touching


def _sharing(
    values: Mapping[str, Value], order: Order, pinned: Iterable[str]
) -> Callable[[str, str], bool]:
    """Which buffers may share memory."""
    touching = _touching(values, order.steps)
    stays = {values[name].buffer for name in pinned}
    used = {name: mask(steps) for name, steps in touching.items()}
    before = {name: reduce(and_, map(order.all_before, steps)) for name, steps in touching.items()}

    def may_share(one: str, other: str) -> bool:
        if one in stays or other in stays:
            return False
        return not used[one] & ~before[other] or not used[other] & ~before[one]

    return may_share
