"""What a tensor inside an operator's body stands for: a view in memory, or a computation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, Operand, Round, Scalar, substitute
from wpk.extent import Extent
from wpk.lowering.free_axis import broadcast_shapes
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import NotAViewError, View


@dataclass(frozen=True)
class ViewStep:
    """A view operator applied to a result: ``perm`` for a transpose, else a reshape of ``before``."""

    before: tuple[int, ...]
    perm: tuple[int, ...] | None = None

    def undone(self, view: View) -> View:
        """Return a view of memory in the shape after this step, seen in the shape before it."""
        if self.perm is None:
            return view.reshaped(self.before)
        return view.transposed([self.perm.index(i) for i in range(len(self.perm))])


@dataclass(frozen=True)
class Anchor:
    """The one operator of a body that is not element-wise.

    Attributes:
        node: The ONNX node.
        inputs: What its inputs stand for; None where an optional one is missing.
        shape: Shape of its output.
        leading: Leading extent of its output.
    """

    node: gs.Node
    inputs: tuple["View | Computation | None", ...]
    shape: tuple[int, ...]
    leading: Extent

    @property
    def attributes(self) -> dict[str, Any]:
        """The node's attributes by name."""
        attributes: dict[str, Any] = dict(self.node.attrs)
        return attributes


@dataclass(frozen=True)
class Computation:
    """An expression over a domain.

    The operands have the shape of the domain: that of the anchor's output, if there is an anchor.
    ``steps`` are the view operators that lead from there to the present ``shape``; they are undone
    on the output's memory. ``numbers`` is what it is computed in, where that is not fp32: fp64, or 64-bit
    integers.
    """

    expression: Expression
    operands: tuple[View, ...]
    shape: tuple[int, ...]
    leading: Extent
    dtype: DType
    anchor: Anchor | None = None
    steps: tuple[ViewStep, ...] = ()
    numbers: DType | None = None

    def pulled_back(self, view: View) -> View:
        """Return a view in the present shape, seen in the anchor's output shape."""
        for step in reversed(self.steps):
            view = step.undone(view)
        return view

    @property
    def is_settled(self) -> bool:
        """Whether the domain can no longer change: it has an anchor, or steps that lead from it."""
        return self.anchor is not None or bool(self.steps)

    def as_view(self) -> View | None:
        """Return the view that this is nothing but a (rounded) reading of, if so.

        What a product rounds anyway need not be rounded before; numbers of fp64 are not.

        Raises:
            NotAViewError: It would be, but its memory cannot be seen in this shape.
        """
        if self.steps and self.operands:
            raise NotAViewError(self.operands[0].source, self.operands[0].shape, self.shape)
        expression = self.expression
        while isinstance(expression, Round) and self.numbers is not DType.FP64:
            expression = expression.argument
        if isinstance(expression, Operand) and self.anchor is None:
            return self.operands[expression.index]
        return None


Symbol = View | Computation


def of_view(view: View) -> Computation:
    """Return a computation that only reads a view."""
    return Computation(Operand(0), (view,), view.shape, view.leading, view.dtype)


def of_scalar(value: float, dtype: DType) -> Computation:
    """Return a constant computation of shape (1,)."""
    return Computation(Scalar(value), (), (1,), Extent(1), dtype)


def of_anchor(anchor: Anchor, dtype: DType, numbers: DType | None) -> Computation:
    """Return the bare result of an anchor that is computed in fp64, or in fp32 (None)."""
    return Computation(Acc(), (), anchor.shape, anchor.leading, dtype, anchor, (), numbers)


def merge(parts: Sequence[Computation]) -> tuple[list[Expression], Computation]:
    """Bring several computations to one shape and one list of operands.

    Returns:
        The parts' expressions over the merged operands, and a computation that carries the merged
        shape, operands, anchor and steps (its own expression means nothing).

    Raises:
        RefusedError: Two anchors meet, or broadcasting would grow a settled result.
    """
    shape = broadcast_shapes(*(part.shape for part in parts))
    settled = [part for part in parts if part.is_settled]
    if len({(id(part.anchor), part.steps) for part in settled}) > 1:
        raise RefusedError("two results that are not element-wise in each other meet in one body")
    if settled and settled[0].shape != shape:
        raise RefusedError(f"broadcasting grows a result from {settled[0].shape} to {shape}")
    leading = _leading(parts, shape)
    carrier = settled[0] if settled else replace(parts[0], shape=shape, leading=leading)
    operands: list[View] = []
    expressions = []
    for part in parts:
        views = part.operands
        if not part.is_settled:
            views = tuple(carrier.pulled_back(v.broadcast(shape, leading)) for v in views)
        operands += [view for view in views if view not in operands]
        indices = [operands.index(view) for view in views]
        expressions.append(_reindexed(part.expression, indices))
    return expressions, replace(carrier, operands=tuple(operands))


def _leading(parts: Sequence[Computation], shape: tuple[int, ...]) -> Extent:
    """Return the leading extent of a broadcast result: free if that of any part of full rank is free."""
    full = [p.leading for p in parts if len(p.shape) == len(shape) and p.shape[0] == shape[0]]
    return next((e for e in full if e.free), Extent(shape[0]))


def _reindexed(expression: Expression, indices: Sequence[int]) -> Expression:
    return substitute(
        expression, lambda leaf: Operand(indices[leaf.index]) if isinstance(leaf, Operand) else leaf
    )
