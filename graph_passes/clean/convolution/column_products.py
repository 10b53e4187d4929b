"""Write convolutions as products of matrices where no convolution kernel takes their weights.

    Conv(x; W, b)            ->  W · columns(x) + b         of every pixel of y, what the window reads there
    ConvTranspose(x; W, b)   ->  Col2Im(W' · x) + b

Convolution kernels read weights that are laid out for them when a plan is made, and have no fp64. So these are the
convolutions whose weights a run computes (experts that are mixed, styles that modulate, one image searched for in
another), and those in fp64. Exact: every element is the same sum. What it costs is an image in
memory as often as the window has taps.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.convolution.window_pixels import window_pixels
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import Numbers, numbers_of
from wpk.graph_passes.core.known import follows_from_constants
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    is_float,
    static_shape,
    window_numbers,
)

_COL2IM_SINCE = 18
"""The opset that brought Col2Im."""


@dataclass(frozen=True)
class _Convolution:
    """A convolution over one axis or more, all but whose batch is known.

    Attributes:
        node: The Conv or ConvTranspose.
        image: Sizes of the input's space.
        out: Sizes of the output's space.
        window: Sizes of the window.
        strides: Of the window.
        dilations: Between its taps.
        pads: In front of all axes, then behind.
    """

    node: gs.Node
    image: list[int]
    out: list[int]
    window: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]

    @property
    def groups(self) -> int:
        """Of channels."""
        return int(self.node.attrs.get("group", 1))


class ColumnProducts(Rule[_Convolution]):
    """Replace convolutions with computed weights, or in fp64."""

    name = "column-products"
    ops: ClassVar = ("Conv", "ConvTranspose")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Convolution | Refusal | None:
        """Match where all sizes but the batch are known."""
        if numbers_of(node) is not Numbers.FP64 and follows_from_constants(node.inputs[1]):
            return None
        reason = _why_not(node)
        if reason is None and node.op == "ConvTranspose" and graph.opset < _COL2IM_SINCE:
            reason = f"Col2Im is no operator of opset {graph.opset}"
        if reason is not None:
            return refusal(node, reason)
        of = _read(node)
        return refusal(node, _why_disputed(of)) or of

    def rewrite(self, editor: GraphEditor, match: _Convolution) -> None:
        """Write the product."""
        to = _Writer(editor, match)
        made = to.spread() if match.node.op == "ConvTranspose" else to.convolved()
        editor.replace(match.node.outputs[0], made)


def _why_not(node: gs.Node) -> str | None:
    x, weights, output = node.inputs[0], node.inputs[1], node.outputs[0]
    if not is_float(x):
        return f"'{x.name}' is of type {x.dtype}"
    for tensor, known in ((x, 1), (weights, 0), (output, 1)):
        shape = dims(tensor)
        if shape is None or not all(isinstance(size, int) for size in shape[known:]):
            return f"'{tensor.name}' has shape {shape}: all but the batch must be known"
    return None


def _why_disputed(of: _Convolution) -> str | None:
    if of.node.op != "Conv" or not _auto(of.node).startswith("SAME"):
        return None
    if set(of.dilations) != {1} or min(_missing(of)) < -1:
        return f"padded {_auto(of.node)}, ONNX and ONNX Runtime disagree where its windows begin"
    return None


def _auto(node: gs.Node) -> str:
    return str(node.attrs.get("auto_pad", "NOTSET"))


def _read(node: gs.Node) -> _Convolution:
    image, out = ([int(n) for n in list(t.shape)[2:]] for t in (node.inputs[0], node.outputs[0]))
    window = (static_shape(node.inputs[1]) or [])[2:]
    axes = len(window)
    numbers = (window_numbers(node, name, axes) for name in ("strides", "dilations", "pads"))
    of = _Convolution(node, image, out, window, *numbers)
    if _auto(node).startswith("SAME") or node.attrs.get("output_shape"):
        return replace(of, pads=_pads_by_itself(of))
    return of


def _pads_by_itself(of: _Convolution) -> list[int]:
    """Padding that follows from the sizes: half on each side, of an odd one more on the side that is named."""
    totals = [max(each, 0) for each in _missing(of)]
    more_in_front = _auto(of.node) != "SAME_UPPER"
    begin = [total - total // 2 if more_in_front else total // 2 for total in totals]
    return [*begin, *(total - one for total, one in zip(totals, begin, strict=True))]


def _missing(of: _Convolution) -> list[int]:
    """Pixels along each axis by which the smaller of the images is short of the windows of the larger."""
    transposed = of.node.op == "ConvTranspose"
    few, many = (of.image, of.out) if transposed else (of.out, of.image)
    extra = window_numbers(of.node, "output_padding", len(few))  # a Conv has none
    sizes = zip(few, of.window, of.strides, of.dilations, extra, strict=True)
    reach = [(n - 1) * s + (w - 1) * d + 1 + e for n, w, s, d, e in sizes]
    return [each - size for each, size in zip(reach, many, strict=True)]


class _Writer(NodeParts):
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, of: _Convolution) -> None:
        super().__init__(editor, of.node)
        self.of, self.groups = of, of.groups
        self.x, self.weights = of.node.inputs[:2]
        self.batch, self.channels = self.x.shape[0], int(self.x.shape[1])
        self.filters = int(of.node.outputs[0].shape[1])
        self.taps = prod(of.window)

    def convolved(self) -> gs.Tensor:
        """Weights times the columns of the image."""
        rows = self.channels // self.groups * self.taps
        matrix = [self.filters // self.groups, rows]
        pixels = self._times(self._grouped(matrix), self._columns(rows))
        pixels = self._biased(pixels, [*self._group(), matrix[0], 1])
        return self.reshaped(pixels, [self.batch, self.filters, *self.of.out])

    def spread(self) -> gs.Tensor:
        """Weights times pixels: of each, a block of the output for every filter."""
        of, inside = self.of, self.channels // self.groups
        block = self.filters // self.groups * self.taps
        matrix = self._grouped([inside, block])
        *groups, rows, columns = range(len(matrix.shape))
        matrix = self.transposed(matrix, [*groups, columns, rows])
        pixels = self.reshaped(self.x, [self.batch, *self._group(), inside, prod(of.image)])
        blocks = self.reshaped(
            self._times(matrix, pixels), [self.batch, self.filters * self.taps, prod(of.image)]
        )
        image = self.add(
            "Col2Im",
            blocks,
            self.ints(of.out),
            self.ints(of.window),
            shape=[self.batch, self.filters, *of.out],
            strides=of.strides,
            dilations=of.dilations,
            pads=self._reached(),
        )
        return self._biased(image, [self.filters, *[1] * len(of.out)])

    def _reached(self) -> list[int]:
        """Pads with which the blocks reach the output: what a Conv of the output would have."""
        of, axes = self.of, len(self.of.window)
        behind = [
            (of.image[axis] - 1) * of.strides[axis]
            + (of.window[axis] - 1) * of.dilations[axis]
            + 1
            - of.pads[axis]
            - of.out[axis]
            for axis in range(axes)
        ]
        return [*of.pads[:axes], *behind]

    def _columns(self, rows: int) -> gs.Tensor:
        """(batch, group, channels of the group and taps, pixels of the output)."""
        of, size = self.of, prod(self.of.image)
        image = self.reshaped(self.x, [self.batch, self.channels, size])
        places = window_pixels(
            of.image, of.window, strides=of.strides, dilations=of.dilations, pads=of.pads
        )
        outside = places < 0
        if outside.any():
            edges = self.ints([0, 0, 0, 0, 0, 1])
            image = self.add("Pad", image, edges, shape=[self.batch, self.channels, size + 1])
        if not np.array_equal(places, np.arange(size)[None]):
            table = np.where(outside, size, places).reshape(-1)
            index = self.editor.constant(f"{self.node.name}_places", table)
            shape: Dims = [self.batch, self.channels, table.size]
            image = self.add("Gather", image, index, shape=shape, axis=2)
        return self.reshaped(image, [self.batch, *self._group(), rows, prod(of.out)])

    def _biased(self, x: gs.Tensor, column: list[int]) -> gs.Tensor:
        bias = given(self.node, 2)
        if bias is None:
            return x
        return self.add("Add", x, self.reshaped(bias, column), shape=list(x.shape))

    def _group(self) -> list[int]:
        return [self.groups] if self.groups > 1 else []

    def _grouped(self, matrix: list[int]) -> gs.Tensor:
        return self.reshaped(self.weights, [*self._group(), *matrix])

    def _times(self, matrix: gs.Tensor, columns: gs.Tensor) -> gs.Tensor:
        shape: Dims = [*columns.shape[:-2], matrix.shape[-2], columns.shape[-1]]
        return self.add("MatMul", matrix, columns, shape=shape, like=self.x)
