"""Scan and LinearAttention in float64, beside ONNX Runtime and onnx's own in fp32."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.operators import REFERENCE_OPS

BODY = """b (float[2, 3] p, float[3] o, float[2, 3] t, float[3] m)
    => (float[2, 3] q, float[3] i, float[2, 3] u, float[3] e)
    { q = Sub(t, p)  i = Add(m, o)  u = Mul(q, k)  e = Tanh(i) }"""
WAYS = {
    "forward": "",
    "backwards in": "scan_input_directions = [1, 0],",
    "backwards out": "scan_output_directions = [0, 1],",
    "along other axes": "scan_input_axes = [1, -1], scan_output_axes = [-1, 0],",
    "everything": """scan_input_axes = [-2, 1], scan_output_axes = [1, -1], scan_input_directions = [0, 1],
        scan_output_directions = [1, 1],""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_scan_is_what_onnx_runtime_says(way: str) -> None:
    axes = [(1, 1), (0, 0)]["axes = [" not in WAYS[way]]
    rng = np.random.default_rng(0)
    x, w = (
        np.moveaxis(rng.standard_normal(shape), 0, axis).astype(np.float32)
        for shape, axis in (((5, 2, 3), axes[0]), ((5, 3), axes[1]))
    )
    s, r = rng.standard_normal((2, 3)).astype(np.float32), np.ones(3, np.float32)
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] s, float[3] r,
        float{list(x.shape)} x, float{list(w.shape)} w) => (float[2, 3] y, float[3] v, float[a, b, c] z,
        float[d, e] a) {{ k = Tanh(s)
        y, v, z, a = Scan <num_scan_inputs = 2, {WAYS[way]} body = {BODY}> (s, r, x, w) }}""")
    feeds = {"s": s, "r": r, "x": x, "w": w}
    right = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, feeds)
    for one, other in zip(ours, right, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_a_scan_of_no_parts_guesses_no_shape() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[0, 3] x)
        => (float[0, 3] z) { z = Scan <num_scan_inputs = 1,
        body = b (float[3] t) => (float[3] u) { u = Exp(t) }> (x) }""")
    with pytest.raises(NotImplementedError, match="Scan of no parts"):
        ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(
            None, {"x": np.zeros((0, 3), np.float32)}
        )


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize(
    ("rule", "decay", "beta"),
    [("linear", 0, 0), ("gated", 3, 0), ("gated", 12, 0), ("delta", 0, 1), ("gated_delta", 12, 3)],
)
def test_linear_attention_is_onnx_s_own_in_float64(
    rule: str, decay: int, beta: int, past: bool
) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 13, opset_import: ["" : 27]>
        g (float[2, 5, 24] q, float[2, 5, 12] k, float[2, 5, 15] v, float[2, 3, 4, 5] p, float[2, 5, D] d,
        float[2, 5, B] b) => (float[2, 5, 30] y, float[2, 3, 4, 5] s) {{ y, s = LinearAttention
        <q_num_heads = 6, kv_num_heads = 3, update_rule = "{rule}", scale = {0.25 if past else 0.0}>
        (q, k, v, {"p" if past else ""}, {"d" if decay else ""}, {"b" if beta else ""}) }}""")
    rng = np.random.default_rng(0)
    sizes = {"q": (2, 5, 24), "k": (2, 5, 12), "v": (2, 5, 15), "p": (2, 3, 4, 5)}
    sizes |= {"d": (2, 5, decay), "b": (2, 5, beta)}
    feeds = {name: rng.standard_normal(size) / 2 for name, size in sizes.items()}
    right = ReferenceEvaluator(model).run(None, {n: x.astype(np.float32) for n, x in feeds.items()})
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, feeds)
    for one, other in zip(ours, right, strict=True):
        assert (one.dtype, one.shape) == (np.float64, other.shape)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
