"""Convolutions of one pixel are products of rows with a matrix; others stay convolutions."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model

import wpk
from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.problems import Convolution, Matmul, Problem
from wpk.target_features import TargetFeatures

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SQUEEZED = f"""{_HEAD} g (float[N, 24, 5, 7] x, float[6, 24, 1, 1] w, float[6] b, float[24, 6, 1, 1] v)
    => (float[N, 24, 5, 7] y) {{
    s = GlobalAveragePool(x)  h = Conv(s, w, b)  r = Relu(h)  e = Conv(r, v)
    g = Sigmoid(e)  y = Mul(x, g) }}"""
PIXELS = f"""{_HEAD} g (float[N, 24, 1, 1] x, float[6, 24, 1, 1] w, float[6] b) => (float[N, 6, 1, 1] y) {{
    h = Conv(x, w, b)  y = Relu(h) }}"""
OTHERS = {
    "an image": "float[1, 24, 5, 1] x, float[6, 24, 1, 1] w => y { y = Conv(x, w) }",
    "groups": "float[1, 24, 1, 1] x, float[6, 12, 1, 1] w => y { y = Conv<group = 2>(x, w) }",
    "a larger filter": "float[1, 24, 1, 1] x, float[6, 24, 3, 3] w "
    "=> y { y = Conv<pads = [1, 1, 1, 1]>(x, w) }",
    "transposed": "float[1, 24, 1, 1] x, float[24, 6, 1, 1] w => y { y = ConvTranspose(x, w) }",
}


def _problems(path: Path, precision: Precision = Precision.FP32) -> list[Problem]:
    return [
        each.problem
        for each in lower_model(
            path, {}, precision, features=TargetFeatures(clusters=False)
        ).program.operators
    ]


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
def test_squeeze_and_excite_is_two_products(precision: Precision, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse_model(SQUEEZED.replace("N", "2"), "w b v"), path)
    found = _problems(path, precision)
    assert not [each for each in found if isinstance(each, Convolution)]
    squeeze, excite = [each for each in found if isinstance(each, Matmul)]
    assert (squeeze.m.value, squeeze.k, squeeze.n) == (2, 24, 6)
    assert (excite.m.value, excite.k, excite.n) == (2, 6, 24)
    assert squeeze.b_constant
    assert squeeze.epilogue.operands, "its bias"


@pytest.mark.parametrize("case", OTHERS)
def test_others_stay_convolutions(case: str, tmp_path: Path) -> None:
    inputs, body = OTHERS[case].split(" => y ")
    rank = "float[1, 6, 5, 1]" if case == "an image" else "float[1, 6, 1, 1]"
    path = tmp_path / "model.onnx"
    onnx.save(parse_model(f"{_HEAD} g ({inputs}) => ({rank} y) {body}", "w"), path)
    assert any(isinstance(each, Convolution) for each in _problems(path))


def test_numbers_are_those_of_onnx_runtime_at_any_batch(tmp_path: Path, one_finalist: None) -> None:
    path, plan = tmp_path / "model.onnx", tmp_path / "model.plan"
    onnx.save(parse_model(PIXELS, "w b"), path)
    others = {"gemm_mma", "gemm_simt", "gemm_wgmma"}
    free = {"x": (-1, 24, 1, 1)}
    wpk.optimize(path, plan, target="h100", check="off", skip_templates=others, shapes=free)
    with wpk.load(plan, device="cpu") as engine:
        for batch in (1, 3):
            x = np.random.default_rng(batch).standard_normal((batch, 24, 1, 1)).astype(np.float32)
            (right,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
            (y,) = engine.run({"x": x}).values()
            np.testing.assert_allclose(y, right, rtol=1e-5, atol=1e-6)
