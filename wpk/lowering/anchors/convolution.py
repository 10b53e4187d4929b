"""Conv and ConvTranspose."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    epilogue_of,
    only_view,
    with_bias,
)
from wpk.lowering.anchors.limits import clamped, input_and_limits
from wpk.lowering.anchors.matmul import product_of_rows
from wpk.lowering.anchors.window import Window, planar, plane, read_window
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Convolution


class ConvolutionRule(AnchorRule):
    """Convolution with constant weights over one or two spatial axes."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x, _ = input_and_limits(inputs[0], context)
        weight = only_view(inputs[1], "the weight")
        return (x.shape[0], *_channels_and_space(node, x, weight)), x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        x, limits = input_and_limits(anchor.inputs[0], context)
        weight = only_view(anchor.inputs[1], "the weight")
        constant = context.constant(weight)
        if constant is None:
            raise RefusedError("convolution with weights that are not constant")
        window = read_window(anchor.attributes, weight.shape[2:], x.shape[2:])
        if len(anchor.inputs) > 2 and anchor.inputs[2] is not None:
            bias = only_view(anchor.inputs[2], "the bias")
            column = bias.reshaped((1, bias.shape[0], *[1] * (len(anchor.shape) - 2)))
            result = with_bias(result, column, anchor.shape)
        operands = [planar(view) for view in result.operands]
        limits = tuple(planar(view) for view in limits)
        x, y = planar(x), planar(y)
        transposed = anchor.node.op == "ConvTranspose"
        if transposed:
            window = _transposed_window(anchor.node, window, x.shape[2:], y.shape[2:])
        precision = _precision(anchor, x, constant, limits, context)
        if anchor.node.op == "Conv" and not limits and _is_product(anchor, window, x, y):
            columns = context.constant(_transposed_matrix(constant))
            assert columns is not None
            matrices = (
                context.stored(columns, precision),
                *(_of_pixel(v) for v in (x, y, *operands)),
            )
            return product_of_rows(precision, result, *matrices)
        problem = Convolution(
            precision=precision,
            n=x.leading,
            c=x.shape[1],
            h=x.shape[2],
            w=x.shape[3],
            k=y.shape[1],
            p=y.shape[2],
            q=y.shape[3],
            filter=window.size,
            stride=window.stride,
            dilation=window.dilation,
            pad=window.pad,
            groups=int(anchor.attributes.get("group", 1)),
            transposed=transposed,
            x=x.tensor(),
            y=y.tensor(),
            epilogue=epilogue_of(result, y, operands),
        )
        constant = context.stored(_plane_weight(context, constant), precision)
        inputs = (x, constant, *operands, *limits)
        return LoweredProblem(clamped(problem, limits), inputs)


def _precision(
    anchor: Anchor, x: View, weight: View, limits: Sequence[View], context: Context
) -> Precision:
    """Of the products: of bytes, where these are multiplied as they lie in memory."""
    terms, groups = prod(weight.shape[1:]), int(anchor.attributes.get("group", 1))
    if limits or anchor.node.op != "Conv" or weight.shape[1] == 1 < groups:
        return context.compute_precision(weight.dtype)
    return context.product_precision(x, weight, terms)


def _is_product(anchor: Anchor, window: Window, x: View, y: View) -> bool:
    """Whether images and filter are one pixel: channels are rows times a matrix then."""
    one_group = int(anchor.attributes.get("group", 1)) == 1
    space = (*window.size, *x.shape[2:], *y.shape[2:])
    return one_group and set(space) == {1}


def _of_pixel(image: View) -> View:
    """The channels of images of one pixel, as rows of a matrix."""
    return replace(image, shape=image.shape[:2], strides=image.strides[:2])


def _transposed_matrix(weight: View) -> View:
    """Filters of one pixel as columns."""
    (k, c), (of_k, of_c) = weight.shape[:2], weight.strides[:2]
    return replace(weight, leading=Extent(c), shape=(c, k), strides=(of_c, of_k))


def _plane_weight(context: Context, weight: View) -> View:
    if len(weight.shape) == 4:
        return weight
    flat = context.constant(weight, (*weight.shape[:2], 1, weight.shape[2]))
    assert flat is not None
    return flat


def _channels_and_space(node: gs.Node, x: View, weight: View) -> tuple[int, ...]:
    window = read_window(node.attrs, weight.shape[2:], x.shape[2:])
    rank = len(x.shape) - 2
    extents = zip(x.shape[2:], *(getattr(window, f)[-rank:] for f in _FIELDS), strict=True)
    if node.op == "Conv":
        space = [(n + b + e - (f - 1) * d - 1) // s + 1 for n, f, s, d, b, e in extents]
        return (weight.shape[0], *space)
    if node.attrs.get("output_shape"):
        space = [int(n) for n in node.attrs["output_shape"]][-rank:]
    else:
        extra = node.attrs.get("output_padding", [0] * rank)
        space = [
            (n - 1) * s + (f - 1) * d + 1 - b - e + int(o)
            for (n, f, s, d, b, e), o in zip(extents, extra, strict=True)
        ]
        if str(node.attrs.get("auto_pad", "NOTSET")).startswith("SAME"):
            space = [n * s for n, s in zip(x.shape[2:], window.stride[-rank:], strict=True)]
    return (weight.shape[1] * int(node.attrs.get("group", 1)), *space)


_FIELDS = ("size", "stride", "dilation", "pad", "pad_end")


def _transposed_window(
    node: gs.Node, window: Window, space: Sequence[int], out: Sequence[int]
) -> Window:
    """ConvTranspose with ``output_shape`` or SAME padding: the padding follows from the extents."""
    auto = str(node.attrs.get("auto_pad", "NOTSET"))
    if not node.attrs.get("output_shape") and not auto.startswith("SAME"):
        return window
    extra = plane(node.attrs.get("output_padding", [0, 0]), 0)
    begin = []
    for i in range(2):
        full = (space[i] - 1) * window.stride[i] + (window.size[i] - 1) * window.dilation[i] + 1
        total = max(0, full + extra[i] - out[i])
        begin.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
    return Window(window.size, window.stride, window.dilation, (begin[0], begin[1]), window.pad_end)
