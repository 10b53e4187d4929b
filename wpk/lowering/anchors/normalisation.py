"""Softmax, LogSoftmax, LayerNormalization, RMSNormalization, InstanceNormalization."""

from collections.abc import Sequence
from contextlib import suppress
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
from wpk.lowering.views import NotAViewError, View
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
_SCALING = (("Mul", 1), ("Add", 0))
"""What scale and shift do, and those that do nothing."""
_MAX_OUTER = 3


class NormalisationRule(AnchorRule):
    """Normalisation of rows along the last axes (softmax: along any one axis), in one line or several."""

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
        scaled = _scaled(result, anchor, context)
        axes = _row_axes(node, len(x.shape))
        order = [i for i in range(len(x.shape)) if i not in axes] + _along_memory(axes, y)
        turned = [view.transposed(order) for view in (*x.operands, y, *scaled.operands)]
        views, row = _rows(turned, len(axes))
        outer, flat = collapse([_outer(view, len(row)) for view in views], _MAX_OUTER)
        tensors = [
            replace(view.tensor(), strides=(*out.strides, *view.strides[-len(row) :]))
            for view, out in zip(views, flat, strict=True)
        ]
        count = len(x.operands)
        problem = Normalisation(
            kind=_KINDS[node.op],
            leading=flat[count].leading,
            outer=outer,
            cols=row[-1],
            epsilon=float(anchor.attributes.get("epsilon", 1e-5)),
            prologue=computed_in(result.numbers, x.expression),
            inputs=tuple(tensors[:count]),
            y=tensors[count],
            epilogue=Epilogue(stored(whole(scaled), y.dtype), tuple(tensors[count + 1 :])),
            lines=prod(row[:-1]),
        )
        return LoweredProblem(problem, (*views[:count], *views[count + 1 :]))


def _row_axes(node: gs.Node, rank: int) -> list[int]:
    if node.op == "InstanceNormalization":
        return list(range(2, rank))
    axis = int(node.attrs.get("axis", -1)) % rank
    return [axis] if node.op in _SOFTMAX else list(range(axis, rank))


def _scaled(result: Computation, anchor: Anchor, context: Context) -> Computation:
    """Scale and shift as part of the epilogue, but scales of one and shifts of zero."""
    node, shape = anchor.node, anchor.shape
    if node.op in _SOFTMAX:
        return result
    expression: Expression = Acc()
    operands = list(result.operands)
    for symbol, (operation, nothing) in zip(anchor.inputs[1:], _SCALING, strict=False):
        if symbol is None:
            continue
        view = only_view(symbol, f"the scale or shift of {node.op}")
        known = context.values(view)
        if known is not None and bool((known == nothing).all()):
            continue
        if node.op == "InstanceNormalization":
            view = view.reshaped((1, view.shape[0], *[1] * (len(shape) - 2)))
        expression = apply(operation, expression, Operand(len(operands)))
        operands.append(view.broadcast(shape, anchor.leading))
    return replace(on_accumulator(result, expression), operands=tuple(operands))


def _along_memory(axes: list[int], y: View) -> list[int]:
    """The axes of a row as they follow each other in the output's memory: statistics are the same in any order."""
    return sorted(axes, key=lambda axis: -y.strides[axis])


def _rows(views: Sequence[View], count: int) -> tuple[list[View], tuple[int, ...]]:
    """All views with their last ``count`` axes as one, or as lines and columns; and the extents of these.

    Raises:
        NotAViewError: Neither shows them.
    """
    outer, axes = views[0].shape[:-count] or (1,), views[0].shape[-count:]
    whole = (prod(axes),)
    splits = [(prod(axes[:at]), prod(axes[at:])) for at in range(count - 1, 0, -1)]
    for row in (whole, *(split for split in splits if 1 not in split)):
        with suppress(NotAViewError):
            return [view.reshaped((*outer, *row)) for view in views], row
    return [view.reshaped((*outer, *whole)) for view in views], whole


def _outer(view: View, row: int) -> View:
    """A view without the axes of its rows."""
    return replace(view, shape=view.shape[:-row], strides=view.strides[:-row], padding=0)
