"""Remove nodes that give back their input.

    Identity(x), Dropout(x) at inference                      ->  x
    Cast(x) to its own type                                   ->  x
    Reshape, Expand, Tile, Slice, Resize... to its own shape  ->  x
    Transpose(x) in order, Pad(x) of nothing                  ->  x
    Concat(x), Sum(x), Max(x), Min(x), Mean(x), Split(x) of one          ->  x
    x + 0, x - 0, x * 1, x / 1, x ** 1, Clip(x) without bounds           ->  x
    pooling with a window, stride and padding of one, nothing, nothing   ->  x

x + 0 turns -0 into 0 where the sum would be computed: the two compare equal and no operator that
wpk carries tells them apart, save a division by it.
"""

from collections.abc import Callable

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import Refusal, Replacement, ReplacementRule, refusal
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    rank,
    same_dims,
    uniform,
    used_outputs,
    values,
    why_not_replace,
)


def _always(node: gs.Node) -> gs.Tensor | None:
    source: gs.Tensor = node.inputs[0]
    return source


def _dropout(node: gs.Node) -> gs.Tensor | None:
    training = given(node, 2)
    return _always(node) if training is None or _flag(training) is False else None


def _flag(tensor: gs.Tensor) -> bool | None:
    """Return the one value of a constant of truth values, else None."""
    array = values(tensor)
    if array is None or array.size == 0 or bool(array.any()) != bool(array.all()):
        return None
    return bool(array.any())


def _cast(node: gs.Node) -> gs.Tensor | None:
    before, after = node.inputs[0].dtype, node.outputs[0].dtype
    return _always(node) if before is not None and before == after else None


def _keeps_shape(node: gs.Node) -> bool:
    return same_dims(dims(node.inputs[0]), dims(node.outputs[0]))


def _same_shape(node: gs.Node) -> gs.Tensor | None:
    return _always(node) if _keeps_shape(node) else None


def _tile(node: gs.Node) -> gs.Tensor | None:
    return _always(node) if set(integers(node.inputs[1]) or [0]) == {1} else None


def _slice(node: gs.Node) -> gs.Tensor | None:
    """A full slice with step -1 keeps the shape too, and reverses."""
    steps = given(node, 4)
    forward = steps is None or all(step > 0 for step in integers(steps) or [0])
    return _same_shape(node) if forward else None


def _resize(node: gs.Node) -> gs.Tensor | None:
    """A scale of 1.01 may keep the size, and still moves every sample; given sizes do not."""
    scales = given(node, 2)
    if scales is not None and scales.shape != [0] and uniform(scales) != 1.0:
        return None
    if node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return None
    return _same_shape(node)


def _transpose(node: gs.Node) -> gs.Tensor | None:
    order = rank(node.inputs[0])
    perm = node.attrs.get("perm")
    if perm is None:
        return _always(node) if order == 1 else None
    return _always(node) if list(perm) == list(range(len(perm))) else None


def _pad(node: gs.Node) -> gs.Tensor | None:
    pads = integers(given(node, 1))
    return _always(node) if pads is not None and not any(pads) else None


def _of_one(node: gs.Node) -> gs.Tensor | None:
    return _always(node) if len(node.inputs) == 1 else None


def _split(node: gs.Node) -> gs.Tensor | None:
    return _same_shape(node) if len(node.outputs) == 1 else None


def _neutral_on_right(neutral: float) -> Callable[[gs.Node], gs.Tensor | None]:
    def rule(node: gs.Node) -> gs.Tensor | None:
        return _same_shape(node) if uniform(node.inputs[1]) == neutral else None

    return rule


def _neutral(neutral: float) -> Callable[[gs.Node], gs.Tensor | None]:
    def rule(node: gs.Node) -> gs.Tensor | None:
        for index in (0, 1):
            source: gs.Tensor = node.inputs[index]
            neutral_here = uniform(node.inputs[1 - index]) == neutral
            if neutral_here and same_dims(dims(source), dims(node.outputs[0])):
                return source
        return None

    return rule


def _clip(node: gs.Node) -> gs.Tensor | None:
    return _always(node) if given(node, 1) is None and given(node, 2) is None else None


def _pool(node: gs.Node) -> gs.Tensor | None:
    window = {int(size) for size in node.attrs.get("kernel_shape", [0])}
    strides = {int(stride) for stride in node.attrs.get("strides", [1])}
    pads = {int(pad) for pad in node.attrs.get("pads", [0])}
    return _same_shape(node) if (window, strides, pads) == ({1}, {1}, {0}) else None


_SOURCES: dict[str, Callable[[gs.Node], gs.Tensor | None]] = {
    "Identity": _always,
    "Dropout": _dropout,
    "Cast": _cast,
    "Reshape": _same_shape,
    "Flatten": _same_shape,
    "Squeeze": _same_shape,
    "Unsqueeze": _same_shape,
    "Expand": _same_shape,
    "Tile": _tile,
    "Slice": _slice,
    "Resize": _resize,
    "Transpose": _transpose,
    "Pad": _pad,
    "Concat": _of_one,
    "Sum": _of_one,
    "Max": _of_one,
    "Min": _of_one,
    "Mean": _of_one,
    "Split": _split,
    "Add": _neutral(0.0),
    "Mul": _neutral(1.0),
    "Sub": _neutral_on_right(0.0),
    "Div": _neutral_on_right(1.0),
    "Pow": _neutral_on_right(1.0),
    "Clip": _clip,
    "MaxPool": _pool,
    "AveragePool": _pool,
}
"""Operators that may be no-ops, and what gives the tensor that a node gives back."""


class IdentityElimination(ReplacementRule):
    """Connect the readers of a no-op to what it reads."""

    name = "identity-elimination"
    ops = tuple(_SOURCES)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match no-ops; one that stays because of a graph output's name is a refusal."""
        source = _SOURCES[node.op](node)
        if source is None:
            return None
        output = node.outputs[0]
        reason = why_not_replace(graph, output, source)
        others = [tensor for tensor in used_outputs(graph, node) if tensor is not output]
        if reason is None and others:
            reason = f"'{others[0].name}' is read too"
        return refusal(node, reason) or Replacement(output, None, [source])
