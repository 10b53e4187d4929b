"""The reference of DeformConv agrees with ONNX Runtime, and in float64 with onnx's own."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.deformed import DeformConv

H = '<ir_version: 10, opset_import: ["" : 20]>'
FORMS = {
    "plain": ("", (3, 4, 2, 3), 12, 0),
    "strides, gaps, padding": (
        "<strides = [2, 1], dilations = [1, 2], pads = [1, 0, 0, 2]>",
        (3, 4, 2, 3),
        12,
        6,
    ),
    "groups": ("<group = 2, offset_group = 4>", (6, 2, 2, 2), 32, 16),
}


def _drawn(form: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    attributes, weight, offsets, masks = FORMS[form]
    out = (3, 6) if "strides" in attributes else (7 - weight[2], 9 - weight[3])
    generator = np.random.default_rng(7)
    shapes = {
        "x": (2, 4, 6, 8),
        "w": weight,
        "o": (2, offsets, *out),
        "b": (weight[0],),
        "m": (2, masks, *out),
    }
    given = "xwobm" if masks else "xwo"
    feeds = {n: generator.normal(size=shapes[n]).astype(np.float32) * 1.5 for n in given}
    inputs = ", ".join(f"float[{', '.join(map(str, shapes[n]))}] {n}" for n in given)
    text = f"{H} g ({inputs}) => (float[a, b, c, d] y) {{ y = DeformConv{attributes}({', '.join(given)}) }}"
    return onnx.parser.parse_model(text), feeds


@pytest.mark.parametrize("form", FORMS)
def test_agrees_with_onnx_runtime_and_in_float64_with_onnx(form: str) -> None:
    model, feeds = _drawn(form)
    wide = {name: array.astype(np.float64) for name, array in feeds.items()}
    (seen,) = ReferenceEvaluator(model, new_ops=[DeformConv]).run(None, wide)
    (exact,) = ReferenceEvaluator(model).run(None, wide)
    (fast,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    assert seen.dtype == np.float64
    np.testing.assert_allclose(seen, fast, rtol=0, atol=1e-4)
    np.testing.assert_allclose(seen, exact, rtol=0, atol=1e-4)  # onnx's places are fp32
