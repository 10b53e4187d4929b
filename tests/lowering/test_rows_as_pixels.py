"""Products whose rows cannot be joined are convolutions of one pixel: they take their rows from all matrices alike."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model

import wpk
from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.performance import bound
from wpk.problems import Convolution, Matmul, MomentsMatmul, Problem
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.shortlist import least_estimate
from wpk.target_features import TargetFeatures
from wpk.targets import find_target

HEAD = '<ir_version: 10, opset_import: ["" : 23]>'
POSITIONS = f"""{HEAD} g (float[N, 21, 24] x, float[24, 40] w, float[1, 21, 40] p) => (float[N, 21, 40] y) {{
    s = Sigmoid(x)  m = MatMul(s, w)  a = Add(m, p)  y = Relu(a) }}"""
TOKEN = f"""{HEAD} g (float[N, 21, 24] x, float[24, 40] w, float[N, 1, 40] c, float[40] p)
    => (float[N, 22, 40] y) {{ s = Sigmoid(x)  m = MatMul(s, w)  a = Add(m, p)  y = Concat<axis = 1>(c, a) }}"""
APART = {"positions": POSITIONS, "a token": TOKEN}

JOINED = {
    "rows that join": POSITIONS.replace("float[1, 21, 40] p", "float[N, 21, 40] p"),
    "positions of the columns": POSITIONS.replace("float[1, 21, 40] p", "float[40] p"),
    "few rows": POSITIONS.replace("21", "3"),
    "a matrix each": POSITIONS.replace("float[24, 40] w", "float[N, 24, 40] w"),
}


def _problems(folder: Path, text: str, constants: str) -> list[Problem]:
    path = folder / "model.onnx"
    onnx.save(parse_model(text, constants), path)
    lowered = lower_model(path, {}, Precision.FP16, features=TargetFeatures(clusters=False))
    return [each.problem for each in lowered.program.operators]


@pytest.mark.parametrize("batch", ["4", "N"])
@pytest.mark.parametrize("name", APART)
def test_rows_that_lie_apart_are_pixels(name: str, batch: str, tmp_path: Path) -> None:
    found = _problems(tmp_path, APART[name].replace("N", batch), "w p")
    assert not [each for each in found if isinstance(each, Matmul)]
    (product,) = [each for each in found if isinstance(each, Convolution)]
    assert (product.c, product.k, product.h, product.w) == (24, 40, 1, 21)
    assert (product.n.free is not None) == (batch == "N")
    repeated = product.epilogue.operands[-1].strides
    assert (repeated == (0, 1, 840, 40)) == (name == "positions")
    assert product.y.strides[0] == 40 * (21 if name == "positions" else 22)
    assert not list(product.contradictions())


@pytest.mark.parametrize("name", JOINED)
def test_other_products_stay_products(name: str, tmp_path: Path) -> None:
    constants = "w p" if "N, 21, 40] p" not in JOINED[name] else "w"
    text = JOINED[name].replace("N", "4")
    found = _problems(tmp_path, text, "p" if name == "a matrix each" else constants)
    assert [each for each in found if isinstance(each, Matmul)]
    assert not [each for each in found if isinstance(each, Convolution)]


def test_a_product_that_stores_moments_stays_one(tmp_path: Path) -> None:
    text = f"""{HEAD} g (float[4, 21, 24] x, float[24, 32] w, float[1, 21, 32] p, float[32] s, float[32, 8] u)
        => (float[4, 21, 8] y) {{ m = MatMul(x, w)  a = Add(m, p)
        n = LayerNormalization(a, s)  y = MatMul(n, u) }}"""
    found = _problems(tmp_path, text, "w p s u")
    assert [each for each in found if isinstance(each, MomentsMatmul)]


@pytest.mark.parametrize(
    ("precision", "template", "near"),
    [("fp32", "conv_simt", 1e-5), ("fp16", "conv_mma", 5e-3), ("fp16", "conv_wgmma", 5e-3)],
)
@pytest.mark.parametrize("name", APART)
def test_numbers_are_those_of_onnx_runtime_at_any_batch(
    name: str, precision: str, template: str, near: float, tmp_path: Path, one_finalist: None
) -> None:
    path, plan = tmp_path / "model.onnx", tmp_path / "model.plan"
    onnx.save(parse_model(APART[name], "w p"), path)
    others = {each for each in TEMPLATE_OF if each.startswith("conv_")} - {template}
    how = {"precision": precision, "skip_templates": others}
    wpk.optimize(path, plan, target="h100", check="off", **how)
    with wpk.load(plan, device="cpu") as engine:
        for batch in (2, 5):
            generator = np.random.default_rng(batch)
            given = {"x": (batch, 21, 24)} | ({"c": (batch, 1, 40)} if name == "a token" else {})
            arrays = {
                port: generator.standard_normal(shape).astype(np.float32)
                for port, shape in given.items()
            }
            (right,) = onnxruntime.InferenceSession(str(path)).run(None, arrays)
            (y,) = engine.run(arrays).values()
            assert np.abs(y - right).max() < near * np.abs(right).max()


def test_models_expect_positions_to_cost_what_any_residual_does(tmp_path: Path) -> None:
    """ViT-B/16's patches at batch 32: as 32 matrices of 196 rows they took 1.5 times as long."""
    text = (
        POSITIONS.replace("N", "32").replace("21", "196").replace("24", "768").replace("40", "768")
    )
    h100 = find_target("h100")
    least = []
    for positions in ("[1, 196", "[32, 196"):
        found = _problems(tmp_path, text.replace("[1, 196", positions), "w p")
        (problem,) = [each for each in found if isinstance(each, (Convolution, Matmul))]
        able = [t for t in TEMPLATE_OF.values() if isinstance(problem, t.problem_type)]
        carrying = [t for t in able if t.why_not(problem, h100) is None]
        least.append(least_estimate(problem, carrying, h100, bound(problem, h100)))
    repeated, whole = least
    assert repeated is not None
    assert whole is not None
    assert repeated < 1.05 * whole
