"""Networks that onnxruntime's own tool quantises dynamically: bytes whose scales a run decides."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import quantize_dynamic

MLP = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 24] x) => (float[4, 10] y) {
    a = MatMul (x, w_24_32)
    b = Add (a, b_32)
    r = Relu (b)
    y = Gemm (r, w_32_10, b_10)
}"""
"""Two layers."""

ENCODER = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 7, 32] x) => (float[2, 7, 32] y) {
    q = MatMul (x, q_32_32)
    qb = Add (q, bq_32)
    qh = Reshape (qb, heads)
    qt = Transpose <perm = [0, 2, 1, 3]> (qh)
    k = MatMul (x, k_32_32)
    kh = Reshape (k, heads)
    kt = Transpose <perm = [0, 2, 3, 1]> (kh)
    v = MatMul (x, v_32_32)
    vh = Reshape (v, heads)
    vt = Transpose <perm = [0, 2, 1, 3]> (vh)
    s = MatMul (qt, kt)
    t = Mul (s, root)
    p = Softmax <axis = -1> (t)
    o = MatMul (p, vt)
    ot = Transpose <perm = [0, 2, 1, 3]> (o)
    of = Reshape (ot, flat)
    z = MatMul (of, o_32_32)
    r = Add (x, z)
    n = LayerNormalization (r, scale_32, b_32)
    h = MatMul (n, h_32_64)
    e = Relu (h)
    u = MatMul (e, u_64_32)
    m = Add (n, u)
    y = LayerNormalization (m, scale_32, b_32)
}"""
"""A layer of a transformer."""

_NUMBERS = {
    "heads": np.array([2, 7, 4, 8]),
    "flat": np.array([2, 7, 32]),
    "root": np.float32(8**-0.5),
}


def drawn_model(text: str, seed: int = 0) -> onnx.ModelProto:
    """Parse a model; weights, whose names end in their shapes, are drawn."""
    model = onnx.parser.parse_model(text)
    made = {x.name for x in model.graph.input}.union(*(n.output for n in model.graph.node))
    rng = np.random.default_rng(seed)
    for name in sorted({x for node in model.graph.node for x in node.input} - made):
        shape = [int(each) for each in name.split("_")[1:]]
        drawn = rng.standard_normal(shape) / np.sqrt(shape[0] if shape else 1)
        array = np.asarray(_NUMBERS.get(name, drawn.astype(np.float32)))
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    return model


def dynamically_quantised(text: str, folder: Path, *, per_channel: bool) -> onnx.ModelProto:
    """Return what onnxruntime's `quantize_dynamic` makes of a network; it works in files of a folder."""
    plain, quantised = folder / "plain.onnx", folder / "quantised.onnx"
    onnx.save(drawn_model(text), plain)
    quantize_dynamic(plain, quantised, per_channel=per_channel)
    return onnx.load(quantised)
