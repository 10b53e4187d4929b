"""Write MaxUnpool as what is written into zeros at places.

    MaxUnpool(x, places)  ->  ScatterElements(zeros, places, x) over the flat tensor
                          ->  the same plane by plane, at places modulo a plane, where a MaxPool found them
                              in a tensor of the result's shape: each lies in the plane of its window

Where several windows have one place the last stays, as in ONNX Runtime. Places of a window that lies all in the
padding are none, and what is written there ONNX leaves open.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    integers,
    made_by,
    same_dims,
    window_numbers,
)


@dataclass(frozen=True)
class _Unpool:
    """A MaxUnpool, the shape of what it gives, and whether every place lies in the plane of its window."""

    node: gs.Node
    shape: Dims
    by_planes: bool


class UnpoolParts(Rule[_Unpool]):
    """Replace a MaxUnpool of known sizes, whose batch may be free where a MaxPool found the places."""

    name = "unpool-parts"
    ops: ClassVar = ("MaxUnpool",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Unpool | Refusal:
        """Match where channels and space are known, and the shape is the one that windows make."""
        del graph
        x, places = node.inputs[:2]
        shape = _shape(node)
        if shape is None:
            return Refusal(
                node.name, f"'{x.name}' has shape {x.shape}: all but the batch must be known"
            )
        pool = made_by(places, "MaxPool")
        by_planes = (
            pool is not None
            and pool.outputs[0] is not places
            and not pool.attrs.get("storage_order", 0)
            and same_dims(dims(pool.inputs[0]), shape)
        )
        found = _Unpool(node, shape, by_planes)
        return refusal(node, _why_not(found)) or found

    def rewrite(self, editor: GraphEditor, match: _Unpool) -> None:
        """Write the parts."""
        to = _Writer(editor, match.node)
        x, places = match.node.inputs[:2]
        batch, channels, *space = match.shape
        row = prod(n for n in space if isinstance(n, int))
        count = prod(n for n in list(x.shape)[2:] if isinstance(n, int))
        if match.by_planes:
            whole, part = [batch, channels, row], [batch, channels, count]
            places = to.add("Mod", places, to.ints(row), shape=list(places.shape))
        else:
            rows = [n for n in (batch, channels) if isinstance(n, int)]
            whole, part = [prod(rows) * row], [prod(rows) * count]
        zeros = to.add("Expand", to.zero(), to.shape_of(whole), like=x, shape=whole)
        inputs = [zeros, to.reshaped(places, part), to.reshaped(x, part)]
        written = to.add("ScatterElements", *inputs, like=x, shape=whole, axis=len(whole) - 1)
        editor.replace(match.node.outputs[0], to.reshaped(written, match.shape))


def _shape(node: gs.Node) -> Dims | None:
    """What windows make of the shape of the input; None where more than the batch is free."""
    x = dims(node.inputs[0])
    kernel = [int(n) for n in node.attrs["kernel_shape"]]
    if x is None or len(x) != 2 + len(kernel):
        return None
    strides, pads = (window_numbers(node, name, len(kernel)) for name in ("strides", "pads"))
    batch, channels, *space = x
    shape: Dims = [batch, channels]
    for axis, size in enumerate(space):
        if not isinstance(size, int) or not isinstance(channels, int):
            return None
        padding = pads[axis] + pads[len(kernel) + axis]
        shape.append((size - 1) * strides[axis] + kernel[axis] - padding)
    return shape


def _why_not(found: _Unpool) -> str | None:
    asked = given(found.node, 2)
    sizes = integers(asked)
    known = found.shape[0 if isinstance(found.shape[0], int) else 1 :]
    if asked is not None and (sizes is None or sizes[-len(known) :] != known):
        words = "not constant" if sizes is None else f"{sizes} and not {found.shape}"
        return f"the shape that is asked for is {words}: ONNX and ONNX Runtime disagree where places lie"
    if not found.by_planes and not isinstance(found.shape[0], int):
        return f"its batch '{found.shape[0]}' is free, and no MaxPool found its places there"
    return None


class _Writer(NodeParts):
    """Adds what places and shapes are made of."""

    def zero(self) -> gs.Constant:
        x = self.node.inputs[0]
        return self.editor.constant(f"{self.node.name}_zero", np.zeros(1), x.dtype)

    def shape_of(self, shape: Dims) -> gs.Tensor:
        """The shape as a tensor, of which the batch may be the input's."""
        if isinstance(shape[0], int):
            return self.ints([n for n in shape if isinstance(n, int)])
        rest = self.ints([n for n in shape[1:] if isinstance(n, int)])
        x = self.node.inputs[0]
        batch = self.add("Shape", x, like=rest, shape=[1], start=0, end=1)
        return self.add("Concat", batch, rest, shape=[len(shape)], axis=0)
