"""Reduce* operators and global pooling."""

from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, apply
from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    computation,
    integers,
    on_accumulator,
    stored,
)
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.free_axis import free_among
from wpk.lowering.numbers import computed_in, whole
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Epilogue, ReduceKind, Reduction

_KINDS: dict[str, tuple[ReduceKind, str | None, str | None]] = {
    "ReduceSum": (ReduceKind.SUM, None, None),
    "ReduceMean": (ReduceKind.MEAN, None, None),
    "ReduceMax": (ReduceKind.MAX, None, None),
    "ReduceMin": (ReduceKind.MIN, None, None),
    "ReduceProd": (ReduceKind.PROD, None, None),
    "ReduceL1": (ReduceKind.SUM, "Abs", None),
    "ReduceL2": (ReduceKind.SUM, "Square", "Sqrt"),
    "ReduceSumSquare": (ReduceKind.SUM, "Square", None),
    "ReduceLogSum": (ReduceKind.SUM, None, "Log"),
    "GlobalAveragePool": (ReduceKind.MEAN, None, None),
    "GlobalMaxPool": (ReduceKind.MAX, None, None),
}
OPERATORS = tuple(_KINDS)
_ORDERING = ("ReduceMax", "ReduceMin")
_NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.BOOL)
"""Types of which fp32 holds every number."""

_MAX_OUTER, _MAX_INNER = 4, 3


class ReductionRule(AnchorRule):
    """Reductions over constant axes, with element-wise work before and after."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x = computation(inputs[0], "a reduction")
        if not x.dtype.is_float and not (node.op in _ORDERING and x.dtype in _NARROW):
            raise RefusedError(f"{node.op} of {x.dtype} tensors")
        axes, keep = _axes_and_keep(node, inputs, len(x.shape), context)
        if (free := free_among(x.shape, axes)) is not None:
            raise RefusedError(f"a reduction over the free dimension {free!r}")
        full = [1 if i in axes else n for i, n in enumerate(x.shape)]
        shape = full if keep else [n for i, n in enumerate(x.shape) if i not in axes]
        leading = x.leading if shape and 0 not in axes else Extent(shape[0] if shape else 1)
        return tuple(shape) or (1,), leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        kind, before, after = _KINDS[anchor.node.op]
        x = computation(anchor.inputs[0], "a reduction")
        axes = axes_of(anchor.node, anchor.inputs, len(x.shape), context)
        outer = [i for i in range(len(x.shape)) if i not in axes]
        inputs = [view.transposed([*outer, *axes]) for view in x.operands]
        rows = tuple(x.shape[i] for i in outer) or (1,)
        outputs = [view.reshaped(rows) for view in (y, *result.operands)]
        if not outer:
            inputs = [view.reshaped((1, *view.shape)) for view in inputs]
        split = len(rows)
        inner_shape, inner = collapse([_part(v, split, None) for v in inputs], _MAX_INNER)
        outer_shape, both = collapse([*(_part(v, 0, split) for v in inputs), *outputs], _MAX_OUTER)
        leading = both[len(inputs)].leading
        tensors = tuple(
            replace(whole.tensor(), strides=(*out.strides, *inn.strides))
            for whole, out, inn in zip(inputs, both, inner, strict=False)
        )
        y, *operands = both[len(inputs) :]
        if after is not None:
            result = on_accumulator(result, apply(after, Acc()))
        problem = Reduction(
            kind=kind,
            leading=leading,
            outer=outer_shape,
            inner=inner_shape,
            prologue=computed_in(result.numbers, _before(x.expression, before)),
            inputs=tensors,
            y=y.tensor(),
            epilogue=Epilogue(stored(whole(result), y.dtype), tuple(v.tensor() for v in operands)),
        )
        return LoweredProblem(problem, (*inputs, *operands))


def axes_of(node: gs.Node, inputs: Inputs, rank: int, context: Context) -> list[int]:
    """Return the axes that a node reduces, in order, none of them negative."""
    return _axes_and_keep(node, inputs, rank, context)[0]


def _axes_and_keep(
    node: gs.Node, inputs: Inputs, rank: int, context: Context
) -> tuple[list[int], bool]:
    if node.op.startswith("Global"):
        return list(range(2, rank)), True
    keep = bool(node.attrs.get("keepdims", 1))
    given = node.attrs.get("axes")
    if given is None and len(inputs) > 1:
        given = integers(inputs[1], context, f"the axes of {node.op}")
    if not given:
        if node.attrs.get("noop_with_empty_axes", 0):
            raise RefusedError(f"{node.op} over no axes")
        return list(range(rank)), keep
    return sorted(int(a) % rank for a in given), keep


def _part(view: View, start: int, stop: int | None) -> View:
    shape = view.shape[start:stop]
    return replace(
        view,
        shape=shape,
        strides=view.strides[start:stop],
        leading=view.leading if start == 0 else Extent(shape[0]),
        padding=0,
    )


def _before(expression: Expression, operation: str | None) -> Expression:
    if operation == "Square":
        return apply("Mul", expression, expression)
    return expression if operation is None else apply(operation, expression)
