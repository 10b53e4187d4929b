"""A product of rows that are normalised as it reads them: a body of a normalisation without parameters and the product.

Both are read in pieces: what is normalised, and the product, which then reads it raw, through the views between.
"""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from wpk.lowering.anchors.base import LoweredProblem, only_view
from wpk.lowering.anchors.matmul import MatmulRule
from wpk.lowering.anchors.pieces import until
from wpk.lowering.anchors.row_moments import beside_rows
from wpk.lowering.body import OperatorBody, ShapeRule, read_body
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Symbol
from wpk.lowering.views import View
from wpk.problems import Matmul, NormedMatmul, NormKind

_KINDS = {"LayerNormalization": NormKind.LAYER, "RMSNormalization": NormKind.RMS}
_PRODUCTS = ("Gemm", "MatMul")


class NormedProductBody:
    """A body of a normalisation and a product, read.

    Attributes:
        result: What the body computes: a computation whose anchor is the product.
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
        self.context = context
        self.norm = next(node for node in body.nodes if node.op in _KINDS)
        rows, normed = str(self.norm.inputs[0].name), str(self.norm.outputs[0].name)
        read = read_body(until(body, rows), inputs, context, shapes)
        self.rows = only_view(read, "what is normalised")
        self._require_bare(inputs)
        unread = [inputs[name] for name in body.unread if name in inputs]
        self.moments = only_view(unread[0], "what is known of rows") if unread else None
        known = {**inputs, normed: self.rows}
        self.result = read_body(until(body, body.output, normed), known, context, shapes)
        if self.result.anchor is None or self.result.anchor.node.op not in _PRODUCTS:
            raise RefusedError("a normalisation and a product that are not one behind the other")

    def _require_bare(self, inputs: Mapping[str, Symbol]) -> None:
        scale = inputs.get(str(self.norm.inputs[1].name))
        values = self.context.values(scale) if isinstance(scale, View) else None
        if len(self.norm.inputs) > 2 or values is None or not bool((values == 1).all()):
            raise RefusedError("a normalisation with parameters before a product in one body")

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory, seen with the shape of the product.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        anchor = self.result.anchor
        assert anchor is not None
        lowered = MatmulRule().lower(anchor, self.result, y, self.context)
        plain, inputs = lowered.problem, lowered.inputs
        assert isinstance(plain, Matmul)
        if not plain.b_constant or plain.k != self.rows.shape[-1]:
            raise RefusedError("a product of normalised rows whose matrix is not constant")
        kind = _KINDS[self.norm.op]
        sums = self._column_sums(inputs[1], plain) if kind is NormKind.LAYER else None
        moments = self.moments
        problem = NormedMatmul(
            **{field.name: getattr(plain, field.name) for field in fields(plain)},
            kind=kind,
            epsilon=float(self.norm.attrs.get("epsilon", 1e-5)),
            sums=None
            if sums is None
            else sums.broadcast((1, 1, 1, plain.n), sums.leading).tensor(),
            moments=None if moments is None else beside_rows(moments, self.rows, plain.a),
        )
        behind = tuple(view for view in (sums, moments) if view is not None)
        return LoweredProblem(problem, (*inputs, *behind))

    def _column_sums(self, matrix: View, problem: Matmul) -> View:
        """Of the matrix as it lies in memory, rounded once."""
        values = self.context.values(matrix)
        assert values is not None
        sums = values.reshape(problem.k, problem.n).astype(np.float64).sum(axis=0)
        return self.context.added(f"{matrix.source}:column_sums", sums.astype(np.float32))


def is_normed_product(body: OperatorBody) -> bool:
    """Tell whether a body holds a normalisation and one product."""
    ops = [node.op for node in body.nodes]
    return sum(op in _KINDS for op in ops) == 1 == sum(op in _PRODUCTS for op in ops)
