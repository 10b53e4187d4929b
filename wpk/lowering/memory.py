"""Where buffers lie in one arena: liveness decides who may share.

Buffers of the model's inputs and outputs live for the whole run. Others live from the first
operator that writes them to the last that touches them. Largest first, each buffer takes the lowest
offset where it meets no buffer that is alive at the same time (greedy by size, the strategy that
works best on networks in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
Inference", 2020).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wpk.dims import evaluate
from wpk.lowering.program import Buffer, Value

ALIGNMENT = 256
"""Bytes that every buffer's offset is a multiple of."""


@dataclass(frozen=True)
class MemoryPlan:
    """Offsets of all buffers in the arena.

    Attributes:
        offsets: Byte offset of each buffer, a multiple of `ALIGNMENT`.
        sizes: Bytes of each buffer, rounded up to `ALIGNMENT`.
        arena_bytes: Size of the arena.
        peak_bytes: Most bytes that are alive during any one step: no plan can need less.
    """

    offsets: dict[str, int]
    sizes: dict[str, int]
    arena_bytes: int
    peak_bytes: int


def plan_memory(
    buffers: Mapping[str, Buffer],
    values: Mapping[str, Value],
    steps: Sequence[Iterable[str]],
    pinned: Iterable[str],
    dims: Mapping[str, int],
) -> MemoryPlan:
    """Lay out the arena.

    Args:
        buffers: All buffers by name.
        values: All values by name.
        steps: For each operator in order, the names of the values that it reads and writes; names
            that are no values (constants) are ignored.
        pinned: Values that are alive from before the first step to after the last.
        dims: Values of the free dimensions.
    """
    lives = lifetimes(values, steps, pinned)
    sizes = {
        name: -(-evaluate(buffers[name].bytes, dims) // ALIGNMENT) * ALIGNMENT for name in lives
    }
    offsets: dict[str, int] = {}
    for name in sorted(lives, key=lambda n: (-sizes[n], n)):
        offsets[name] = _lowest_gap(name, lives, sizes, offsets)
    arena = max((offsets[n] + sizes[n] for n in offsets), default=0)
    peak = max(
        (
            sum(sizes[n] for n, (first, last) in lives.items() if first <= step <= last)
            for step in range(-1, len(steps) + 1)
        ),
        default=0,
    )
    return MemoryPlan(offsets, sizes, arena, peak)


def lifetimes(
    values: Mapping[str, Value], steps: Sequence[Iterable[str]], pinned: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """First and last step of each buffer: -1 where it is there before, their count where it stays."""
    lives = {values[name].buffer: (-1, len(steps)) for name in pinned}
    for step, names in enumerate(steps):
        for name in names:
            if name in values:
                first, last = lives.get(values[name].buffer, (step, step))
                lives[values[name].buffer] = (min(first, step), max(last, step))
    return lives


def _lowest_gap(
    name: str,
    lives: Mapping[str, tuple[int, int]],
    sizes: Mapping[str, int],
    offsets: Mapping[str, int],
) -> int:
    first, last = lives[name]
    taken = sorted(
        (offset, offset + sizes[other])
        for other, offset in offsets.items()
        if lives[other][0] <= last and first <= lives[other][1]
    )
    candidate = 0
    for start, end in taken:
        if candidate + sizes[name] <= start:
            break
        candidate = max(candidate, end)
    return candidate
