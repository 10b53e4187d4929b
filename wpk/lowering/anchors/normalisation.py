"""Softmax, LogSoftmax, LayerNormalization, RMSNormalization, InstanceNormalization."""

from dataclasses import replace
from math import prod

import onnx_graphsurgeon as gs

from wpk.expression import Acc, Expression, Operand, apply
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    computation,
    on_accumulator,
    only_view,
    stored,
)
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.free_axis import free_among
from wpk.lowering.numbers import computed_in, whole
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Epilogue, Normalisation, NormKind

_KINDS = {
    "Softmax": NormKind.SOFTMAX,
    "LogSoftmax": NormKind.LOG_SOFTMAX,
    "LayerNormalization": NormKind.LAYER,
    "RMSNormalization": NormKind.RMS,
    "InstanceNormalization": NormKind.LAYER,
}
OPERATORS = tuple(_KINDS)
_SOFTMAX = ("Softmax", "LogSoftmax")
_MAX_OUTER = 3


class NormalisationRule(AnchorRule):
    """Normalisation of rows along the last axes (softmax: along any one axis)."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        if any(t.name for t in node.outputs[1:]):
            raise RefusedError(f"{node.op} with statistics as further outputs")
        x = computation(inputs[0], "a normalisation")
        if node.op in _SOFTMAX and context.opset < 13:
            raise RefusedError(
                f"{node.op} of opset {context.opset}, which flattens its input; only forms of "
                "opset 13 and newer are carried"
            )
        if (free := free_among(x.shape, _row_axes(node, len(x.shape)))) is not None:
            raise RefusedError(f"{node.op} along the free dimension {free!r}")
        return x.shape, x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        node, x = anchor.node, computation(anchor.inputs[0], "a normalisation")
        scaled = _scaled(result, anchor)
        axes = _row_axes(node, len(x.shape))
        order = [i for i in range(len(x.shape)) if i not in axes] + axes
        cols = prod(x.shape[i] for i in axes)
        views = [
            _rows(view.transposed(order), len(axes), cols)
            for view in (*x.operands, y, *scaled.operands)
        ]
        outer, flat = collapse([_outer(view) for view in views], _MAX_OUTER)
        tensors = [
            replace(view.tensor(), strides=(*out.strides, view.strides[-1]))
            for view, out in zip(views, flat, strict=True)
        ]
        count = len(x.operands)
        problem = Normalisation(
            kind=_KINDS[node.op],
            leading=flat[count].leading,
            outer=outer,
            cols=cols,
            epsilon=float(anchor.attributes.get("epsilon", 1e-5)),
            prologue=computed_in(result.numbers, x.expression),
            inputs=tuple(tensors[:count]),
            y=tensors[count],
            epilogue=Epilogue(stored(whole(scaled), y.dtype), tuple(tensors[count + 1 :])),
        )
        return LoweredProblem(problem, (*views[:count], *views[count + 1 :]))


def _row_axes(node: gs.Node, rank: int) -> list[int]:
    if node.op == "InstanceNormalization":
        return list(range(2, rank))
    axis = int(node.attrs.get("axis", -1)) % rank
    return [axis] if node.op in _SOFTMAX else list(range(axis, rank))


def _scaled(result: Computation, anchor: Anchor) -> Computation:
    """Scale and shift as part of the epilogue."""
    node, shape = anchor.node, anchor.shape
    if node.op in _SOFTMAX:
        return result
    expression: Expression = Acc()
    operands = list(result.operands)
    for symbol, operation in zip(anchor.inputs[1:], ("Mul", "Add"), strict=False):
        if symbol is None:
            continue
        view = only_view(symbol, f"the scale or shift of {node.op}")
        if node.op == "InstanceNormalization":
            view = view.reshaped((1, view.shape[0], *[1] * (len(shape) - 2)))
        expression = apply(operation, expression, Operand(len(operands)))
        operands.append(view.broadcast(shape, anchor.leading))
    return replace(on_accumulator(result, expression), operands=tuple(operands))


def _rows(view: View, count: int, cols: int) -> View:
    """The row axes as one; a view without outer axes gets one of extent 1."""
    outer = view.shape[: len(view.shape) - count] or (1,)
    return view.reshaped((*outer, cols))


def _outer(view: View) -> View:
    return replace(view, shape=view.shape[:-1], strides=view.strides[:-1], padding=0)
