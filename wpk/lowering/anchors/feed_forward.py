"""A feed-forward block: a body of two products of the same rows, perhaps behind their normalisation.

Its nodes are read in two pieces, each of which keeps to the grammar of bodies: what makes the hidden rows, which is a
product or a product of normalised rows, and the product that reads them.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.graph_passes import producer
from wpk.lowering.anchors.base import LoweredProblem, stored
from wpk.lowering.anchors.matmul import gemm_terms, operands_of
from wpk.lowering.anchors.normed_product import NormedProductBody, is_normed_product
from wpk.lowering.anchors.pieces import two_products, until
from wpk.lowering.body import OperatorBody, ShapeRule, read_body
from wpk.lowering.context import Context
from wpk.lowering.numbers import whole
from wpk.lowering.partition import element_type
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation, Symbol
from wpk.lowering.view_ops import OPERATORS as VIEWS
from wpk.lowering.views import View, contiguous_strides
from wpk.problems import Epilogue, FeedForward, NormKind, RowNorm, whole_runs

_PRODUCTS = ("Gemm", "MatMul")
_NORMS = ("LayerNormalization", "RMSNormalization")
_MIDDLE = "the hidden rows"


class FeedForwardBody:
    """A body that is a feed-forward block, read.

    Attributes:
        result: What the body computes: a computation whose anchor is the second product.
    """

    def __init__(
        self,
        body: OperatorBody,
        inputs: Mapping[str, Symbol],
        context: Context,
        shapes: Mapping[str, ShapeRule],
    ) -> None:
        """Read the pieces.

        Raises:
            RefusedError: A piece does not follow the grammar.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        self.context, self.name = context, body.name
        _, second = two_products(body, _PRODUCTS)
        middle = second.inputs[0]
        made = until(body, middle.name)
        normed = is_normed_product(made)
        self.normed = NormedProductBody(made, inputs, context, shapes) if normed else None
        first = self.normed.result if self.normed else read_body(made, inputs, context, shapes)
        if first.anchor is None or first.shape != first.anchor.shape:
            raise RefusedError("hidden rows that are viewed in another shape between two products")
        self.hidden = first
        strides = contiguous_strides(first.shape)
        rows = View(_MIDDLE, element_type(middle), first.leading, first.shape, strides)
        known = {**inputs, middle.name: rows}
        self.result = read_body(until(body, body.output, middle.name), known, context, shapes)
        self.middle = rows

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory, seen with the shape of the second product.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        first, second = self.hidden.anchor, self.result.anchor
        if first is None or second is None:
            raise RefusedError("two products of the same rows that are not two")
        x, up = self._factors(first, "up", transposed=True)
        _, down = self._factors(second, "down", transposed=False)
        hidden, of_hidden = _behind(self.hidden, first, self.middle)
        epilogue, of_output = _behind(self.result, second, y)
        norm, sums = self._norm(up)
        output = _flat(y)
        problem = FeedForward(
            precision=self.context.compute_precision(up.dtype),
            m=output.leading,
            k=x.shape[1],
            hidden_size=up.shape[0],
            n=output.shape[1],
            x=x.tensor(),
            up=up.tensor(),
            down=down.tensor(),
            norm=norm,
            hidden=hidden,
            epilogue=epilogue,
            y=output.tensor(),
        )
        return LoweredProblem(problem, (x, up, down, *of_hidden, *sums, *of_output))

    def _factors(self, anchor: Anchor, word: str, *, transposed: bool) -> tuple[View, View]:
        """The rows that are multiplied, and the matrix as a constant whose rows are hidden columns."""
        a, matrix = operands_of(anchor.node, anchor.inputs)
        values = self.context.values(matrix.reshaped(matrix.shape[-2:]))
        if values is None:
            raise RefusedError("a product of hidden rows with weights that are not constant")
        rows = values.T if transposed else values
        lying = np.zeros((len(rows), whole_runs(rows.shape[1])), rows.dtype)
        lying[:, : rows.shape[1]] = rows
        return _flat(a), self.context.added(f"{self.name}.{word}", lying)

    def _norm(self, up: View) -> tuple[RowNorm | None, list[View]]:
        """How rows are normalised, and what of the first matrix that asks for, summed as it lies in memory."""
        if self.normed is None:
            return None, []
        kind, epsilon = self.normed.norm.kind, self.normed.norm.epsilon
        if kind is not NormKind.LAYER:
            return RowNorm(kind, epsilon, None), []
        values = self.context.values(up)
        assert values is not None
        sums: NDArray[Any] = values.astype(np.float64).sum(axis=1).astype(np.float32)
        view = self.context.added(f"{self.name}.sums", sums)
        row = view.broadcast((1, len(sums)), view.leading).tensor()
        return RowNorm(kind, epsilon, row), [view]


def is_feed_forward(body: OperatorBody) -> bool:
    """Tell whether a body holds two products of several rows of each image; those of one row are a squeeze."""
    ops = [node.op for node in body.nodes]
    if sum(op in _PRODUCTS for op in ops) != 2 or "Softmax" in ops:
        return False
    first, _ = two_products(body, _PRODUCTS)
    rows = first.inputs[0]
    while (made := producer(rows)) is not None:
        if made.op not in (*VIEWS, *_NORMS, "Cast"):
            return False
        rows = made.inputs[0]
    image, width = list(rows.shape)[1:], first.inputs[0].shape[-1]
    return len(image) > 1 and prod(image) > width


def _behind(result: Computation, anchor: Anchor, y: View) -> tuple[Epilogue, list[View]]:
    """What happens to a product, over rows and columns."""
    result = gemm_terms(result, anchor)
    operands = [_flat(view.broadcast(y.shape, y.leading)) for view in result.operands]
    tensors = tuple(view.tensor() for view in operands)
    return Epilogue(stored(whole(result), y.dtype), tensors), operands


def _flat(view: View) -> View:
    """A view with all of its leading axes joined."""
    return view.reshaped((prod(view.shape[:-1]), view.shape[-1]))
