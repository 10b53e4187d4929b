"""RoiAlign becomes one kernel with what is element-wise behind it, and computes what ONNX Runtime does."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import wpk
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.problems.signs import TIMES

BODY = """(float[2,6,9,11] x, float[N,4] r, int64[N] b, float[7,6,1,1] w) => (float[N,7,2,3] y) {
  z = RoiAlign<output_height=2, output_width=3, spatial_scale=4.0%s>(x, r, b)  v = Relu(z)
  y = Conv(v, w) }"""


def model(attributes: str = "", opset: int = 16) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g {BODY % attributes}'
    proto = onnx.parser.parse_model(text)
    weights = np.random.default_rng(1).standard_normal((7, 6, 1, 1)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del proto.graph.input[-1]
    return proto


@pytest.mark.parametrize(
    ("attributes", "opset", "precision"),
    [
        ("", 16, "fp16"),
        ("", 12, "fp32"),
        (', mode="max", coordinate_transformation_mode="output_half_pixel"', 18, "bf16"),
        (", sampling_ratio=2", 16, "tf32"),
    ],
)
def test_a_plan_computes_what_onnx_runtime_does(
    attributes: str, opset: int, precision: str, tmp_path: Path, one_finalist: None
) -> None:
    proto, path = model(attributes, opset), tmp_path / "model.plan"
    onnx.save(proto, tmp_path / "model.onnx")
    plan = wpk.optimize(
        *(tmp_path / "model.onnx", path),
        target="h200",
        precision=precision,
        fallback="off",
        check="quick",
    ).plan
    words = [step.operator.problem.words() for step in plan.steps]
    assert len(words) == 2
    mode = "max" if "max" in attributes else "avg"
    assert words[0].replace(TIMES, "x") == f"N regions ({mode}) 6ch 9x11 → 2x3 relu"
    rng = np.random.default_rng(0)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    with wpk.load(path, device="cpu") as engine:
        for count in (1, 5):
            corners = rng.uniform(-0.5, 2.0, (count, 4)).astype(np.float32)
            corners[:, 2:] = corners[:, :2] + rng.uniform(0.1, 2.0, (count, 2))
            x = rng.standard_normal((2, 6, 9, 11)).astype(np.float32)
            feeds = {"x": x, "r": corners, "b": rng.integers(0, 2, count)}
            (right,) = session.run(None, feeds)
            loose = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 3e-3, "bf16": 2e-2}[precision]
            np.testing.assert_allclose(engine.run(feeds)["y"], right, atol=loose * 8, rtol=loose)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("of the free dimension 'M' of images", ("float[2,6", "float[M,6")),
        ("with a sampling_ratio of -1", ("%s", ", sampling_ratio=-1%s")),
    ],
)
def test_refuses_in_words(words: str, change: tuple[str, str], tmp_path: Path) -> None:
    text = BODY.replace(*change) % ""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]> g {text}')
    onnx.save(proto, tmp_path / "model.onnx")
    with pytest.raises(UnsupportedError, match=words):
        lower_model(tmp_path / "model.onnx", {}, Precision.FP32)
