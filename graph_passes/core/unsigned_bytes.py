"""Products of bytes, of which some are signed, as products of unsigned ones, of which ONNX Runtime adds every term.

Where a CPU has no instruction for sums of bytes (x86-64 before AVX512-VNNI and AVX-VNNI), ONNX Runtime adds two products of an
unsigned and a signed byte in 16 bits, and cuts what they cannot hold. Unsigned bytes are widened first. So a signed operand and
its zero point are moved by 128: of w - z nothing changes.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

Proto = TypeVar("Proto", onnx.NodeProto, onnx.ModelProto)

PRODUCTS = {
    "MatMulInteger": ((0, 2), (1, 3)),
    "ConvInteger": ((0, 2), (1, 3)),
    "QLinearMatMul": ((0, 2), (3, 5)),
    "QLinearConv": ((0, 2), (3, 5)),
}
"""Where their operands are, and the zero points of these."""

_OFFSET = 128


def two_terms() -> tuple[bytes, dict[str, NDArray[np.generic]], int]:
    """Return a product whose sum 16 bits do not hold, serialized, its operands, and the sum."""
    x, w = np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "two_terms",
        [
            helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape),
            helper.make_tensor_value_info("w", TensorProto.INT8, w.shape),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT32, (1, 1))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {"x": x, "w": w}, 2 * 255 * 127


def with_unsigned_bytes(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return a model whose products of bytes have unsigned operands, wherever types are known; None where it is one already.

    Args:
        model: Is not changed; weights may lie in files beside it.
    """
    if not any(node.op_type in PRODUCTS for node in model.graph.node):
        return None
    types = _types(model)
    nodes: list[onnx.NodeProto] = []
    moved: dict[str, str] = {}
    for node in model.graph.node:
        for operand, zero in PRODUCTS.get(node.op_type, ()):
            if types.get(node.input[operand]) == TensorProto.INT8:
                node = _copy(node)
                _move(node, operand, zero, moved, nodes)
        nodes.append(node)
    if not moved:
        return None
    changed = _copy(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _move(
    node: onnx.NodeProto,
    operand: int,
    zero: int,
    moved: dict[str, str],
    nodes: list[onnx.NodeProto],
) -> None:
    """Have a node read a signed operand and its zero point as unsigned ones; what moves them goes in front."""
    node.input.extend([""] * (zero + 1 - len(node.input)))
    for place in (operand, zero):
        name = node.input[place]
        if name not in moved:
            moved[name] = f"{name or 'no_zero_point'}:unsigned"
            nodes.extend(_moving(name, moved[name]))
        node.input[place] = moved[name]


def _moving(name: str, unsigned: str) -> list[onnx.NodeProto]:
    """Nodes that move a tensor by 128; without a name, one of zero."""
    offset = np.array(_OFFSET, np.int32 if name else np.uint8)
    if not name:
        return [_constant(unsigned, offset)]
    wide, added, by = (f"{unsigned}:{part}" for part in ("wide", "added", "offset"))
    return [
        _constant(by, offset),
        helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
        helper.make_node("Add", [wide, by], [added]),
        helper.make_node("Cast", [added], [unsigned], to=TensorProto.UINT8),
    ]


def _constant(name: str, value: NDArray[np.generic]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


def _types(model: onnx.ModelProto) -> dict[str, int]:
    """The type of each tensor of the graph that has a known one."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    ports = (*graph.input, *graph.value_info, *graph.output)
    types = {port.name: port.type.tensor_type.elem_type for port in ports}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _copy(proto: Proto) -> Proto:
    copied = type(proto)()
    copied.CopyFrom(proto)
    return copied
