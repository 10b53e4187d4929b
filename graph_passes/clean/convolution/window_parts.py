"""Write windows over three axes as windows over two, for which there are kernels.

MaxPool, AveragePool(x)   ->  over height and width, then over depth: both are separable, since an average
                              divides by a count that is a product of one for each axis
y, i = MaxPool(x)         ->  the same; i by rows is where the pool over height and width found what the pool over
                              depth took, and by columns follows from that
Conv(x, w)                ->  Conv(x', w'): slices of x, one for each depth of the window, become channels
"""

from typing import Any, ClassVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, given, rank, static_shape, window_numbers

_LISTS = ("kernel_shape", "strides", "dilations", "pads")


class WindowParts(Rule[gs.Node]):
    """Replace pools and convolutions of five-dimensional tensors."""

    name = "window-parts"
    ops: ClassVar = ("Conv", "MaxPool", "AveragePool")

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal | None:
        """Match windows over three axes of known sizes."""
        del graph
        if rank(node.inputs[0]) != 5:
            return None
        return refusal(node, _why_not(node)) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the windows over two axes."""
        parts = _Parts(editor, match)
        if _finds_places(match):
            made, places = parts.places()
            editor.replace(match.outputs[1], places)
        else:
            made = parts.convolution() if match.op == "Conv" else parts.pools()
        editor.replace(match.outputs[0], made)


def _why_not(node: gs.Node) -> str | None:
    x, output = node.inputs[0], node.outputs[0]
    inner = [*list(x.shape)[1:], *list(output.shape or [None])[1:]]
    if not all(isinstance(size, int) for size in inner):
        return f"sizes of '{x.name}' or '{output.name}' are not known"
    if node.op != "Conv" and not _finds_places(node):
        return None
    if node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return "it computes how much it pads"
    if node.op == "Conv":
        return None if static_shape(node.inputs[1]) else "the shape of its weights is not known"
    if not isinstance(x.shape[0], int):
        return "it gives indices, too, of a free batch"
    if not all(_sees_something(node, axis) for axis in range(3)):
        return "it gives indices, too, and a window lies all in its padding"
    return None


def _finds_places(node: gs.Node) -> bool:
    return any(not tensor.is_empty() for tensor in node.outputs[1:])


def _sees_something(node: gs.Node, axis: int) -> bool:
    """Whether every window has elements along an axis."""
    names, taps = ("strides", "dilations", "pads"), node.attrs["kernel_shape"][axis]
    stride, step, pad = (window_numbers(node, name, 3)[axis] for name in names)
    first = np.arange(node.outputs[0].shape[axis + 2]) * stride - pad
    seen = first[:, None] + np.arange(taps) * step
    return bool(((seen >= 0) & (seen < node.inputs[0].shape[axis + 2])).any(axis=1).all())


class _Parts(NodeParts):
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        super().__init__(editor, node)
        self.x = node.inputs[0]
        self.before: list[Any] = list(self.x.shape)
        self.behind: list[Any] = list(node.outputs[0].shape)

    def pools(self) -> gs.Tensor:
        """A pool over height and width, then one over depth."""
        batch, channels, depth, height, width = self.before
        *_, deep, high, wide = self.behind
        images = self.reshaped(self.x, [batch, channels * depth, height, width])
        flat = self._pooled(images, [batch, channels * depth, high, wide], (1, 2))
        columns = self.reshaped(flat, [batch, channels, depth, high * wide])
        pooled = self._pooled(columns, [batch, channels, deep, high * wide], (0,))
        return self.reshaped(pooled, self.behind)

    def places(self) -> tuple[gs.Tensor, gs.Tensor]:
        """The same, and where its elements are in the whole tensor."""
        batch, channels, depth, height, width = self.before
        *_, deep, high, wide = self.behind
        images = self.reshaped(self.x, [batch, channels * depth, height, width])
        flat, of_image = self._placed(images, [batch, channels * depth, high, wide], (1, 2))
        columns = self.reshaped(flat, [batch, channels, depth, high * wide])
        pooled, of_column = self._placed(columns, [batch, channels, deep, high * wide], (0,))
        found = self.reshaped(of_image, [batch * channels * depth * high * wide])
        rows = self.add("Gather", found, of_column, like=of_column, axis=0)
        if self.node.attrs.get("storage_order", 0):
            rows = self._by_columns(rows)
        return self.reshaped(pooled, self.behind), self.reshaped(rows, self.behind)

    def _by_columns(self, rows: gs.Tensor) -> gs.Tensor:
        """Places in planes that are counted along depth first, of such along width first."""
        _, _, depth, height, width = self.before

        def arithmetic(op: str, a: gs.Tensor, b: gs.Tensor | int) -> gs.Tensor:
            other = self.ints([b]) if isinstance(b, int) else b
            return self.add(op, a, other)

        inside = arithmetic("Mod", rows, depth * height * width)
        plane = arithmetic("Sub", rows, inside)
        deep = arithmetic("Div", inside, height * width)
        high = arithmetic("Mod", arithmetic("Div", inside, width), height)
        wide = arithmetic("Mod", inside, width)
        slices = arithmetic("Add", deep, arithmetic("Mul", high, depth))
        found = arithmetic("Add", slices, arithmetic("Mul", wide, depth * height))
        return arithmetic("Add", plane, found)

    def _placed(
        self, x: gs.Tensor, shape: Dims, axes: tuple[int, ...]
    ) -> tuple[gs.Tensor, gs.Tensor]:
        """A pool and its places by rows."""
        attributes = self._attributes(axes) | {"storage_order": 0}
        pooled = self.add("MaxPool", x, shape=shape, **attributes)
        places = gs.Variable(self.editor.new_name(f"{pooled.name}_places"), np.int64, shape)
        pooled.inputs[0].outputs.append(places)
        return pooled, places

    def convolution(self) -> gs.Tensor:
        """A convolution of images, one for each depth of the output."""
        batch, channels, _, height, width = self.before
        _, filters, deep, high, wide = self.behind
        weights = self.node.inputs[1]
        _, part, taps, *window = static_shape(weights) or []
        count = batch * deep if isinstance(batch, int) else None  # of images
        image: Dims = [count, channels * taps, height, width]
        images = self.reshaped(self._slices(taps), image)
        turned = self.transposed(weights, [0, 2, 1, 3, 4])
        filters_of_images = self.reshaped(turned, [filters, taps * part, *window])
        inputs = [images, filters_of_images, *([b] if (b := given(self.node, 2)) else [])]
        attributes = self._attributes((1, 2)) | {"group": self.node.attrs.get("group", 1)}
        shape: Dims = [count, filters, high, wide]
        flat = self.add("Conv", *inputs, shape=shape, **attributes)
        apart = self.reshaped(flat, [batch, deep, filters, high, wide])
        return self.transposed(apart, [0, 2, 1, 3, 4])

    def _slices(self, taps: int) -> gs.Tensor:
        """(batch, depth of the output, group, taps and channels of the group)."""
        batch, channels, depth, height, width = self.before
        groups, deep = int(self.node.attrs.get("group", 1)), self.behind[2]
        row = channels // groups * height * width
        stride, step = (window_numbers(self.node, name, 3)[0] for name in ("strides", "dilations"))
        turned = self.transposed(self.x, [0, 2, 1, 3, 4])
        rows = self.reshaped(turned, [batch, depth, groups, row])
        pads = window_numbers(self.node, "pads", 3)
        if pads[0] or pads[3]:
            edges = self.ints([0, pads[0], 0, 0, 0, pads[3], 0, 0])
            rows = self.add(
                "Pad", rows, edges, shape=[batch, depth + pads[0] + pads[3], groups, row]
            )
        axis, by = self.ints([1]), self.ints([stride])
        slices = []
        for tap in range(taps):
            first = tap * step
            bounds = [self.ints([first]), self.ints([first + (deep - 1) * stride + 1])]
            slices.append(
                self.add("Slice", rows, *bounds, axis, by, shape=[batch, deep, groups, row])
            )
        return self.add("Concat", *slices, shape=[batch, deep, groups, taps * row], axis=3)

    def _attributes(self, axes: tuple[int, ...]) -> dict[str, Any]:
        """Attributes of a window over these axes, and over a second one that stays as it is."""
        found = {key: value for key, value in self.node.attrs.items() if key not in _LISTS}
        found.pop("group", None)
        kernel = self.node.attrs.get("kernel_shape", list(self.node.inputs[-1].shape)[2:])
        if self.node.op == "Conv":
            kernel = list(self.node.inputs[1].shape)[2:]
        rest = [1] * (2 - len(axes))
        found["kernel_shape"] = [*(int(kernel[axis]) for axis in axes), *rest]
        for name in ("strides", "dilations"):
            if name in self.node.attrs:
                found[name] = [*(window_numbers(self.node, name, 3)[axis] for axis in axes), *rest]
        if "pads" in self.node.attrs:
            pads, none = window_numbers(self.node, "pads", 3), [0] * len(rest)
            begin, end = ([pads[axis + 3 * side] for axis in axes] for side in (0, 1))
            found["pads"] = [*begin, *none, *end, *none]
        return found

    def _pooled(self, x: gs.Tensor, shape: Dims, axes: tuple[int, ...]) -> gs.Tensor:
        return self.add(self.node.op, x, shape=shape, **self._attributes(axes))
