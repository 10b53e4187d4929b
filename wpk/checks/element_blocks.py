"""Stretches of element-wise nodes are evaluated block by block, so that all between the first and the last node stays in a core's cache.

Bounds of their errors are element-wise, too: a block's nodes are evaluated and bounded before the next block is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx

from wpk.blocks import BLOCK, on_cores
from wpk.checks.bounded import Ball
from wpk.checks.float64_nodes import Array
from wpk.operators import OperatorKind, of_kind
from wpk.reused_memory import empty

Block = tuple[slice, ...]
"""Where a block lies: a slice for each axis."""

_LEAST_BLOCKS = 2
_ELEMENT_WISE = frozenset(of_kind(OperatorKind.ELEMENTWISE))


def stretch(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
) -> tuple[int, tuple[int, ...]]:
    """Return the place behind the element-wise nodes from ``first`` on that give one shape, and that shape.

    The place is ``first`` where there are none, or none that fill a few blocks.
    """
    shapes = {name: ball.value.shape for name, ball in known.items()}
    behind, common = first, None
    for node in nodes[first:]:
        shape = _given_shape(node, shapes)
        if shape is None or (common is not None and shape != common):
            break
        common = shape
        shapes |= dict.fromkeys(filter(None, node.output), shape)
        behind += 1
    if common is None or prod(common) < _LEAST_BLOCKS * BLOCK:
        return first, ()
    return behind, common


def _given_shape(
    node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...] | None:
    """What an element-wise node of one output gives; None for any other."""
    if node.op_type not in _ELEMENT_WISE or len(node.output) != 1:
        return None
    return np.broadcast_shapes(*(shapes[name] for name in node.input if name))


def by_element_blocks(
    shape: tuple[int, ...],
    operands: Mapping[str, Ball],
    work: Callable[[dict[str, Ball]], Sequence[Ball]],
) -> list[Ball]:
    """Return what ``work`` gives for operands that are broadcast to a shape, on all cores.

    Args:
        shape: Of everything that it gives.
        operands: By name.
        work: Called for the same block of all operands, several blocks at once.
    """
    blocks = _blocks(shape)

    def of(at: Block) -> Sequence[Ball]:
        return work({name: _part(ball, len(shape), at) for name, ball in operands.items()})

    first = of(blocks[0])
    whole = [_Whole(shape, ball.value.dtype) for ball in first]

    def put(at: Block, found: Sequence[Ball]) -> None:
        for each, ball in zip(whole, found, strict=True):
            each.put(at, ball)

    put(blocks[0], first)
    on_cores(blocks[1:], lambda at: put(at, of(at)))
    return [each.ball for each in whole]


class _Whole:
    """A tensor that is put together from its blocks, with its error where one of them has any."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._value: Array = empty(shape, dtype)
        self._error: Array | None = None
        self._exact: list[Block] = []
        self._lock = threading.Lock()

    def put(self, at: Block, ball: Ball) -> None:
        self._value[at] = ball.value
        if ball.error is None:
            self._exact.append(at)
            return
        with self._lock:
            if self._error is None:
                self._error = empty(self._value.shape, np.float64)
        self._error[at] = ball.error

    @property
    def ball(self) -> Ball:
        """The tensor, once all blocks are there."""
        if self._error is not None:
            for at in self._exact:
                self._error[at] = 0.0
        return Ball(self._value, self._error)


def _part(ball: Ball, rank: int, at: Block) -> Ball:
    error = None if ball.error is None else _cut(ball.error, rank, at)
    return Ball(_cut(ball.value, rank, at), error)


def _cut(array: Array, rank: int, at: Block) -> Any:
    """What a block reads of an array that is broadcast to ``rank`` axes."""
    own = at[rank - array.ndim :]
    return array[tuple(s if n > 1 else slice(None) for s, n in zip(own, array.shape, strict=True))]


def _blocks(shape: tuple[int, ...]) -> list[Block]:
    """Blocks of neighbours of at most `BLOCK` elements, but for those that an axis of one element cannot cut."""
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= BLOCK:
        inner *= shape[axis]
        axis -= 1
    step = max(1, BLOCK // inner)
    behind = (slice(None),) * (len(shape) - 1 - axis)
    return [
        (*(slice(i, i + 1) for i in before), slice(start, start + step), *behind)
        for before in np.ndindex(*shape[:axis])
        for start in range(0, shape[axis], step)
    ]
