"""Quantised networks as exporters write them, with parameters drawn from a seed."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "w8": (16, 8, 3, 3),
    "v8": (24, 16, 1, 1),
    "m8": (24, 10),
    "m8u": (11, 10),
    "u8": (24, 24, 1, 1),
}
"""Weights of 8 bits; those ending in ``u`` are unsigned."""

_NUMBERS = {
    "sx": np.float32(0.021),
    "zx": np.uint8(117),
    "zw": np.zeros(16, np.int8),
    "s1": np.float32(0.05),
    "z1": np.uint8(0),
    "sv": np.float32(0.002),
    "zv": np.int8(0),
    "sy": np.float32(0.06),
    "zy": np.uint8(120),
    "z3": np.uint8(3),
    "z128": np.uint8(128),
    "hundredth": np.float32(0.01),
}

QDQ = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 8, 13, 11] x) => (float[2, 24, 13, 11] y) {
    xq = QuantizeLinear (x, sx, zx)
    xd = DequantizeLinear (xq, sx, zx)
    wd = DequantizeLinear <axis = 0> (w8, sw, zw)
    bd = DequantizeLinear <axis = 0> (b32, sb, zb)
    c = Conv <pads = [1, 1, 1, 1]> (xd, wd, bd)
    r = Relu (c)
    rq = QuantizeLinear (r, s1, z1)
    rd = DequantizeLinear (rq, s1, z1)
    vd = DequantizeLinear (v8, sv, zv)
    c2 = Conv (rd, vd)
    yq = QuantizeLinear (c2, sy, zy)
    y = DequantizeLinear (yq, sy, zy)
}"""
"""Two convolutions between quantisations, one with a scale for each filter."""

QLINEAR = """<ir_version: 8, opset_import: ["" : 17]>
g (uint8[2, 8, 13, 11] x) => (float[2, 16, 13, 10] y, uint8[2, 16, 13, 11] c) {
    c = QLinearConv <pads = [1, 1, 1, 1]> (x, sx, zx, w8, sw, zw, s1, z1, b32)
    d = QLinearMatMul (c, s1, z1, m8u, hundredth, z128, sy, zy)
    y = DequantizeLinear (d, sy, zy)
}"""
"""A convolution and a product of bytes."""

INTEGERS = """<ir_version: 8, opset_import: ["" : 17]>
g (uint8[3, 5, 24] x) => (float[3, 5, 10] y, int32[3, 5, 10] c) {
    c = MatMulInteger (x, m8, z3, zv)
    e = MatMulInteger (x, m8)
    f = Cast <to = 1> (e)
    y = Mul (f, hundredth)
}"""
"""A sum of integers that is read as such, and one that is scaled."""


def quantised_model(text: str, seed: int = 0) -> onnx.ModelProto:
    """Parse a model; what it reads and does not say is drawn."""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name)
        for name, array in _constants(seed).items()
        if any(name in node.input for node in model.graph.node)
    )
    onnx.checker.check_model(model)
    return model


def _constants(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.integers(0, 256, shape).astype(np.uint8)
        if name.endswith("u")
        else rng.integers(-127, 128, shape).astype(np.int8)
        for name, shape in PARAMETERS.items()
    }
    scales = rng.uniform(0.001, 0.003, 16).astype(np.float32)
    bias = {
        "sw": scales,
        "b32": rng.integers(-3000, 3000, 16).astype(np.int32),
        "sb": (scales * np.float32(0.021)).astype(np.float32),
        "zb": np.zeros(16, np.int32),
    }
    return weights | bias | {name: np.asarray(value) for name, value in _NUMBERS.items()}
