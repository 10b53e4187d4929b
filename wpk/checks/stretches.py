"""Stretches of a body's nodes are evaluated part by part, so that what lies between the first and the last stays in a core's cache.

Two kinds of stretches are cut: element-wise nodes, into blocks of neighbours; and products of matrices with what follows of
rows alone, into some matrices or some of their rows (`wpk.checks.matrix_rows`). Bounds of errors are as local as the nodes: a
part's nodes are evaluated and bounded before the next part is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx

from wpk.blocks import BLOCK, Block, neighbours, on_cores, parts_of_rows
from wpk.checks.bounded import Ball
from wpk.checks.float64_nodes import Array
from wpk.checks.matrix_rows import behind_product
from wpk.lowering.flat_graph import read_names
from wpk.operators import ELEMENTWISE
from wpk.reused_memory import empty

Work = Callable[[dict[str, Ball]], Sequence[Ball]]
"""Gives of the same part of all operands, by name, a part of each result."""

_LEAST_BLOCKS = 2


@dataclass(frozen=True)
class Stretch:
    """Nodes that are evaluated part by part.

    Attributes:
        behind: Place of the node behind the last one.
        blocks: The parts.
        rank: Axes of what operands are broadcast to.
        matrices: Operands whose last two axes every part reads as a whole.
    """

    behind: int
    blocks: Sequence[Block]
    rank: int
    matrices: Collection[str] = ()

    def evaluated(self, operands: Mapping[str, Ball], work: Work) -> list[Ball]:
        """Return the results that ``work`` gives for all parts, put together, on all cores.

        Args:
            operands: By name.
            work: Called for several parts at once.
        """

        def of(at: Block) -> Sequence[Ball]:
            return work({name: self._part(name, ball, at) for name, ball in operands.items()})

        first, last = of(self.blocks[0]), self.blocks[-1]
        whole = [_Whole(ball, last) for ball in first]

        def put(at: Block, found: Sequence[Ball]) -> None:
            for each, ball in zip(whole, found, strict=True):
                each.put(at, ball)

        put(self.blocks[0], first)
        on_cores(self.blocks[1:], lambda at: put(at, of(at)))
        return [each.ball for each in whole]

    def _part(self, name: str, ball: Ball, at: Block) -> Ball:
        if name in self.matrices:
            at = at[: self.rank - 2]
        error: Any = None if ball.error is None else _cut(ball.error, self.rank, at)
        return Ball(_cut(ball.value, self.rank, at), error)


def by_products(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes in an order in which what a product feeds follows it at once, for a stretch ends where another node lies between.

    Those behind fewer products, one after the other, come first; of as many they stay in order.
    """
    behind, found = dict[str, int](), list[tuple[int, onnx.NodeProto]]()
    for node in nodes:
        count = max((behind.get(name, 0) for name in read_names(node)), default=0)
        count += node.op_type == "MatMul"
        behind |= dict.fromkeys(node.output, count)
        found.append((count, node))
    return [node for _, node in sorted(found, key=lambda each: each[0])]


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
    return node.op_type in ELEMENTWISE and len(node.output) == 1


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
    return Stretch(behind, neighbours(common, BLOCK), len(common))


def _of_matrices(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Ball]
) -> Stretch | None:
    """A product of several matrices each, and what takes each of its rows alone behind it."""
    found = behind_product(nodes, first, {name: ball.value.shape for name, ball in known.items()})
    if found is None:
        return None
    rows, behind = found
    if prod(rows.lead[:-1]) == 1 and behind == first + 1:
        return None  # one product takes all cores itself
    has_one_for_all = known[nodes[first].input[1]].value.ndim < rows.rank
    together = rows.lead[-1] if has_one_for_all else 1  # it is read once for many rows
    blocks = parts_of_rows(rows.lead, rows.widest, together)
    return None if len(blocks) < 2 else Stretch(behind, blocks, rows.rank, rows.by_matrices)


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


def _cut(array: Array, rank: int, at: Block) -> Array:
    """What a part reads of an array that is broadcast to ``rank`` axes."""
    missing = rank - array.ndim
    own = at[missing:]
    place = tuple(s if n > 1 else slice(None) for s, n in zip(own, array.shape, strict=False))
    found: Array = array[place]
    return found
