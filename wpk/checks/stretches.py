"""Stretches of a body's nodes are evaluated part by part, so that what lies between the first and the last stays in a core's cache.

Two kinds of stretches are cut: element-wise nodes, into blocks of neighbours; and products of matrices with what follows of
rows alone, into some matrices each. Bounds of errors are as local as the nodes: a part's nodes are evaluated and bounded
before the next part is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import onnx

from wpk.blocks import BLOCK, cores, on_cores
from wpk.checks.bounded import Ball
from wpk.checks.by_sample import Chain
from wpk.checks.float64_nodes import Array
from wpk.checks.node_parts import PART
from wpk.operators import OperatorKind, of_kind
from wpk.reused_memory import empty

Block = tuple[slice, ...]
"""Where a part lies: a slice for each axis of what all operands are broadcast to, or for its first."""

Work = Callable[[dict[str, Ball]], Sequence[Ball]]
"""Gives of the same part of all operands, by name, a part of each result."""

_LEAST_BLOCKS = 2
_ELEMENT_WISE = frozenset(of_kind(OperatorKind.ELEMENTWISE))
_MATRICES = 3
"""Axes of what a stretch of matrices begins with, at least."""


@dataclass(frozen=True)
class Stretch:
    """Nodes that are evaluated part by part.

    Attributes:
        behind: Place of the node behind the last one.
        blocks: The parts.
        rank: Axes of what operands are broadcast to.
    """

    behind: int
    blocks: Sequence[Block]
    rank: int

    def evaluated(self, operands: Mapping[str, Ball], work: Work) -> list[Ball]:
        """Return the results that ``work`` gives for all parts, put together, on all cores.

        Args:
            operands: By name.
            work: Called for several parts at once.
        """

        def of(at: Block) -> Sequence[Ball]:
            return work({name: _part(ball, self.rank, at) for name, ball in operands.items()})

        first, last = of(self.blocks[0]), self.blocks[-1]
        whole = [_Whole(ball, last) for ball in first]

        def put(at: Block, found: Sequence[Ball]) -> None:
            for each, ball in zip(whole, found, strict=True):
                each.put(at, ball)

        put(self.blocks[0], first)
        on_cores(self.blocks[1:], lambda at: put(at, of(at)))
        return [each.ball for each in whole]


def stretch(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
) -> Stretch | None:
    """Return the stretch that begins with a node; None where it is evaluated as a whole.

    Args:
        nodes: Of the body.
        first: Place of the node.
        known: Everything that it and those behind it read and that they do not make themselves.
    """
    if nodes[first].op_type == "MatMul":
        return _of_matrices(nodes, first, known)
    return of_elements(nodes, first, known)


def is_element_wise(node: onnx.NodeProto) -> bool:
    """Tell whether a node may be part of a stretch of elements."""
    return node.op_type in _ELEMENT_WISE and len(node.output) == 1


def of_elements(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
) -> Stretch | None:
    """Return the stretch of element-wise nodes that give one shape; the arguments are those of `stretch`."""
    shapes = {name: ball.value.shape for name, ball in known.items()}
    common: tuple[int, ...] | None = None
    behind = first
    for node in nodes[first:]:
        if not is_element_wise(node):
            break
        shape = np.broadcast_shapes(*(shapes[name] for name in node.input if name))
        if common is not None and shape != common:
            break
        common, behind = shape, behind + 1
        shapes[node.output[0]] = shape
    if common is None or prod(common) < _LEAST_BLOCKS * BLOCK:
        return None
    return Stretch(behind, _blocks(common), len(common))


def _of_matrices(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
) -> Stretch | None:
    """A product of several matrices each, and what takes each element of the first axis alone behind it."""
    left, right = (known[name].value for name in nodes[first].input)
    count, rank = (len(left), left.ndim) if left.ndim else (0, 0)
    size = max(left.size, right.size, left.size // max(1, left.shape[-1]) * right.shape[-1])
    if rank < _MATRICES or count < 2 or size < 2 * PART:
        return None
    cut = {n: rank for n, b in known.items() if b.value.ndim == rank and len(b.value) == count}
    whole = {name: ball.value for name, ball in known.items() if name not in cut}
    chain, behind = Chain(count, cut, whole), first
    for node in nodes[first:]:
        if node.op_type == "Reshape" or chain.ranks.keys().isdisjoint(node.input):
            break
        if not chain.takes(node):
            break
        behind += 1
    if behind == first:
        return None
    parts = min(count, max(2 * cores(), -(-size // PART)))
    edges = [count * place // parts for place in range(parts + 1)]
    return Stretch(behind, [(slice(a, b),) for a, b in pairwise(edges)], rank)


class _Whole:
    """A tensor that is put together from its parts, with its error where one of them has any."""

    def __init__(self, first: Ball, last: Block) -> None:
        """Begin.

        Args:
            first: The first part of it, whole along the axes that no part cuts.
            last: The last part, which ends where the tensor does.
        """
        ends = [
            n if s.stop is None else s.stop for s, n in zip(last, first.value.shape, strict=False)
        ]
        shape = (*ends, *first.value.shape[len(ends) :])
        self._value: Array = empty(shape, first.value.dtype)
        self._error: Array | None = None
        self._exact: list[Block] = []
        self._lock = threading.Lock()

    def put(self, at: Block, ball: Ball) -> None:
        """Take a part."""
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
        """The tensor, once all parts are there."""
        if self._error is None:
            return Ball(self._value)
        error: Any = self._error
        for at in self._exact:
            error[at] = 0.0
        return Ball(self._value, error)


def _part(ball: Ball, rank: int, at: Block) -> Ball:
    error: Any = None if ball.error is None else _cut(ball.error, rank, at)
    return Ball(_cut(ball.value, rank, at), error)


def _cut(array: Array, rank: int, at: Block) -> Array:
    """What a part reads of an array that is broadcast to ``rank`` axes."""
    missing = rank - array.ndim
    own = at[missing:]
    place = tuple(s if n > 1 else slice(None) for s, n in zip(own, array.shape, strict=False))
    found: Array = array[place]
    return found


def _blocks(shape: tuple[int, ...]) -> list[Block]:
    """Blocks of at most `BLOCK` neighbours."""
    inner, axis = 1, len(shape) - 1
    while axis > 0 and inner * shape[axis] <= BLOCK:
        inner *= shape[axis]
        axis -= 1
    step = max(1, BLOCK // inner)
    behind = tuple(slice(0, n) for n in shape[axis + 1 :])
    return [
        (*(slice(i, i + 1) for i in before), slice(at, min(at + step, shape[axis])), *behind)
        for before in np.ndindex(*shape[:axis])
        for at in range(0, shape[axis], step)
    ]
