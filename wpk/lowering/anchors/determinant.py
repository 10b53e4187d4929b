"""Det: determinants of the matrices that the last two axes hold."""

from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    only_view,
)
from wpk.lowering.anchors.indexed import require_bare
from wpk.lowering.collapse import collapse
from wpk.lowering.context import Context
from wpk.lowering.free_axis import free_among
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import NotAViewError, View
from wpk.problems import MOST_ROWS, Determinant

_MAX_OUTER = 4


class DeterminantRule(AnchorRule):
    """One number for each matrix."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        del context
        x = only_view(inputs[0], "the matrices")
        last = range(len(x.shape) - 2, len(x.shape))
        if (free := free_among(x.shape, list(last))) is not None:
            raise RefusedError(f"Det of matrices whose size {free!r} is free")
        size = x.shape[-1]
        if x.shape[-2] != size or size > MOST_ROWS:
            raise RefusedError(
                f"Det of matrices of {x.shape[-2]} rows and {size} columns; at most {MOST_ROWS} are carried"
            )
        outer = _outside(x)
        return outer.shape, outer.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        del context
        require_bare(anchor, result)
        x = only_view(anchor.inputs[0], "the matrices")
        if y.padding:
            raise NotAViewError(y.source, y.shape, y.shape)
        outer, (matrices, numbers) = collapse([_outside(x), y], _MAX_OUTER)
        whole = replace(
            matrices, shape=(*outer, *x.shape[-2:]), strides=(*matrices.strides, *x.strides[-2:])
        )
        problem = Determinant(
            leading=numbers.leading,
            outer=outer,
            size=x.shape[-1],
            x=whole.tensor(),
            y=numbers.tensor(),
        )
        return LoweredProblem(problem, (whole,))


def _outside(view: View) -> View:
    """The axes outside of matrices."""
    shape, strides = view.shape[:-2] or (1,), view.strides[:-2] or (0,)
    leading = view.leading if view.shape[:-2] else Extent(1)
    return replace(view, shape=shape, strides=strides, leading=leading, padding=0)
