"""Absorb y * s + t per channel into the weights of a linear operator, after it or before it.

For a linear operator L with weights W and bias b (Conv, ConvTranspose, Gemm, MatMul):

    L(x) * s + t      =  L'(x),  W' = W * s over output channels,  b' = b * s + t
    L(x * s + t)      =  L'(x),  W' = W * s over input channels,   b' = b + sum over W * t

The second holds at padded places only when t = 0, since padding puts zeros after the addition, and
for a ConvTranspose, whose border outputs sum fewer terms, only when t = 0.
MatMul has no bias: both hold for it only when t = 0. All sums are in float64, rounded once.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.byte_products import multiplies_bytes
from wpk.graph_passes.core.query import floats, given, holds_floats, pads, rank, why_shared

LINEAR_OPS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ChannelAffine:
    """The map y -> y * scale + shift with one number per channel; both are float64 vectors."""

    scale: Vector
    shift: Vector


@dataclass(frozen=True)
class Neighbours:
    """A node that computes an affine map of ``source``, and the linear operator that absorbs it."""

    node: gs.Node
    source: gs.Tensor
    linear: gs.Node
    affine: ChannelAffine


class AbsorbBehind(Rule[Neighbours]):
    """A rule whose matches are absorbed by the linear operator that they read."""

    @final
    def rewrite(self, editor: GraphEditor, match: Neighbours) -> None:
        """Let the linear operator compute both."""
        absorb_after(editor, match.linear, match.affine)
        editor.replace(match.node.outputs[0], match.linear.outputs[0])


class AbsorbInFront(Rule[Neighbours]):
    """A rule whose matches are absorbed by the linear operator that reads them."""

    @final
    def rewrite(self, editor: GraphEditor, match: Neighbours) -> None:
        """Let the linear operator compute both."""
        absorb_before(editor, match.linear, match.affine)
        match.linear.inputs = [match.source, *list(match.linear.inputs)[1:]]


def why_not_linear(node: gs.Node) -> str | None:
    """Say why the weights or the bias of ``node`` cannot be rewritten."""
    if multiplies_bytes(node):
        return f"'{node.name}' multiplies bytes: its sums are integers as long as its weights are"
    if not holds_floats(given(node, 1)):
        return f"weight '{node.inputs[1].name}' of '{node.name}' is not a constant of floats"
    bias = given(node, 2)
    if bias is not None and not holds_floats(bias):
        return f"bias '{bias.name}' of '{node.name}' is not a constant of floats"
    if node.op == "MatMul" and rank(node.inputs[1]) == 1:
        return f"'{node.name}' multiplies by a vector, which has no output channels"
    if node.op == "Gemm" and node.attrs.get("beta", 1.0) != 1.0:
        return f"'{node.name}' scales its bias by beta, which `PlainForms` takes out of floats"
    return None


def channel_axis(node: gs.Node) -> int:
    """Return the axis of the output channels in the output of a linear operator."""
    return 1 if node.op in ("Conv", "ConvTranspose") else -1


def output_channels(node: gs.Node) -> int:
    """Return the number of output channels of a linear operator with known weights."""
    shape = node.inputs[1].shape
    if node.op == "Conv":
        return int(shape[0])
    if node.op == "ConvTranspose":
        return int(shape[1]) * int(node.attrs.get("group", 1))
    return int(shape[-2] if node.attrs.get("transB", 0) else shape[-1])


def input_channels(node: gs.Node) -> int:
    """Return the number of input channels of a linear operator with known weights."""
    shape = node.inputs[1].shape
    if node.op == "Conv":
        return int(shape[1]) * int(node.attrs.get("group", 1))
    if node.op == "ConvTranspose":
        return int(shape[0])
    return int(shape[-1] if node.attrs.get("transB", 0) else shape[-2])


def why_not_after(node: gs.Node, affine: ChannelAffine) -> str | None:
    """Say why ``affine`` after the linear operator ``node`` cannot enter its weights."""
    if node.op == "MatMul" and bool(affine.shift.any()):
        return f"'{node.name}' is a MatMul, which has no bias to take the addition"
    return None


def absorb_after(editor: GraphEditor, node: gs.Node, affine: ChannelAffine) -> None:
    """Make ``node`` compute ``affine`` of what it computed; see `why_not_after`."""
    weight = _scaled(node, affine.scale, outputs=True)
    _set_weights(editor, node, weight, _float_bias(node) * affine.scale + affine.shift)


def why_not_in_front(graph: gs.Graph, node: gs.Node, between: gs.Tensor) -> str | None:
    """Say why the linear operator ``node`` cannot absorb what makes its input ``between``."""
    reason = why_not_linear(node) or why_shared(graph, between)
    if reason is None and node.attrs.get("transA", 0):
        return f"'{node.name}' reads its input transposed: its channels are the rows"
    return reason


def why_not_before(node: gs.Node, affine: ChannelAffine) -> str | None:
    """Say why ``affine`` before the linear operator ``node`` cannot enter its weights."""
    if not bool(affine.shift.any()):
        return None
    if node.op == "ConvTranspose":
        return f"'{node.name}' sums fewer terms at its border, so a shift before it is no bias"
    if node.op == "MatMul":
        return f"'{node.name}' is a MatMul, which has no bias to take the addition"
    if node.op == "Conv" and pads(node):
        return f"'{node.name}' pads with zeros, where the shift before it would be missing"
    return None


def absorb_before(editor: GraphEditor, node: gs.Node, affine: ChannelAffine) -> None:
    """Make ``node`` compute what it computed of ``affine``; see `why_not_before`."""
    bias = _float_bias(node)
    if node.op == "Conv":
        weight, group = float_weight(node), int(node.attrs.get("group", 1))
        per_group = np.repeat(affine.shift.reshape(group, -1), len(weight) // group, axis=0)
        bias = bias + (weight.sum(axis=tuple(range(2, weight.ndim))) * per_group).sum(axis=1)
    elif node.op == "Gemm":
        weight, shift = float_weight(node), affine.shift
        transposed = node.attrs.get("transB", 0)
        added = weight @ shift if transposed else shift @ weight
        bias = bias + float(node.attrs.get("alpha", 1.0)) * added
    _set_weights(editor, node, _scaled(node, affine.scale, outputs=False), bias)


def _scaled(node: gs.Node, scale: Vector, *, outputs: bool) -> Vector:
    """The weights with those of each output or input channel times a number."""
    weight = float_weight(node)
    ones = [1] * (weight.ndim - 2)
    if node.op not in ("Conv", "ConvTranspose"):
        rows = outputs == bool(node.attrs.get("transB", 0))
        return weight * (scale[:, None] if rows else scale)
    if outputs == (node.op == "Conv"):
        return weight * scale.reshape(-1, 1, *ones)
    group = int(node.attrs.get("group", 1))
    split = weight.reshape(group, -1, *weight.shape[1:])
    return np.asarray((split * scale.reshape(group, 1, -1, *ones)).reshape(weight.shape))


def channel_vector(
    node: gs.Node, constant: gs.Tensor, dimensions: int, axis: int, channels: int
) -> Vector | Refusal:
    """Read a constant as one number per channel of a tensor with ``dimensions`` dimensions.

    Returns:
        The vector of length ``channels``, or why ``node`` stays: the constant is not that.
    """
    array = floats(constant)
    if array is None:
        return Refusal(node.name, f"'{constant.name}' is not a constant of floats")
    if array.ndim > dimensions:
        reason = f"'{constant.name}' has more dimensions than what it is applied to"
        return Refusal(node.name, reason)
    if array.size == 1:
        return np.full(channels, array.reshape(-1)[0])
    place = axis % dimensions - (dimensions - array.ndim)
    others = [size for index, size in enumerate(array.shape) if index != place]
    if place < 0 or any(size != 1 for size in others) or array.shape[place] != channels:
        shape = list(array.shape)
        reason = f"'{constant.name}' of shape {shape} is not one number per channel ({channels})"
        return Refusal(node.name, reason)
    vector: Vector = array.reshape(-1)
    return vector


def float_weight(node: gs.Node) -> Vector:
    """Return the weights of a linear operator, for which `why_not_linear` must be None."""
    weight = floats(node.inputs[1])
    if weight is None:
        raise ValueError(f"weight of '{node.name}' is not constant: ask why_not_linear first")
    return weight


def _float_bias(node: gs.Node) -> Vector:
    """Return the bias; zeros where there is none."""
    bias = floats(given(node, 2))
    return np.zeros(output_channels(node)) if bias is None else bias


def _set_weights(editor: GraphEditor, node: gs.Node, weight: Vector, bias: Vector) -> None:
    old = node.inputs[1]
    inputs = [node.inputs[0], editor.constant(f"{old.name}_folded", weight, old.dtype)]
    if node.op != "MatMul" and (given(node, 2) is not None or bool(bias.any())):
        name = f"{old.name}_bias" if given(node, 2) is None else f"{node.inputs[2].name}_folded"
        inputs.append(editor.constant(name, bias, old.dtype))
    node.inputs = inputs
