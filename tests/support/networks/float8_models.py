"""Networks whose products read 8-bit floating point: quantisations are put around them, as tools do that write such models."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.networks.dynamic_models import drawn_model

CONVOLUTIONS = """<ir_version: 9, opset_import: ["" : 19]>
g (float[2, 8, 13, 11] x) => (float[2, 6] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w_16_8_3_3, b_16)
    r = Relu (a)
    c = Conv <strides = [2, 2]> (r, v_24_16_1_1)
    m = GlobalAveragePool (c)
    f = Flatten (m)
    y = MatMul (f, m_24_6)
}"""
"""Two convolutions, a pool, and a product."""

_KINDS = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
}


def with_float8_products(
    text: str, activations: int = TensorProto.FLOAT8E4M3FN, weights: int = TensorProto.FLOAT8E4M3FN
) -> onnx.ModelProto:
    """Quantise what products of a network read: weights with a scale for each column or filter.

    Args:
        text: The network; scales of activations are drawn.
        activations: ONNX's number of their type.
        weights: The same of constants.
    """
    model = drawn_model(text)
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", 19))
    model.ir_version = 9
    constants = {each.name: each for each in model.graph.initializer}
    rng, nodes = np.random.default_rng(7), []
    for node in model.graph.node:
        if node.op_type in ("Conv", "MatMul"):
            for place in (0, 1):
                name = node.input[place]
                if name in constants:
                    axis = 0 if node.op_type == "Conv" else 1
                    nodes += _weights(model.graph, constants[name], weights, axis)
                else:
                    scale = np.float32(rng.uniform(0.02, 0.1))
                    nodes += _activations(
                        model.graph,
                        name,
                        f"{node.name or node.output[0]}_{place}",
                        activations,
                        scale,
                    )
                node.input[place] = nodes[-1].output[0]
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def _weights(
    graph: onnx.GraphProto, weight: onnx.TensorProto, kind: int, axis: int
) -> Iterator[onnx.NodeProto]:
    """Store a weight in 8 bits, with a scale for each index of an axis."""
    values = numpy_helper.to_array(weight)
    others = tuple(each for each in range(values.ndim) if each != axis)
    largest = float(ml_dtypes.finfo(_KINDS[kind]).max)
    scale = np.abs(values).max(others, keepdims=True) / largest
    name = f"{weight.name}_8"
    if not any(each.name == name for each in graph.initializer):
        stored = (values / scale).astype(_KINDS[kind])
        graph.initializer.append(
            helper.make_tensor(name, kind, values.shape, stored.view(np.uint8).tobytes(), raw=True)
        )
        scales = scale.astype(np.float32).reshape(-1)
        graph.initializer.append(numpy_helper.from_array(scales, f"{name}_scale"))
    output = f"{name}_restored_{len(graph.initializer)}_{graph.name}"
    yield helper.make_node("DequantizeLinear", [name, f"{name}_scale"], [output], axis=axis)


def _activations(
    graph: onnx.GraphProto, name: str, own: str, kind: int, scale: np.float32
) -> Iterator[onnx.NodeProto]:
    """Round a tensor to 8 bits and back."""
    parameters = [f"{own}_scale", f"{own}_zero"]
    graph.initializer.append(numpy_helper.from_array(np.asarray(scale), parameters[0]))
    graph.initializer.append(helper.make_tensor(parameters[1], kind, [], b"\0", raw=True))
    yield helper.make_node("QuantizeLinear", [name, *parameters], [f"{own}_8"])
    yield helper.make_node("DequantizeLinear", [f"{own}_8", *parameters], [f"{own}_restored"])
