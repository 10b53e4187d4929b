"""Rows of products of matrices: which nodes behind a product compute each row alone, so that some rows are evaluated at a time.

An attention is a product, element-wise nodes and a softmax along its rows, and another product: of its scores, which
are far larger than its operands and its result, no more need lie in memory than a core's cache holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from wpk.checks.bounded import attribute_of
from wpk.operators import ELEMENTWISE

Shape = tuple[int, ...]

_ALONG_AN_AXIS = ("LogSoftmax", "Softmax")
_MATRICES = 3
"""Axes of the product that such a stretch begins with, at least."""


@dataclass
class MatrixRows:
    """What is known of tensors in front of a node.

    Attributes:
        lead: Shape of the rows of all matrices: every axis but that of the columns.
        known: Shapes of everything that nodes read and do not make themselves.
        widest: Columns, or terms of a product, of the widest rows.
        made: Shapes of what nodes made so far: all their rows.
        by_rows: Operands of which a part reads its own rows.
        by_matrices: Operands of which a part reads the matrices that its rows are of.
    """

    lead: Shape
    known: Mapping[str, Shape]
    widest: int
    made: dict[str, Shape] = field(default_factory=dict)
    by_rows: set[str] = field(default_factory=set)
    by_matrices: set[str] = field(default_factory=set)

    @property
    def rank(self) -> int:
        """Axes of all tensors that are made."""
        return len(self.lead) + 1

    def takes(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node behind the product computes each row alone, and note what it makes and reads."""
        shape = None
        if len(node.output) == 1 and not self.made.keys().isdisjoint(node.input):
            if node.op_type in ELEMENTWISE:
                shape = self._broadcast(node)
            elif node.op_type in _ALONG_AN_AXIS and self._axis(node) == self.rank - 1:
                shape = self.made[node.input[0]]
            elif node.op_type == "MatMul":
                shape = self._multiplied(node)
        if shape is not None:
            self.made[node.output[0]] = shape
            self.widest = max(self.widest, shape[-1])
        return shape is not None

    def _axis(self, node: onnx.NodeProto) -> int | None:
        """The axis that a node names; None where it leaves it to its opset."""
        axis = attribute_of(node, "axis", None)
        return None if axis is None else int(axis) % self.rank

    def _broadcast(self, node: onnx.NodeProto) -> Shape | None:
        others = {name for name in node.input if name and name not in self.made}
        if not (others <= self.known.keys() and others.isdisjoint(self.by_matrices)):
            return None
        shapes = (self.made.get(name) or self.known[name] for name in node.input if name)
        shape = np.broadcast_shapes(*shapes)
        if shape[:-1] != self.lead:
            return None
        self.by_rows |= others
        return shape

    def _multiplied(self, node: onnx.NodeProto) -> Shape | None:
        """Rows that were made, times matrices that are known."""
        first, second = node.input
        right = self.known.get(second)
        if first not in self.made or right is None or second in self.by_rows:
            return None
        if matrices_of(right, self.rank, self.lead) is None:
            return None
        self.by_matrices.add(second)
        return (*self.lead, right[-1])


def matrices_of(right: Shape, rank: int, lead: Shape) -> Shape | None:
    """The shape of a product's rows, of which each matrix meets one of the right operand's; None where they do not fit."""
    if len(right) not in (2, rank):
        return None
    if any(n not in (1, own) for n, own in zip(right[:-2], lead[:-1], strict=bool(right[:-2]))):
        return None
    return lead


def behind_product(
    nodes: Sequence[onnx.NodeProto], first: int, known: Mapping[str, Shape]
) -> tuple[MatrixRows, int] | None:
    """What a product of several matrices and the nodes behind it do with its rows, and the place behind the last of them.

    Args:
        nodes: Of the body.
        first: Place of the product.
        known: Shapes of everything that it and those behind it read and that they do not make themselves.

    Returns:
        None where the product is no stretch of rows.
    """
    one, other = nodes[first].input
    left, right = known[one], known[other]
    rank = len(left)
    if rank < _MATRICES or one == other or matrices_of(right, rank, left[:-1]) is None:
        return None
    rows = MatrixRows(left[:-1], known, max(left[-1], right[-1]))
    rows.by_rows.add(one)
    rows.by_matrices.add(other)
    rows.made[nodes[first].output[0]] = (*left[:-1], right[-1])
    behind = first + 1
    while behind < len(nodes) and rows.takes(nodes[behind]):
        behind += 1
    return rows, behind
