"""Gather, Pad and Resize: movement that strides cannot say."""

from collections.abc import Sequence
from math import prod
from typing import TypeVar

import onnx_graphsurgeon as gs

from wpk.expression import Acc
from wpk.extent import Extent
from wpk.lowering.anchors.base import AnchorRule, Lowered, only_view
from wpk.lowering.context import Context
from wpk.lowering.symbols import Computed, RefusedError, Symbol
from wpk.lowering.views import View
from wpk.problems import Gather, Pad, Resize
from wpk.problems.movement import NearestMode, PadMode, ResizeCoordinates, ResizeMode

Inputs = Sequence[Symbol | None]
E = TypeVar("E", ResizeMode, ResizeCoordinates, NearestMode)


class GatherRule(AnchorRule):
    """Rows of a table by index."""

    def shape(
        self, node: gs.Node, inputs: Sequence[Symbol | None], context: Context
    ) -> tuple[tuple[int, ...], Extent]:
        """See `AnchorRule.shape`."""
        data, index = only_view(inputs[0], "the table"), only_view(inputs[1], "the index")
        axis = int(node.attrs.get("axis", 0)) % len(data.shape)
        if axis == 0 and data.leading.free:
            raise RefusedError(f"Gather along the free dimension {data.leading.free!r}")
        if axis and index.leading.free:
            raise RefusedError("Gather along an inner axis with a free number of indices")
        shape = (*data.shape[:axis], *index.shape, *data.shape[axis + 1 :])
        return shape, index.leading if axis == 0 else data.leading

    def lower(self, result: Computed, y: View, context: Context) -> Lowered:
        """See `AnchorRule.lower`."""
        anchor = _bare(result)
        data, index = only_view(anchor[0], "the table"), only_view(anchor[1], "the index")
        assert result.anchor is not None
        axis = int(result.anchor.attributes.get("axis", 0)) % len(data.shape)
        outer, size, inner = data.shape[:axis], data.shape[axis], prod(data.shape[axis + 1 :])
        count = prod(index.shape)
        index = index.reshaped((count,))
        table = data.reshaped((prod(outer), size, inner))
        y = y.reshaped((count, inner) if axis == 0 else (prod(outer), count, inner))
        counted = y.leading if axis == 0 else Extent(count)
        if axis == 0:
            y = View(
                y.source,
                y.dtype,
                Extent(1),
                (1, *y.shape),
                (0, *y.strides),
                y.offset,
                y.padding,
                y.alignment,
            )
        row = index.tensor()
        problem = Gather(
            outer=table.leading if axis else Extent(1),
            axis_size=size,
            count=counted,
            inner=inner,
            data=table.tensor(),
            index=type(row)(row.dtype, (0, *row.strides), row.padding, row.alignment),
            y=y.tensor(),
        )
        return Lowered(problem, (table, index))


class PadRule(AnchorRule):
    """Padding and cropping with constant amounts."""

    def shape(
        self, node: gs.Node, inputs: Sequence[Symbol | None], context: Context
    ) -> tuple[tuple[int, ...], Extent]:
        """See `AnchorRule.shape`."""
        x = only_view(inputs[0], "the input")
        begin, end = _pads(node, inputs, len(x.shape), context)
        if begin[0] or end[0]:
            raise RefusedError("Pad of the leading axis")
        return tuple(n + b + e for n, b, e in zip(x.shape, begin, end, strict=True)), x.leading

    def lower(self, result: Computed, y: View, context: Context) -> Lowered:
        """See `AnchorRule.lower`."""
        inputs = _bare(result)
        x = only_view(inputs[0], "the input")
        assert result.anchor is not None
        node = result.anchor.node
        if len(x.shape) > 4:
            raise RefusedError(f"Pad of {len(x.shape)} axes (4 are supported)")
        problem = Pad(
            leading=x.leading,
            x_shape=x.shape,
            y_shape=y.shape,
            begin=tuple(_pads(node, inputs, len(x.shape), context)[0]),
            mode=PadMode(_text(node.attrs.get("mode", "constant"))),
            value=(_floats(inputs, 2, context) or [float(node.attrs.get("value", 0))])[0],
            x=x.tensor(),
            y=y.tensor(),
        )
        return Lowered(problem, (x,))


class ResizeRule(AnchorRule):
    """Resampling of the two spatial axes, wherever the channels are."""

    def shape(
        self, node: gs.Node, inputs: Sequence[Symbol | None], context: Context
    ) -> tuple[tuple[int, ...], Extent]:
        """See `AnchorRule.shape`."""
        x = only_view(inputs[0], "the input")
        sizes, _ = _sizes(node, inputs, x.shape, context)
        return tuple(sizes), x.leading

    def lower(self, result: Computed, y: View, context: Context) -> Lowered:
        """See `AnchorRule.lower`."""
        inputs = _bare(result)
        x = only_view(inputs[0], "the input")
        assert result.anchor is not None
        node = result.anchor.node
        _, scale = _sizes(node, inputs, x.shape, context)
        order = [0, 1, 2, 3] if scale[1] == 1.0 else [0, 3, 1, 2]
        x, y = x.transposed(order), y.transposed(order)
        problem = Resize(
            mode=_choice(ResizeMode, node, "mode", "nearest"),
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
        return Lowered(problem, (x,))


def _bare(result: Computed) -> tuple[Symbol | None, ...]:
    """The anchor's inputs; movement carries no element-wise work."""
    assert result.anchor is not None
    if result.expression != Acc():
        raise RefusedError(f"element-wise work fused into {result.anchor.node.op}")
    return result.anchor.inputs


def _floats(inputs: Inputs, index: int, context: Context) -> list[float] | None:
    if len(inputs) <= index or inputs[index] is None:
        return None
    symbol = inputs[index]
    values = context.values(symbol) if isinstance(symbol, View) else None
    if values is None:
        raise RefusedError(f"input {index} must be constant")
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
        sizes = [int(n * s) for n, s in zip(shape, factors, strict=True)]
    else:
        given = _floats(inputs, 3, context)
        if given is None:
            raise RefusedError(f"{node.op} without constant sizes or scales")
        sizes = [int(n) for n in given]
        factors = [m / n for m, n in zip(sizes, shape, strict=True)]
    if factors[0] != 1.0 or (factors[1] != 1.0 and factors[3] != 1.0):
        raise RefusedError(f"{node.op} of batch or channels")
    return sizes, factors


def _coordinates(node: gs.Node) -> str:
    return "asymmetric" if node.op == "Upsample" else "half_pixel"


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _choice(kind: type[E], node: gs.Node, attribute: str, default: str) -> E:
    text = _text(node.attrs.get(attribute, default))
    if text not in [member.value for member in kind]:
        raise RefusedError(f"{node.op} with {attribute} {text!r}")
    return kind(text)
