"""Which backend tests are about inference in float32: the group whose share by kernels is a goal.

The suite also tests what no network computes when it infers: losses, gradients and optimizers, training,
strings, decoded images, sequences and optionals; and types and domains that wpk does not read.
"""

from collections.abc import Iterator

import onnx
from onnx import TensorProto

OTHER_GROUPS = ("node/negativeloglikelihoodloss", "node/softmax_cross_entropy_loss")
"""Losses: their expanded forms are made of operators that networks have too."""

OTHER_OPERATORS = (
    "ImageDecoder",
    "RegexFullMatch",
    "StringConcat",
    "StringSplit",
    "StringNormalizer",
)
"""Of strings and encoded images, which may lie in tensors of bytes."""

STANDARD_DOMAINS = ("", "ai.onnx")
"""Without ``ai.onnx.ml`` and what is in preview."""

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)

OTHER_TYPES = (
    TensorProto.STRING,
    TensorProto.COMPLEX64,
    TensorProto.COMPLEX128,
    *(number for name, number in TensorProto.DataType.items() if name.startswith("FLOAT8")),
    *(number for name, number in TensorProto.DataType.items() if name.endswith(("INT4", "INT2"))),
    TensorProto.FLOAT4E2M1,
)
"""Types of elements that a test of the group has nowhere: neither outside nor among its constants."""


def is_float32_inference(group: str, model: onnx.ModelProto) -> bool:
    """Tell whether a test belongs to the group.

    Float32 is the only floating-point type of the model's inputs and outputs, and is among them.

    Args:
        group: ``node/MODULE``, or the kind of a test that lies as files.
        model: As the suite gives it.
    """
    infos = [*model.graph.input, *model.graph.output]
    if group in OTHER_GROUPS or not all(each.type.HasField("tensor_type") for each in infos):
        return False
    outside = {each.type.tensor_type.elem_type for each in infos}
    inside = {each.data_type for graph in _graphs(model.graph) for each in graph.initializer}
    if outside.intersection(FLOATS) != {TensorProto.FLOAT}:
        return False
    if (outside | inside).intersection(OTHER_TYPES):
        return False
    return all(_infers(node) for graph in _graphs(model.graph) for node in graph.node)


def _infers(node: onnx.NodeProto) -> bool:
    """Whether a network that infers may have this node."""
    if node.domain not in STANDARD_DOMAINS or node.op_type in OTHER_OPERATORS:
        return False
    if "Sequence" in node.op_type or "Optional" in node.op_type:
        return False
    return not _trains(node)


def _trains(node: onnx.NodeProto) -> bool:
    """Whether a node is in training; Dropout is told so by its third input."""
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
        return True
    return any(each.name == "training_mode" and each.i for each in node.attribute)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)
