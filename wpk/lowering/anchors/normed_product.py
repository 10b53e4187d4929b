"""A product of rows that are normalised as it reads them: a body of a normalisation without parameters and the product.

Both are read in pieces: what is normalised, and the product, which then reads it raw, through the views between. Where
moments of the rows are known, the nodes that `wpk.graph_passes.fusion.row_moments` has made stand for the normalisation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import onnx_graphsurgeon as gs

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
        norm = _norm_of(body)
        if norm is None:
            raise RefusedError("a product of rows that are normalised in a way of their own")
        self.norm = norm
        read = read_body(until(body, norm.rows), inputs, context, shapes)
        self.rows = only_view(read, "what is normalised")
        self._require_bare(inputs)
        given = inputs.get(norm.moments)
        self.moments = only_view(given, "moments of rows") if norm.moments else None
        known = {**inputs, norm.output: self.rows}
        self.result = read_body(until(body, body.output, norm.output), known, context, shapes)
        if self.result.anchor is None or self.result.anchor.node.op not in _PRODUCTS:
            raise RefusedError("a normalisation and a product that are not one behind the other")

    def _require_bare(self, inputs: Mapping[str, Symbol]) -> None:
        if self.norm.moments:
            return  # they have none
        parameters = self.norm.parameters
        scale = inputs.get(parameters[0])
        values = self.context.values(scale) if isinstance(scale, View) else None
        if len(parameters) > 1 or values is None or not bool((values == 1).all()):
            raise RefusedError("a normalisation with parameters before a product in one body")

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory, seen with the shape of the product.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        anchor, norm = self.result.anchor, self.norm
        assert anchor is not None
        lowered = MatmulRule().lower(anchor, self.result, y, self.context)
        plain, inputs = lowered.problem, lowered.inputs
        assert isinstance(plain, Matmul)
        if not plain.b_constant or plain.k != self.rows.shape[-1]:
            raise RefusedError("a product of normalised rows whose matrix is not constant")
        sums = self._column_sums(inputs[1], plain) if norm.kind is NormKind.LAYER else None
        moments = self.moments
        problem = NormedMatmul(
            **{field.name: getattr(plain, field.name) for field in fields(plain)},
            kind=norm.kind,
            epsilon=norm.epsilon,
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
    products = sum(node.op in _PRODUCTS for node in body.nodes)
    return products == 1 and _norm_of(body) is not None


@dataclass(frozen=True)
class _Norm:
    """A normalisation inside of a body, by the names of its tensors.

    Attributes:
        kind: What it is.
        epsilon: Added to the mean square.
        rows: What it normalises.
        output: What it gives.
        parameters: Its scale, and its shift if there is one.
        moments: Of the rows, where they are known; else empty.
    """

    kind: NormKind
    epsilon: float
    rows: str
    output: str
    parameters: tuple[str, ...] = ()
    moments: str = ""


def _norm_of(body: OperatorBody) -> _Norm | None:
    """The one normalisation of a body; None where there is none, or another number."""
    nodes = [node for node in body.nodes if node.op in _KINDS]
    if not nodes:
        return _known_norm(body)
    if len(nodes) > 1:
        return None
    (node,) = nodes
    rows, *parameters = (str(tensor.name) for tensor in node.inputs)
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    return _Norm(_KINDS[node.op], epsilon, rows, str(node.outputs[0].name), tuple(parameters))


_FROM_MOMENTS = {
    NormKind.LAYER: "Slice Slice ReduceMean Sub Mul Add ReduceMean Squeeze Sub Add Squeeze Sqrt Div",
    NormKind.RMS: "ReduceMean Add Squeeze Sqrt Div",
}
"""The nodes that compute rows from known moments, in their order; a cast of the rows lies in front of them."""


def _known_norm(body: OperatorBody) -> _Norm | None:
    """Rows that are divided by a root of what their moments say; None where a body has none, or several."""
    ends = [place + 1 for place, node in enumerate(body.nodes) if node.op == "Div"]
    found = [
        norm
        for end in ends
        for kind, words in _FROM_MOMENTS.items()
        if (norm := _ending(body, body.nodes[:end], kind, words.split())) is not None
    ]
    return found[0] if len(found) == 1 else None


def _ending(
    body: OperatorBody, nodes: Sequence[gs.Node], kind: NormKind, ops: list[str]
) -> _Norm | None:
    """The normalisation that these nodes end with; None where it is another."""
    own = nodes[-len(ops) :]
    if [node.op for node in own] != ops:
        return None
    moments, guarded, quotient = str(own[0].inputs[0].name), own[-4], own[-1]
    rows = (quotient if kind is NormKind.RMS else own[-5]).inputs[0]
    epsilon = guarded.inputs[1]
    if moments not in body.inputs or not isinstance(epsilon, gs.Constant):
        return None
    value = float(np.asarray(epsilon.values).reshape(()))
    return _Norm(kind, value, str(rows.name), str(quotient.outputs[0].name), moments=moments)
