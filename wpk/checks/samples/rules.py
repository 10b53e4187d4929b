"""How operators compute a few samples of a batch: each rule says what makes a node's work that of single samples.

A tensor holds samples along an axis (`Along`): as many neighbours for each, one sample behind the other, and that perhaps
several times, as of words of sentences that are one matrix. For a node whose operands hold samples a rule returns where
the outputs hold them, and what must be changed of operands that hold none: targets of reshapes name the batch, and
constants may repeat the same for every sample. It follows that for any samples the changed node gives those of the
outputs that the node itself gives for the whole batch. A node that no rule knows is taken to mix samples.
"""

from __future__ import annotations

import onnx

from wpk.checks.samples import computing, moving
from wpk.checks.samples.batch import Batch, NotAloneError
from wpk.checks.samples.way import Given, Rule, Way
from wpk.operators import OperatorKind, of_kind


def way_of(batch: Batch, node: onnx.NodeProto, given: Given) -> Way:
    """Return how a node computes the few samples.

    Args:
        batch: The samples.
        node: A node of ONNX's own domain.
        given: What it reads; None where an optional operand is missing.

    Raises:
        NotAloneError: It may mix samples, or tell them apart.
    """
    if not any(each is not None and each.along is not None for each in given):
        return Way(None)
    inner = any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute)
    rule = None if inner or node.domain not in ("", "ai.onnx") else RULES.get(node.op_type)
    if rule is None:
        raise NotAloneError(f"nobody knows whether {node.op_type} computes each sample alone")
    return rule(batch, node, given)


_IMAGES = """AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool
    GroupNormalization InstanceNormalization LRN MaxPool SpaceToDepth"""

RULES: dict[str, Rule] = {
    **dict.fromkeys(of_kind(OperatorKind.ELEMENTWISE), computing.element_wise),
    **dict.fromkeys(of_kind(OperatorKind.REDUCTION), computing.reduced),
    **dict.fromkeys(_IMAGES.split(), computing.images),
    "ArgMax": computing.place_of_most,
    "ArgMin": computing.place_of_most,
    "CastLike": computing.like_first,
    "Celu": computing.element_wise,
    "Concat": moving.joined,
    "CumSum": computing.running,
    "DequantizeLinear": computing.quantised,
    "Expand": moving.expanded,
    "Flatten": moving.flattened,
    "Gather": moving.gathered,
    "Gemm": computing.gemm,
    "Identity": computing.element_wise,
    "LayerNormalization": computing.layer_norm,
    "LogSoftmax": computing.softmax,
    "LpNormalization": computing.along_axis(-1),
    "MatMul": computing.matmul,
    "Pad": moving.padded,
    "QuantizeLinear": computing.quantised,
    "RMSNormalization": computing.layer_norm,
    "Reshape": moving.reshaped,
    "Resize": computing.resize,
    "Shape": moving.shape,
    "Size": moving.shape,
    "Slice": moving.sliced,
    "Softmax": computing.softmax,
    "Split": computing.along_axis(0),
    "Squeeze": moving.squeezed,
    "ThresholdedRelu": computing.element_wise,
    "Tile": moving.tiled,
    "TopK": computing.along_axis(-1),
    "Transpose": moving.transposed,
    "Trilu": moving.matrices,
    "Unsqueeze": moving.unsqueezed,
}
"""By operator. They hold for every opset: defaults that have changed are all looked at."""
