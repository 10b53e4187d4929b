"""MatMul and Gemm."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.expression import Acc, Scalar, apply
from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    on_accumulator,
    only_view,
    stored,
    with_bias,
)
from wpk.lowering.batch_axes import batched
from wpk.lowering.context import Context
from wpk.lowering.free_axis import broadcast_shapes
from wpk.lowering.numbers import whole
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import NotAViewError, View
from wpk.problems import Epilogue, Matmul, Tensor

"""That kernels walk before each matrix."""


class MatmulRule(AnchorRule):
    """Matrix products; heads split or transposed are strides, weights without batch are constants."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        a, b = operands_of(node, inputs)
        if a.shape[-1] != b.shape[-2]:
            raise RefusedError(f"product of shapes {a.shape} and {b.shape}")
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*batch, a.shape[-2], b.shape[-1])
        frees = [v.leading for v in (a, b) if len(v.shape) == len(shape) and v.leading.free]
        return shape, frees[0] if frees else Extent(shape[0])

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        a, b = operands_of(anchor.node, anchor.inputs)
        result = gemm_terms(result, anchor)
        flat = _flattened(a, b, y, result.operands)
        if flat is None:
            views = (a, b, y, *result.operands)
            a, b, y, *operands = batched(views, y.shape[:-2], y.leading)
        else:
            a, b, y, *operands = flat
        constant = None
        if all(s == 0 or n == 1 for n, s in zip(b.shape[:-2], b.strides[:-2], strict=True)):
            constant = context.constant(_matrix(b))
        precision = context.product_precision(a, b if constant is None else constant, a.shape[-1])
        b = b if constant is None else context.stored(constant, precision)
        problem = Matmul(
            precision=precision,
            batch=(Extent(1), 1) if flat is not None else (y.leading, y.shape[1]),
            m=y.leading if flat is not None else Extent(y.shape[2]),
            n=y.shape[-1],
            k=a.shape[-1],
            a=_matrices(a),
            b=_matrices(b),
            b_constant=constant is not None,
            y=_matrices(y),
            epilogue=_epilogue(result, y, operands),
        )
        return LoweredProblem(problem, (a, b, *operands))


def product_of_rows(
    precision: Precision, result: Computation, b: View, a: View, y: View, *operands: View
) -> LoweredProblem:
    """Return the product of rows with a constant matrix: views have two axes, and ``a`` the leading extent."""
    problem = Matmul(
        precision=precision,
        batch=(Extent(1), 1),
        m=y.leading,
        n=y.shape[1],
        k=a.shape[1],
        a=_matrices(a),
        b=_matrices(b),
        b_constant=True,
        y=_matrices(y),
        epilogue=_epilogue(result, y, operands),
    )
    return LoweredProblem(problem, (a, b, *operands))


def _epilogue(result: Computation, y: View, operands: Sequence[View]) -> Epilogue:
    return Epilogue(stored(whole(result), y.dtype), tuple(_matrices(view) for view in operands))


def operands_of(node: gs.Node, inputs: Inputs) -> tuple[View, View]:
    """Return both factors, as they are multiplied."""
    a, b = only_view(inputs[0], "the first operand"), only_view(inputs[1], "the second operand")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise RefusedError("a product with a vector (only matrices are supported)")
    if node.op == "Gemm":
        a = a.transposed((1, 0)) if node.attrs.get("transA", 0) else a
        b = b.transposed((1, 0)) if node.attrs.get("transB", 0) else b
    return a, b


def gemm_terms(result: Computation, anchor: Anchor) -> Computation:
    """Gemm's alpha and C as part of the epilogue; `PlainForms` has taken beta out of floats."""
    if anchor.node.op != "Gemm":
        return result
    alpha, beta = (float(anchor.attributes.get(n, 1.0)) for n in ("alpha", "beta"))
    if beta != 1.0:
        raise RefusedError(f"Gemm with beta {beta}")
    if len(anchor.inputs) > 2 and anchor.inputs[2] is not None:
        result = with_bias(result, only_view(anchor.inputs[2], "the bias"), anchor.shape)
    if alpha == 1.0:
        return result
    return on_accumulator(result, apply("Mul", Acc(), Scalar(alpha)))


def _flattened(a: View, b: View, y: View, operands: Sequence[View]) -> list[View] | None:
    """Join all leading axes into one m where b has no batch and memory allows; the domain is (m, ·)."""
    if prod(b.shape[:-2]) != 1:
        return None
    rows = prod(y.shape[:-1])
    try:
        flat = [v.reshaped((rows, v.shape[-1])) for v in (_full_rank(a, y), y, *operands)]
    except NotAViewError:
        return None
    return [flat[0], _matrix(b), *flat[1:]]


def _full_rank(a: View, y: View) -> View:
    return (
        a if len(a.shape) == len(y.shape) else a.broadcast((*y.shape[:-1], a.shape[-1]), y.leading)
    )


def _matrices(view: View) -> Tensor:
    """Return a view as the problem sees it: matrices without batch axes are repeated along both."""
    tensor = view.tensor()
    return replace(tensor, strides=(*(0,) * (4 - len(tensor.strides)), *tensor.strides))


def _matrix(b: View) -> View:
    rows = b.shape[-2]
    return replace(b, leading=Extent(rows), shape=b.shape[-2:], strides=b.strides[-2:])
