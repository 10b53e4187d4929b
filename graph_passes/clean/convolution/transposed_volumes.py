"""Write transposed convolutions over three axes as ones over two, for which there are kernels.

    ConvTranspose(x; W, b)  ->  the planes of ConvTranspose(x'; W') + b

With a stride of s along the depth, plane ``q * s + r`` of the output, before padding crops it, is what the taps r,
r + s, r + 2 s, … of the window give from planes q, q - 1, q - 2, … of the input. These planes become channels of x',
as in `WindowParts`, and the s planes that they give filters of W'. A window that is no whole number of strides deep
gets taps of zeros behind, which add nothing; so all planes are made by one convolution.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims, given, rank, static_shape, window_numbers


@dataclass(frozen=True)
class _Volume:
    """A transposed convolution of volumes.

    Attributes:
        node: It.
        channels: Of a group.
        filters: Of a group.
        window: Its size along depth, height and width.
        stride: Along the depth.
        taps: So many planes of the input meet in one of the output.
        first: The plane before cropping that is the output's first.
        steps: Strides, the last of which reaches the output's last plane.
    """

    node: gs.Node
    channels: int
    filters: int
    window: list[int]
    stride: int
    taps: int
    first: int
    steps: int

    @property
    def groups(self) -> int:
        """Of channels."""
        return int(self.node.attrs.get("group", 1))


class TransposedVolumes(Rule[_Volume]):
    """Replace a ConvTranspose of five-dimensional tensors, whose batch may be free."""

    name = "transposed-volumes"
    ops: ClassVar = ("ConvTranspose",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Volume | Refusal | None:
        """Match windows over three axes of known sizes."""
        del graph
        if rank(node.inputs[0]) != 5:
            return None
        reason = _why_not(node)
        if reason is not None:
            return refusal(node, reason)
        shape = static_shape(node.inputs[1]) or []
        stride, first = (window_numbers(node, name, 3)[0] for name in ("strides", "pads"))
        return _Volume(
            node,
            channels=shape[0] // int(node.attrs.get("group", 1)),
            filters=shape[1],
            window=shape[2:],
            stride=stride,
            taps=-(-shape[2] // stride),
            first=first,
            steps=-(-(first + int(node.outputs[0].shape[2])) // stride),
        )

    def rewrite(self, editor: GraphEditor, match: _Volume) -> None:
        """Write the convolution of images, and put its planes in their order."""
        to = _Writer(editor, match)
        made = to.in_order(to.convolution(to.planes(), to.filters()))
        bias = given(match.node, 2)
        if bias is not None:
            column = to.reshaped(bias, [to.groups * to.of.filters, 1, 1, 1])
            made = to.add("Add", made, column, shape=list(made.shape))
        editor.replace(match.node.outputs[0], made)


def _why_not(node: gs.Node) -> str | None:
    x, output = node.inputs[0], node.outputs[0]
    inner = [*(dims(x) or [])[1:], *(dims(output) or [None])[1:]]
    if not all(isinstance(size, int) for size in inner):
        return f"sizes of '{x.name}' or '{output.name}' are not known"
    if node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return "it computes how much it pads"
    if node.attrs.get("output_shape"):
        return "its padding follows from the shape of its output"
    if window_numbers(node, "dilations", 3)[0] != 1:
        return "its window has gaps along the depth"
    return None if static_shape(node.inputs[1]) else "the shape of its weights is not known"


class _Writer(NodeParts):
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, of: _Volume) -> None:
        super().__init__(editor, of.node)
        self.of, self.x, self.groups = of, of.node.inputs[0], of.groups
        self.batch, _, self.depth, *self.plane = list(self.x.shape)
        _, _, self.deep, *self.out = list(of.node.outputs[0].shape)

    def planes(self) -> gs.Tensor:
        """(batch and strides, group, taps and channels of the group, height, width) as images."""
        of, groups = self.of, self.groups
        row = of.channels * self.plane[0] * self.plane[1]
        turned = self.transposed(self.x, [0, 2, 1, 3, 4])
        rows = self.reshaped(turned, [self.batch, self.depth, groups, row])
        before, length = of.taps - 1, of.taps - 1 + of.steps
        behind = max(length - before - self.depth, 0)
        if before or behind:
            edges = self.ints([0, before, 0, 0, 0, behind, 0, 0])
            shape: Dims = [self.batch, before + self.depth + behind, groups, row]
            rows = self.add("Pad", rows, edges, shape=shape)
        shifted = [self._cut(rows, 1, before - tap, of.steps) for tap in range(of.taps)]
        joined = shifted[0]
        if of.taps > 1:
            shape = [self.batch, of.steps, groups, of.taps * row]
            joined = self.add("Concat", *shifted, shape=shape, axis=3)
        count = self.batch * of.steps if isinstance(self.batch, int) else None
        return self.reshaped(joined, [count, groups * of.taps * of.channels, *self.plane])

    def filters(self) -> gs.Tensor:
        """(group, tap and channel of the group; plane and filter of the group; height, width)."""
        of, groups = self.of, self.groups
        deep, *window = of.window
        weights, whole = of.node.inputs[1], of.taps * of.stride
        if whole > deep:
            edges = self.ints([0] * 7 + [whole - deep, 0, 0])
            shape: Dims = [groups * of.channels, of.filters, whole, *window]
            weights = self.add("Pad", weights, edges, shape=shape)
        taps = [groups, of.channels, of.filters, of.taps, of.stride, window[0] * window[1]]
        turned = self.transposed(self.reshaped(weights, taps), [0, 3, 1, 4, 2, 5])
        rows, columns = groups * of.taps * of.channels, of.stride * of.filters
        return self.reshaped(turned, [rows, columns, *window])

    def convolution(self, images: gs.Tensor, filters: gs.Tensor) -> gs.Tensor:
        """Of every stride's images, all planes."""
        node, lists = self.node, ("strides", "dilations", "output_padding")
        attributes: dict[str, Any] = {
            name: window_numbers(node, name, 3)[1:] for name in lists if name in node.attrs
        }
        pads = window_numbers(node, "pads", 3)
        attributes |= {"pads": [*pads[1:3], *pads[4:6]], "group": self.groups}
        attributes["kernel_shape"] = self.of.window[1:]
        shape: Dims = [images.shape[0], self.groups * int(filters.shape[1]), *self.out]
        return self.add("ConvTranspose", images, filters, shape=shape, **attributes)

    def in_order(self, images: gs.Tensor) -> gs.Tensor:
        """The output's planes."""
        of, area = self.of, self.out[0] * self.out[1]
        apart: Dims = [self.batch, of.steps, self.groups, of.stride, of.filters, area]
        turned = self.transposed(self.reshaped(images, apart), [0, 2, 4, 1, 3, 5])
        channels = self.groups * of.filters
        planes = self.reshaped(turned, [self.batch, channels, of.steps * of.stride, area])
        return self.reshaped(
            self._cut(planes, 2, of.first, self.deep), [self.batch, channels, self.deep, *self.out]
        )

    def _cut(self, x: gs.Tensor, axis: int, first: int, count: int) -> gs.Tensor:
        if first == 0 and x.shape[axis] == count:
            return x
        bounds = [self.ints([each]) for each in (first, first + count, axis)]
        shape: Dims = [*x.shape[:axis], count, *x.shape[axis + 1 :]]
        return self.add("Slice", x, *bounds, shape=shape)
