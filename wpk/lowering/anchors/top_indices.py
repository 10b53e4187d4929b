"""ArgMax, ArgMin and the indices of TopK: where the largest or smallest elements of rows are."""

from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    integers,
    only_view,
)
from wpk.lowering.anchors.indexed import require_bare, require_fixed
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import TopIndices

_MAX_OUTER = 4


class ArgRule(AnchorRule):
    """The first element along an axis, or the last of equal ones."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        x, axis = _rows(node, inputs, 0)
        shape = [*x.shape[:axis], *([1] if _keeps(node) else []), *x.shape[axis + 1 :]] or [1]
        return tuple(shape), x.leading if axis else Extent(shape[0])

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        node = anchor.node
        x, axis = _rows(node, anchor.inputs, 0)
        y = y.reshaped((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        return _lowered(x, y, axis, node.op == "ArgMax", bool(node.attrs.get("select_last_index")))


class TopKRule(AnchorRule):
    """The first k elements along an axis, in their order."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x, axis = _rows(node, inputs, -1)
        (count,) = integers(inputs[1], context, "the number of elements of TopK") or [0]
        if not 1 <= count <= x.shape[axis]:
            raise RefusedError(f"TopK of {count} of {x.shape[axis]} elements")
        if not node.attrs.get("sorted", 1):
            raise RefusedError("TopK in an order that ONNX leaves open (sorted=0)")
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        return shape, x.leading if axis else Extent(count)

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        x, axis = _rows(anchor.node, anchor.inputs, -1)
        return _lowered(x, y, axis, bool(anchor.node.attrs.get("largest", 1)), False)


def _rows(node: gs.Node, inputs: Inputs, default: int) -> tuple[View, int]:
    x = only_view(inputs[0], "the input")
    axis = int(node.attrs.get("axis", default)) % len(x.shape)
    require_fixed(node.op, x, (axis,))
    return x, axis


def _keeps(node: gs.Node) -> bool:
    return bool(node.attrs.get("keepdims", 1))


def _lowered(x: View, y: View, axis: int, largest: bool, last: bool) -> LoweredProblem:
    """The problem of rows along one axis; y has the indices of a row along the same."""
    outer, (rows, indices) = collapse([across(view, axis) for view in (x, y)], _MAX_OUTER)
    x, y = (
        replace(each, shape=(*outer, view.shape[axis]), strides=(*each.strides, view.strides[axis]))
        for each, view in ((rows, x), (indices, y))
    )
    problem = TopIndices(
        largest=largest,
        last=last,
        leading=x.leading,
        outer=outer,
        size=x.shape[-1],
        count=y.shape[-1],
        x=x.tensor(),
        y=y.tensor(),
    )
    return LoweredProblem(problem, (x,))


def across(view: View, axis: int) -> View:
    """The axes outside of rows."""
    shape = (*view.shape[:axis], *view.shape[axis + 1 :]) or (1,)
    strides = (*view.strides[:axis], *view.strides[axis + 1 :]) or (0,)
    leading = view.leading if axis else Extent(shape[0])
    return replace(view, shape=shape, strides=strides, leading=leading, padding=0)
