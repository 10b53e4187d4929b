"""Gather, Pad and Resize: movement that strides cannot say."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc
from wpk.extent import Extent
from wpk.lowering.anchors.base import (
    AnchorRule,
    AnchorShape,
    Inputs,
    LoweredProblem,
    constant_values,
    only_view,
)
from wpk.lowering.context import Context
from wpk.lowering.free_axis import free_among
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Anchor, Computation
from wpk.lowering.views import View
from wpk.problems import Gather, NearestMode, Pad, PadMode, Resize, ResizeCoordinates, ResizeMode

E = TypeVar("E", PadMode, ResizeMode, ResizeCoordinates, NearestMode)


class GatherRule(AnchorRule):
    """Rows of a table by index."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        data, index = only_view(inputs[0], "the table"), only_view(inputs[1], "the index")
        axis = int(node.attrs.get("axis", 0)) % len(data.shape)
        if (free := free_among(data.shape, [axis])) is not None:
            raise RefusedError(f"Gather along the free dimension {free!r}")
        if axis and index.leading.free:
            raise RefusedError("Gather along an inner axis with a free number of indices")
        shape = (*data.shape[:axis], *index.shape, *data.shape[axis + 1 :])
        return shape, index.leading if axis == 0 else data.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        inputs = _bare(anchor, result)
        data, index = only_view(inputs[0], "the table"), only_view(inputs[1], "the index")
        axis = int(anchor.attributes.get("axis", 0)) % len(data.shape)
        outer, size, inner = data.shape[:axis], data.shape[axis], prod(data.shape[axis + 1 :])
        count = prod(index.shape)
        index = index.reshaped((count,))
        table = data.reshaped((prod(outer), size, inner))
        y = y.reshaped((count, inner) if axis == 0 else (prod(outer), count, inner))
        counted = y.leading if axis == 0 else Extent(count)
        row, rows = index.tensor(), y.tensor()
        if axis == 0:
            rows = replace(rows, strides=(0, *rows.strides))
        problem = Gather(
            outer=table.leading if axis else Extent(1),
            axis_size=size,
            count=counted,
            inner=inner,
            data=table.tensor(),
            index=replace(row, strides=(0, *row.strides)),
            y=rows,
        )
        return LoweredProblem(problem, (table, index))


class PadRule(AnchorRule):
    """Padding and cropping with constant amounts."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x = only_view(inputs[0], "the input")
        begin, end = _pads(node, inputs, len(x.shape), context)
        if begin[0] or end[0]:
            raise RefusedError("Pad of the leading axis")
        _require_defined(node, x.shape, begin, end)
        return tuple(n + b + e for n, b, e in zip(x.shape, begin, end, strict=True)), x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        inputs, node = _bare(anchor, result), anchor.node
        x = only_view(inputs[0], "the input")
        if len(x.shape) > 4:
            raise RefusedError(f"Pad of {len(x.shape)} axes (4 are supported)")
        problem = Pad(
            leading=x.leading,
            x_shape=x.shape,
            y_shape=y.shape,
            begin=tuple(_pads(node, inputs, len(x.shape), context)[0]),
            mode=_choice(PadMode, node, "mode", "constant"),
            value=_pad_value(x.dtype, inputs, context),
            x=x.tensor(),
            y=y.tensor(),
        )
        return LoweredProblem(problem, (x,))


def _pad_value(dtype: DType, inputs: Inputs, context: Context) -> float:
    """The number that fills a constant padding; it reaches the kernel in fp32."""
    value = (_floats(inputs, 2, context) or [0.0])[0]
    if not dtype.is_float and abs(value) >= 2**24:
        raise RefusedError(f"Pad of {dtype} with {value:.0f}, which fp32 may not hold")
    return value


def _require_defined(
    node: gs.Node, shape: Sequence[int], begin: Sequence[int], end: Sequence[int]
) -> None:
    """Refuse a node for which ONNX does not say what lies outside."""
    mode = _choice(PadMode, node, "mode", "constant")
    for size, b, e in zip(shape, begin, end, strict=True):
        if mode in (PadMode.REFLECT, PadMode.WRAP) and min(b, e) < 0:
            raise RefusedError(f"Pad that crops in mode {mode}")
        most = {PadMode.REFLECT: size - 1, PadMode.WRAP: size}.get(mode)
        if most is not None and max(b, e) > most:
            raise RefusedError(f"Pad of {size} elements by {max(b, e)} in mode {mode}")
        if mode is PadMode.EDGE and (b < 0 or e < 0) and min(b, e) <= -size:
            raise RefusedError(f"Pad in mode {mode} that crops all {size} elements")


class ResizeRule(AnchorRule):
    """Resampling of the two spatial axes, wherever the channels are."""

    def shape(self, node: gs.Node, inputs: Inputs, context: Context) -> AnchorShape:
        """See `AnchorRule.shape`."""
        x = only_view(inputs[0], "the input")
        sizes, _ = _sizes(node, inputs, x.shape, context)
        return tuple(sizes), x.leading

    def lower(
        self, anchor: Anchor, result: Computation, y: View, context: Context
    ) -> LoweredProblem:
        """See `AnchorRule.lower`."""
        inputs, node = _bare(anchor, result), anchor.node
        x = only_view(inputs[0], "the input")
        mode = _choice(ResizeMode, node, "mode", "nearest")
        if mode is not ResizeMode.NEAREST and not x.dtype.is_float:
            raise RefusedError(f"{node.op} of {x.dtype} tensors in mode {mode}")
        _, scale = _sizes(node, inputs, x.shape, context)
        order = [0, 1, 2, 3] if scale[1] == 1.0 else [0, 3, 1, 2]
        x, y = x.transposed(order), y.transposed(order)
        problem = Resize(
            mode=mode,
            coordinates=_choice(
                ResizeCoordinates, node, "coordinate_transformation_mode", _coordinates(node)
            ),
            nearest=_choice(NearestMode, node, "nearest_mode", "round_prefer_floor"),
            n=x.leading,
            c=x.shape[1],
            h=x.shape[2],
            w=x.shape[3],
            p=y.shape[2],
            q=y.shape[3],
            scale=(scale[order[2]], scale[order[3]]),
            x=x.tensor(),
            y=y.tensor(),
        )
        return LoweredProblem(problem, (x,))


def _bare(anchor: Anchor, result: Computation) -> Inputs:
    """Return the anchor's inputs; movement carries no element-wise work."""
    if result.expression != Acc():
        raise RefusedError(f"element-wise work fused into {anchor.node.op}")
    return anchor.inputs


def _floats(inputs: Inputs, index: int, context: Context) -> list[float] | None:
    symbol = inputs[index] if index < len(inputs) else None
    if symbol is None:
        return None
    values = constant_values(symbol, context, f"input {index}")
    return [float(v) for v in values.reshape(-1)] if values.size else None


def _pads(
    node: gs.Node, inputs: Inputs, rank: int, context: Context
) -> tuple[list[int], list[int]]:
    given = _floats(inputs, 1, context)
    pads = [int(p) for p in (given if given is not None else node.attrs["pads"])]
    axes = _floats(inputs, 3, context)
    places = range(rank) if axes is None else [int(a) % rank for a in axes]
    begin, end = [0] * rank, [0] * rank
    for i, axis in enumerate(places):
        begin[axis], end[axis] = pads[i], pads[len(pads) // 2 + i]
    return begin, end


def _sizes(
    node: gs.Node, inputs: Inputs, shape: tuple[int, ...], context: Context
) -> tuple[list[int], list[float]]:
    """Extents after a resize, and its scale along each axis; the batch and the channels keep theirs."""
    if len(shape) != 4:
        raise RefusedError(f"{node.op} of {len(shape)} axes (4 are supported)")
    if node.attrs.get("antialias", 0) or node.attrs.get("axes") is not None:
        raise RefusedError(f"{node.op} with antialias or axes")
    if _text(node.attrs.get("keep_aspect_ratio_policy", "stretch")) != "stretch":
        raise RefusedError(f"{node.op} that keeps the aspect ratio")
    factors = _floats(inputs, 1 if node.op == "Upsample" else 2, context)
    if factors is not None:
        sizes = [_scaled(n, s) for n, s in zip(shape, factors, strict=True)]
        _require_whole(node, shape, factors)
    else:
        given = _floats(inputs, 3, context)
        if given is None:
            raise RefusedError(f"{node.op} without constant sizes or scales")
        sizes = [int(n) for n in given]
        factors = [m / n for m, n in zip(sizes, shape, strict=True)]
    if factors[0] != 1.0 or (factors[1] != 1.0 and factors[3] != 1.0):
        raise RefusedError(f"{node.op} of batch or channels")
    return sizes, factors


def _scaled(size: int, factor: float) -> int:
    """A size times a scale as ONNX takes it, in fp32; a free size is only ever kept."""
    return size if factor == 1.0 else int(np.float32(size) * np.float32(factor))


def _require_whole(node: gs.Node, shape: tuple[int, ...], factors: list[float]) -> None:
    """Refuse aligned corners of a length that scales leave between two numbers.

    By ONNX's text, ONNX Runtime and PyTorch the corners are those of the samples that there are; by
    its own evaluator and tests those of the fraction.
    """
    if _text(node.attrs.get("coordinate_transformation_mode", "")) != "align_corners":
        return
    for size, factor in zip(shape, factors, strict=True):
        if factor != 1.0 and abs(size * factor - round(size * factor)) > 1e-3:
            raise RefusedError(
                f"{node.op} with align_corners from {size} to {size * factor:g} samples, no whole "
                "number: ONNX's tests and ONNX Runtime differ there (give sizes instead of scales)"
            )


def _coordinates(node: gs.Node) -> str:
    return "asymmetric" if node.op == "Upsample" else "half_pixel"


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _choice(kind: type[E], node: gs.Node, attribute: str, default: str) -> E:
    text = _text(node.attrs.get(attribute, default))
    if text not in [member.value for member in kind]:
        raise RefusedError(f"{node.op} with {attribute} {text!r}")
    return kind(text)
