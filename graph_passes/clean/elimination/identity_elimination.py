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


def _always(node: gs.Node) -> bool:
    del node
    return True


def _dropout(node: gs.Node) -> bool:
    """At inference: training is absent, or a constant that is false."""
    training = given(node, 2)
    array = values(training)
    return training is None or (array is not None and array.size > 0 and not array.any())


def _cast(node: gs.Node) -> bool:
    before, after = node.inputs[0].dtype, node.outputs[0].dtype
    return before is not None and bool(before == after)


def _same_shape(node: gs.Node, index: int = 0) -> bool:
    return same_dims(dims(node.inputs[index]), dims(node.outputs[0]))


def _tile(node: gs.Node) -> bool:
    return set(integers(node.inputs[1]) or [0]) == {1}


def _slice(node: gs.Node) -> bool:
    """A full slice with step -1 keeps the shape too, and reverses."""
    steps = given(node, 4)
    forward = steps is None or all(step > 0 for step in integers(steps) or [0])
    return forward and _same_shape(node)


def _resize(node: gs.Node) -> bool:
    """A scale of 1.01 may keep the size, and still moves every sample; given sizes do not."""
    scales = given(node, 2)
    if scales is not None and scales.shape != [0] and uniform(scales) != 1.0:
        return False
    crops = node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    return not crops and _same_shape(node)


def _transpose(node: gs.Node) -> bool:
    perm = node.attrs.get("perm")
    return rank(node.inputs[0]) == 1 if perm is None else list(perm) == list(range(len(perm)))


def _pad(node: gs.Node) -> bool:
    pads = integers(given(node, 1))
    return pads is not None and not any(pads)


def _of_one(node: gs.Node) -> bool:
    return len(node.inputs) == 1


def _split(node: gs.Node) -> bool:
    return len(node.outputs) == 1 and _same_shape(node)


def _clip(node: gs.Node) -> bool:
    return given(node, 1) is None and given(node, 2) is None


def _pool(node: gs.Node) -> bool:
    window = {int(size) for size in node.attrs.get("kernel_shape", [0])}
    strides = {int(stride) for stride in node.attrs.get("strides", [1])}
    pads = {int(pad) for pad in node.attrs.get("pads", [0])}
    alone = len(node.outputs) == 1
    return alone and (window, strides, pads) == ({1}, {1}, {0}) and _same_shape(node)


_NO_OPS: dict[str, Callable[[gs.Node], bool]] = {
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
    "Clip": _clip,
    "MaxPool": _pool,
    "AveragePool": _pool,
}
"""Operators that may give back their first input, and whether a node does."""

_NEUTRAL = {"Add": 0.0, "Mul": 1.0, "Sub": 0.0, "Div": 1.0, "Pow": 1.0}
"""Operators of two numbers, and the one that on the right (of sums and products on either side) does nothing."""


def _given_back(node: gs.Node) -> gs.Tensor | None:
    """Return the input that a node gives back, if it does."""
    if node.op not in _NEUTRAL:
        return node.inputs[0] if _NO_OPS[node.op](node) else None
    for index in (0, 1) if node.op in ("Add", "Mul") else (0,):
        if uniform(node.inputs[1 - index]) == _NEUTRAL[node.op] and _same_shape(node, index):
            return node.inputs[index]
    return None


class IdentityElimination(ReplacementRule):
    """Connect the readers of a no-op to what it reads."""

    name = "identity-elimination"
    ops = (*_NO_OPS, *_NEUTRAL)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match no-ops; one that stays because of a graph output's name is a refusal."""
        source = _given_back(node)
        if source is None:
            return None
        output = node.outputs[0]
        reason = why_not_replace(graph, output, source)
        others = [tensor for tensor in used_outputs(graph, node) if tensor is not output]
        if reason is None and others:
            reason = f"'{others[0].name}' is read too"
        return refusal(node, reason) or Replacement(output, None, [source])
