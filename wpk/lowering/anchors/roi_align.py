"""RoiAlign: regions of images, resampled to windows of one size."""

import onnx_graphsurgeon as gs

from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    epilogue_of,
    only_view,
)
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import MOST_SAMPLES, RoiAlign, RoiMode

_COORDINATES = {"half_pixel": True, "output_half_pixel": False}
_SINCE = 16
"""The opset that has half pixels, which are the default since."""


class RoiAlignRule(AnchorRule):
    """As many windows for every region; of images whose number is fixed."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x, rois, image = _operands(inputs)
        if len(x.shape) != 4 or rois.shape != (image.shape[0], 4):
            raise RefusedError(f"RoiAlign of {x.shape} by regions {rois.shape}, {image.shape}")
        if x.leading.free:
            raise RefusedError(f"RoiAlign of the free dimension {x.leading.free!r} of images")
        _mode(node), _is_half_pixel(node, context), _sampling(node)
        height, width = (int(node.attrs.get(f"output_{side}", 1)) for side in ("height", "width"))
        return (rois.shape[0], x.shape[1], height, width), rois.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        x, rois, image = _operands(anchor.inputs)
        images, c, h, w = x.shape
        problem = RoiAlign(
            mode=_mode(anchor.node),
            half_pixel=_is_half_pixel(anchor.node, context),
            sampling=_sampling(anchor.node),
            scale=float(anchor.attributes.get("spatial_scale", 1.0)),
            regions=rois.leading,
            images=images,
            c=c,
            h=h,
            w=w,
            p=y.shape[2],
            q=y.shape[3],
            x=x.tensor(),
            rois=rois.tensor(),
            image=image.tensor(),
            y=y.tensor(),
            epilogue=epilogue_of(result, y, result.operands),
        )
        return LoweredProblem(problem, (x, rois, image, *result.operands))


def _operands(inputs: Inputs) -> tuple[View, View, View]:
    x, rois, image = (
        only_view(symbol, what)
        for symbol, what in zip(
            inputs, ("the input", "the regions", "the images of regions"), strict=True
        )
    )
    return x, rois, image


def _text(node: gs.Node, name: str, default: str) -> str:
    value = node.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def _mode(node: gs.Node) -> RoiMode:
    text = _text(node, "mode", "avg")
    if text not in list(RoiMode):
        raise RefusedError(f"RoiAlign in mode {text!r}")
    return RoiMode(text)


def _is_half_pixel(node: gs.Node, context: Context) -> bool:
    default = "half_pixel" if context.opset >= _SINCE else "output_half_pixel"
    text = _text(node, "coordinate_transformation_mode", default)
    if text not in _COORDINATES:
        raise RefusedError(f"RoiAlign with coordinate_transformation_mode {text!r}")
    return _COORDINATES[text]


def _sampling(node: gs.Node) -> int | None:
    count = int(node.attrs.get("sampling_ratio", 0))
    if not 0 <= count < MOST_SAMPLES:
        raise RefusedError(f"RoiAlign with a sampling_ratio of {count}")
    return count or None
