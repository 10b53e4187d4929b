"""CumSum and CumProd along a constant axis."""

from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    integers,
    only_view,
)
from wpk.lowering.anchors.indexed import require_bare, require_fixed
from wpk.lowering.anchors.top_indices import across
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import NotAViewError, View
from wpk.problems import PrefixScan, ScanKind

_MAX_OUTER = 4
_KINDS = {"CumSum": ScanKind.SUM, "CumProd": ScanKind.PROD}


class PrefixScanRule(AnchorRule):
    """Sums or products of what comes before, or behind."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x, axis = _row(inputs, context)
        require_fixed(node.op, x, (axis,))
        return x.shape, x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        require_bare(anchor, result)
        x, axis = _row(anchor.inputs, context)
        if y.padding:
            raise NotAViewError(y.source, y.shape, y.shape)
        outer, views = collapse([across(view, axis) for view in (x, y)], _MAX_OUTER)
        x, y = (
            replace(
                each,
                shape=(*outer, whole.shape[axis]),
                strides=(*each.strides, whole.strides[axis]),
            )
            for each, whole in zip(views, (x, y), strict=True)
        )
        problem = PrefixScan(
            kind=_KINDS[anchor.node.op],
            exclusive=bool(anchor.node.attrs.get("exclusive", 0)),
            reverse=bool(anchor.node.attrs.get("reverse", 0)),
            leading=x.leading,
            outer=outer,
            size=x.shape[-1],
            x=x.tensor(),
            y=y.tensor(),
        )
        return LoweredProblem(problem, (x,))


def _row(inputs: Inputs, context: Context) -> tuple[View, int]:
    x = only_view(inputs[0], "the input")
    axes = integers(inputs[1], context, "the axis")
    if axes is None or len(axes) != 1:
        raise RefusedError(f"running sums along axes {axes}")
    return x, axes[0] % len(x.shape)
