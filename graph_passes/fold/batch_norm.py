"""Fold BatchNormalization into the linear operator beside it, or into one Mul and one Add.

    BN(y) = y * s + t    s = gamma / sqrt(var + epsilon),  t = beta - mean * s    (inference)

    BN(L(x))  ->  L'(x)                 L: Conv, ConvTranspose, Gemm
    L(BN(x))  ->  L'(x)                 where no zero padding stands between them
    BN(x)     ->  Add(Mul(x, s), t)     what is left

Needs constant statistics, constant weights, and an inner result that nobody else reads.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import floats, live_nodes, made_by, rank, why_shared
from wpk.graph_passes.fold.linear_operator import (
    ChannelAffine,
    absorb_after,
    absorb_before,
    input_channels,
    output_channels,
    why_not_before,
    why_not_linear,
)

# MatMul is absent: a two-dimensional one is a Gemm by now, and BN's channel is not the last axis of
# any other.
_BESIDE = ("Conv", "ConvTranspose", "Gemm")

_EPSILON = float(np.float32(1e-5))
"""ONNX's default: attributes are fp32 numbers, which tells where the variance is small."""


class FoldBatchNormAfter(GraphPass):
    """Replace ``BatchNormalization(L(x))`` by one linear operator."""

    name = "batch-norm-after"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Fold every BatchNormalization into the linear operator that feeds it."""
        result = PassResult()
        editor = GraphEditor(graph)
        for norm in live_nodes(graph, "BatchNormalization"):
            linear = made_by(norm.inputs[0], *_BESIDE)
            if linear is None:
                continue
            affine = _affine(norm)
            reason = affine if isinstance(affine, str) else why_not_linear(linear)
            reason = reason or why_shared(graph, linear.outputs[0])
            if reason is None and isinstance(affine, ChannelAffine):
                reason = _why_channels(affine, output_channels(linear))
            if reason is not None or isinstance(affine, str):
                result.refuse(norm, reason or "")
                continue
            absorb_after(editor, linear, affine)
            editor.replace(norm.outputs[0], linear.outputs[0])
            result.rewritten += 1
        return result


class FoldBatchNormBefore(GraphPass):
    """Replace ``L(BatchNormalization(x))`` by one linear operator."""

    name = "batch-norm-before"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Fold every BatchNormalization into the only linear operator that reads it."""
        result = PassResult()
        editor = GraphEditor(graph)
        for linear in live_nodes(graph, *_BESIDE):
            norm = made_by(linear.inputs[0], "BatchNormalization")
            if norm is None:
                continue
            affine = _affine(norm)
            reason = affine if isinstance(affine, str) else why_not_linear(linear)
            reason = reason or why_shared(graph, norm.outputs[0]) or _why_transposed(linear)
            if reason is None and isinstance(affine, ChannelAffine):
                reason = _why_channels(affine, input_channels(linear))
                reason = reason or why_not_before(linear, affine)
            if reason is not None or isinstance(affine, str):
                result.refuse(norm, reason or "")
                continue
            absorb_before(editor, linear, affine)
            linear.inputs = [norm.inputs[0], *list(linear.inputs)[1:]]
            result.rewritten += 1
        return result


class BatchNormToAffine(GraphPass):
    """Replace a BatchNormalization that no linear operator took by a Mul and an Add."""

    name = "batch-norm-to-affine"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite; an element-wise pair fuses with its neighbours, a BatchNormalization not."""
        result = PassResult()
        editor = GraphEditor(graph)
        for norm in live_nodes(graph, "BatchNormalization"):
            affine = _affine(norm)
            dimensions = rank(norm.inputs[0])
            if isinstance(affine, str):
                result.refuse(norm, affine)
                continue
            if dimensions is None:
                result.refuse(norm, f"the rank of '{norm.inputs[0].name}' is unknown")
                continue
            output, dtype = norm.outputs[0], norm.inputs[1].dtype
            shape = (-1, *[1] * (dimensions - 2)) if dimensions > 1 else (-1,)
            scale = editor.constant(f"{norm.name}_scale", affine.scale.reshape(shape), dtype)
            shift = editor.constant(f"{norm.name}_shift", affine.shift.reshape(shape), dtype)
            scaled = editor.add("Mul", [norm.inputs[0], scale], like=output)
            shifted = editor.add("Add", [scaled, shift], like=output)
            editor.replace(output, shifted)
            result.rewritten += 1
        return result


def _affine(norm: gs.Node) -> ChannelAffine | str:
    """Read the statistics of a BatchNormalization; a reason where they are not constant."""
    if norm.attrs.get("training_mode", 0) or any(
        not tensor.is_empty() for tensor in norm.outputs[1:]
    ):
        return "it is in training mode: its statistics come from the batch"
    statistics = []
    for tensor in norm.inputs[1:5]:
        array = floats(tensor)
        if array is None:
            return f"statistic '{tensor.name}' is not a constant of floats"
        statistics.append(array)
    gamma, beta, mean, variance = statistics
    widened = variance + float(norm.attrs.get("epsilon", _EPSILON))
    if not bool((widened > 0.0).all()):
        return f"variance '{norm.inputs[4].name}' is negative or zero"
    scale = gamma / np.sqrt(widened)
    return ChannelAffine(scale, beta - mean * scale)


def _why_channels(affine: ChannelAffine, channels: int) -> str | None:
    if affine.scale.shape != (channels,):
        return f"it has {affine.scale.size} channels, the operator beside it {channels}"
    return None


def _why_transposed(linear: gs.Node) -> str | None:
    if linear.attrs.get("transA", 0):
        return f"'{linear.name}' reads its input transposed: its channels are the rows"
    return None
