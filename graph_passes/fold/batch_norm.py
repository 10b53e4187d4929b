"""Fold BatchNormalization into the linear operator beside it, or into one Mul and one Add.

    BN(y) = y * s + t    s = gamma / sqrt(var + epsilon),  t = beta - mean * s    (inference)

    BN(L(x))  ->  L'(x)                 L: Conv, ConvTranspose, Gemm
    L(BN(x))  ->  L'(x)                 where no zero padding stands between them
    BN(x)     ->  Add(Mul(x, s), t)     what is left

Needs constant statistics, constant weights, and an inner result that nobody else reads.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import floats, made_by, rank, why_shared
from wpk.graph_passes.fold.linear_operator import (
    AbsorbBehind,
    AbsorbInFront,
    ChannelAffine,
    Neighbours,
    input_channels,
    output_channels,
    why_not_before,
    why_not_in_front,
    why_not_linear,
)

# MatMul is absent: a two-dimensional one is a Gemm by now, and BN's channel is not the last axis of
# any other.
_BESIDE = ("Conv", "ConvTranspose", "Gemm")

_EPSILON = float(np.float32(1e-5))
"""ONNX's default: attributes are fp32 numbers, which tells where the variance is small."""


class FoldBatchNormAfter(AbsorbBehind):
    """Replace ``BatchNormalization(L(x))`` by one linear operator."""

    name = "batch-norm-after"
    ops = ("BatchNormalization",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Neighbours | Refusal | None:
        """Match a BatchNormalization that a linear operator feeds."""
        linear = made_by(node.inputs[0], *_BESIDE)
        if linear is None:
            return None
        affine = _affine(node)
        if isinstance(affine, Refusal):
            return affine
        reason = why_not_linear(linear) or why_shared(graph, linear.outputs[0])
        reason = reason or _why_channels(affine, output_channels(linear))
        return refusal(node, reason) or Neighbours(node, node.inputs[0], linear, affine)


class FoldBatchNormBefore(AbsorbInFront):
    """Replace ``L(BatchNormalization(x))`` by one linear operator."""

    name = "batch-norm-before"
    ops = _BESIDE

    def match(self, graph: gs.Graph, node: gs.Node) -> Neighbours | Refusal | None:
        """Match a linear operator that alone reads a BatchNormalization."""
        norm = made_by(node.inputs[0], "BatchNormalization")
        if norm is None:
            return None
        affine = _affine(norm)
        if isinstance(affine, Refusal):
            return affine
        reason = why_not_in_front(graph, node, norm.outputs[0])
        reason = reason or _why_channels(affine, input_channels(node))
        reason = reason or why_not_before(node, affine)
        return refusal(norm, reason) or Neighbours(norm, norm.inputs[0], node, affine)


class BatchNormToAffine(Rule[tuple[gs.Node, ChannelAffine]]):
    """Replace a BatchNormalization that no linear operator took by a Mul and an Add.

    An element-wise pair fuses with its neighbours, a BatchNormalization does not.
    """

    name = "batch-norm-to-affine"
    ops = ("BatchNormalization",)

    def match(
        self, graph: gs.Graph, node: gs.Node
    ) -> tuple[gs.Node, ChannelAffine] | Refusal | None:
        """Match one with constant statistics and an input of known rank."""
        affine = _affine(node)
        if isinstance(affine, Refusal):
            return affine
        if rank(node.inputs[0]) is None:
            return Refusal(node.name, f"the rank of '{node.inputs[0].name}' is unknown")
        return node, affine

    def rewrite(self, editor: GraphEditor, match: tuple[gs.Node, ChannelAffine]) -> None:
        """Write both with one number for each channel."""
        norm, affine = match
        dimensions = rank(norm.inputs[0]) or 0
        output, dtype = norm.outputs[0], norm.inputs[1].dtype
        shape = (-1, *[1] * (dimensions - 2)) if dimensions > 1 else (-1,)
        scale = editor.constant(f"{norm.name}_scale", affine.scale.reshape(shape), dtype)
        shift = editor.constant(f"{norm.name}_shift", affine.shift.reshape(shape), dtype)
        scaled = editor.add("Mul", [norm.inputs[0], scale], like=output)
        shifted = editor.add("Add", [scaled, shift], like=output)
        editor.replace(output, shifted)


def _affine(norm: gs.Node) -> ChannelAffine | Refusal:
    """Read the statistics of a BatchNormalization; a refusal where they are not constant."""
    if norm.attrs.get("training_mode", 0) or any(
        not tensor.is_empty() for tensor in norm.outputs[1:]
    ):
        reason = "it is in training mode: its statistics come from the batch"
        return Refusal(norm.name, reason)
    statistics = []
    for tensor in norm.inputs[1:5]:
        array = floats(tensor)
        if array is None:
            reason = f"statistic '{tensor.name}' is not a constant of floats"
            return Refusal(norm.name, reason)
        statistics.append(array)
    gamma, beta, mean, variance = statistics
    widened = variance + float(norm.attrs.get("epsilon", _EPSILON))
    if not bool((widened > 0.0).all()):
        return Refusal(norm.name, f"variance '{norm.inputs[4].name}' is negative or zero")
    scale = gamma / np.sqrt(widened)
    return ChannelAffine(scale, beta - mean * scale)


def _why_channels(affine: ChannelAffine, channels: int) -> str | None:
    if affine.scale.shape != (channels,):
        return f"it has {affine.scale.size} channels, the operator beside it {channels}"
    return None
