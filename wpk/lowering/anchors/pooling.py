"""MaxPool and AveragePool."""

from collections.abc import Sequence
from math import ceil

import onnx_graphsurgeon as gs

from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    epilogue_of,
    only_view,
)
from wpk.lowering.anchors.indexed import require_bare
from wpk.lowering.anchors.window import Window, finds_places, planar, read_window
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Epilogue, Pooling, PoolKind


class PoolingRule(AnchorRule):
    """Window pooling over one or two spatial axes."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x = only_view(inputs[0], "the input")
        if x.dtype.is_integer and x.dtype.bytes > 2:
            raise RefusedError(f"{node.op} of {x.dtype} tensors")
        window = read_window(node.attrs, node.attrs["kernel_shape"], x.shape[2:])
        return (*x.shape[:2], *_extents(node, window, x.shape[2:])), x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        x = only_view(anchor.inputs[0], "the input")
        window = read_window(anchor.attributes, anchor.attributes["kernel_shape"], x.shape[2:])
        x, y = planar(x), planar(y)
        operands = [planar(view) for view in result.operands]
        kind = _kind(anchor.node)
        if kind.finds_places:
            require_bare(anchor, result)
        problem = Pooling(
            kind=kind,
            n=x.leading,
            c=x.shape[1],
            h=x.shape[2],
            w=x.shape[3],
            p=y.shape[2],
            q=y.shape[3],
            window=window.size,
            stride=window.stride,
            dilation=window.dilation,
            pad=window.pad,
            pad_end=window.pad_end,
            count_include_pad=bool(anchor.attributes.get("count_include_pad", 0)),
            x=x.tensor(),
            y=y.tensor(),
            epilogue=Epilogue() if kind.finds_places else epilogue_of(result, y, operands),
        )
        return LoweredProblem(problem, (x, *operands))


def _kind(node: gs.Node) -> PoolKind:
    if node.op != "MaxPool":
        return PoolKind.AVERAGE
    if not finds_places(node):
        return PoolKind.MAX
    return PoolKind.COLUMN_PLACES if node.attrs.get("storage_order", 0) else PoolKind.PLACES


def _extents(node: gs.Node, window: Window, space: Sequence[int]) -> list[int]:
    rank = len(space)
    fields = (window.size, window.stride, window.dilation, window.pad, window.pad_end)
    out = []
    for n, f, s, d, b, e in zip(space, *(field[-rank:] for field in fields), strict=True):
        if n + b + e < (f - 1) * d + 1:
            raise RefusedError(
                f"a window over {(f - 1) * d + 1} elements of {n + b + e}, padding included: ONNX "
                "and ONNX Runtime disagree on it"
            )
        room = (n + b + e - (f - 1) * d - 1) / s
        if not node.attrs.get("ceil_mode", 0):
            out.append(int(room // 1) + 1)
            continue
        count = ceil(room) + 1
        out.append(count - 1 if (count - 1) * s >= n + b else count)  # never start in the padding
    return out
