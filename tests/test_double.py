"""fp64 from a model's file to a checked plan, right beside ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import wpk
from wpk.cli.main import main
from wpk.dtypes import DType
from wpk.plan import Outcome
from wpk.report.plans.precision import precision_of, precision_sentences

pytestmark = pytest.mark.usefixtures("one_finalist")

CLASSIFIER = """g (double[N, 13] x) => (int64[N] label, double[N, 3] share) {
    c = Sub (x, mean)
    s = Div (c, deviation)
    h = MatMul (s, first)
    t = Tanh (h)
    m = MatMul (t, second)
    z = Add (m, bias)
    share = Softmax <axis = 1> (z)
    label = ArgMax <axis = 1, keepdims = 0> (share) }"""
"""As scikit-learn's pipelines are exported."""

SHAPES = {"mean": (13,), "deviation": (13,), "first": (13, 20), "second": (20, 3), "bias": (3,)}


def classifier(disturbed: float = 0.0) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {CLASSIFIER}')
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        values = rng.uniform(0.3, 1.7, shape)
        if name == "second":
            values[0, 0] *= 1.0 + disturbed
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def right(x: np.ndarray) -> np.ndarray:
    """The shares in 80 bits."""
    weights = {each.name: numpy_helper.to_array(each) for each in classifier().graph.initializer}
    w = {name: array.astype(np.longdouble) for name, array in weights.items()}
    h = np.tanh((x - w["mean"]) / w["deviation"] @ w["first"]) @ w["second"] + w["bias"]
    e = np.exp(h - h.max(1, keepdims=True))
    return np.asarray(e / e.sum(1, keepdims=True))


def test_a_pipeline_keeps_all_digits_whatever_is_asked_for(tmp_path: Path) -> None:
    model, path = tmp_path / "model.onnx", tmp_path / "model.plan"
    onnx.save(classifier(), model)
    bundle = wpk.optimize(model, path, target="h200", precision="fp16", fallback="off")
    assert {each.outcome for each in bundle.plan.checks} == {Outcome.OK}
    facts = precision_of(bundle.plan)
    assert facts.in_double == len(bundle.plan.steps) - 1  # the choice of a label computes nothing
    assert "compute in fp64" in " ".join(precision_sentences(facts))
    x = np.random.default_rng(1).standard_normal((5, 13))
    with wpk.load(path, device="cpu") as engine:
        outputs = engine.run({"x": x})
    share = right(x)
    assert outputs["share"].dtype == np.float64
    assert float(np.abs(outputs["share"] - share).max()) < 200 * DType.FP64.unit_roundoff
    np.testing.assert_array_equal(outputs["label"], share.argmax(1))
    # A weight that differs where fp32 has no digits any more is another model.
    onnx.save(classifier(disturbed=1e-9), model)
    assert main(["verify", str(path), str(model), "--device", "cpu"]) == 3


def test_a_position_is_computed_in_fp64_between_fp32(tmp_path: Path) -> None:
    """As torch writes ``.double()``: the angle of a large position has no digits in fp32."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18]> g (float[N, 8] x) => (float[N, 8] y)
        <double step = {1234.5678901234567}> {
            d = Cast <to = 11> (x)
            a = Mul (d, step)
            s = Sin (a)
            f = Cast <to = 1> (s)
            y = Add (f, x) }"""
    )
    onnx.save(model, tmp_path / "model.onnx")
    wpk.optimize(tmp_path / "model.onnx", tmp_path / "m.plan", target="h200", fallback="off")
    x = np.random.default_rng(1).uniform(100, 1000, (3, 8)).astype(np.float32)
    with wpk.load(tmp_path / "m.plan", device="cpu") as engine:
        y = engine.run({"x": x})["y"]
    exact = np.sin(x.astype(np.float64) * 1234.5678901234567).astype(np.float32) + x
    np.testing.assert_allclose(y, exact, rtol=2.0**-22)
    in_fp32 = np.sin(x * np.float32(1234.5678901234567)) + x
    assert np.abs(in_fp32 - exact).max() > 1e-2
