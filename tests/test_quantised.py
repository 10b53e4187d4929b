"""Quantised models from their file to a checked plan that gives ONNX Runtime's numbers."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.networks.dynamic_models import ENCODER, MLP, dynamically_quantised
from support.networks.quantised_bert import Encoder, encoder, quantised
from support.networks.quantised_models import INTEGERS, QDQ, QLINEAR, quantised_model

import wpk
from wpk.dtypes import DType, Precision
from wpk.graph_passes import open_session
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan import Outcome, PlanBundle
from wpk.problems import Family

pytestmark = pytest.mark.usefixtures("warm")


def planned(tmp_path: Path, text: str, precision: str) -> PlanBundle:
    onnx.save(quantised_model(text), tmp_path / "model.onnx")
    return optimize(
        tmp_path / "model.onnx", tmp_path / "model.plan", target="h200", precision=precision
    )


@pytest.mark.parametrize(
    ("text", "precision"),
    [(QDQ, "fp32"), (QDQ, "fp16"), (QLINEAR, "fp32"), (INTEGERS, "fp32"), (INTEGERS, "fp16")],
    ids=["qdq-fp32", "qdq-fp16", "qlinear-fp32", "integers-fp32", "integers-fp16"],
)
def test_every_check_passes(tmp_path: Path, text: str, precision: str) -> None:
    bundle = planned(tmp_path, text, precision)
    assert bundle.plan.checks
    assert all(check.outcome is Outcome.OK for check in bundle.plan.checks)


def test_quantisations_are_part_of_the_kernels_around_them(tmp_path: Path) -> None:
    bundle = planned(tmp_path, QDQ, "fp16")
    problems = [step.operator.problem for step in bundle.plan.steps]
    assert len(problems) == 3  # what quantises the input, and the two convolutions
    assert [each.matrix_precision for each in problems[1:]] == [Precision.FP16, Precision.INT8]
    assert problems[1].y.dtype is DType.UINT8  # what lies between the two
    assert "to uint8" in problems[2].words()


@pytest.mark.usefixtures("one_cubin")
@pytest.mark.parametrize(
    ("precision", "symmetric"),
    [
        ("fp16", False),
        ("fp32", True),
        pytest.param("fp16", True, marks=pytest.mark.exhaustive),
        pytest.param("fp32", False, marks=pytest.mark.exhaustive),
    ],
)
def test_an_encoder_multiplies_bytes(tmp_path: Path, symmetric: bool, precision: str) -> None:
    sizes = Encoder(layers=1, heads=4, hidden=128, tokens=16)
    options = {"extra_options": {"ActivationSymmetric": symmetric}}
    quantised(encoder(sizes), tmp_path / "model.onnx", sizes, **options)
    files = (tmp_path / "model.onnx", tmp_path / "model.plan")
    plan = optimize(*files, target="h200", precision=precision).plan
    assert all(check.outcome is Outcome.OK for check in plan.checks)
    problems = [step.operator.problem for step in plan.steps]
    of_bytes = [each for each in problems if each.matrix_precision is Precision.INT8]
    assert len(of_bytes) == (8 if symmetric else 6)  # without zero points attention's products, too
    own = [step for step in plan.steps if step.operator.problem in of_bytes]
    assert {step.candidate.maker.name for step in own} <= {"gemm_mma", "gemm_wgmma", "gemm_skinny"}


@pytest.mark.usefixtures("one_cubin")
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("network", [MLP, ENCODER], ids=["mlp", "encoder"])
def test_dynamic_quantisation_gives_onnx_runtimes_numbers(
    tmp_path: Path, network: str, per_channel: bool
) -> None:
    model = dynamically_quantised(network, tmp_path, per_channel=per_channel)
    ops = {node.op_type for node in model.graph.node}
    assert {"DynamicQuantizeLinear", "MatMulInteger"} <= ops
    onnx.save(model, tmp_path / "model.onnx")
    plan = optimize(
        tmp_path / "model.onnx", tmp_path / "model.plan", target="h200", fallback="off"
    ).plan
    assert all(check.outcome is Outcome.OK for check in plan.checks)
    (given,) = model.graph.input
    shape = [each.dim_value for each in given.type.tensor_type.shape.dim]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    session = open_session(model.SerializeToString())
    (expected,) = session.run(None, {given.name: x})
    actual = wpk.load(tmp_path / "model.plan", device="cpu").run({given.name: x})["y"]
    # Bytes are equal, and so are their sums: what is left rounds a few times at each scale and row.
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


RESIDUAL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 16, 13, 11] x) => (float[2, 24, 13, 11] y) {
    xq = QuantizeLinear (x, s1, z1)
    xd = DequantizeLinear (xq, s1, z1)
    vd = DequantizeLinear (v8, sv, zv)
    a = Conv (xd, vd)
    aq = QuantizeLinear (a, s1, z1)
    ad = DequantizeLinear (aq, s1, z1)
    ud = DequantizeLinear (u8, sv, zv)
    b = Conv (ad, ud)
    bq = QuantizeLinear (b, s1, z1)
    bd = DequantizeLinear (bq, s1, z1)
    y = Add (ad, bd)
}"""
"""What is restored is read by a product, as bytes, and by an addition."""


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.BF16])
def test_a_residual_is_restored_by_what_adds_it(tmp_path: Path, precision: Precision) -> None:
    onnx.save(quantised_model(RESIDUAL), tmp_path / "model.onnx")
    lowered = lower_model(tmp_path / "model.onnx", {}, precision)
    problems = [each.problem for each in lowered.program.operators]
    assert [each.family for each in problems] == [Family.ELEMENT_WISE, *[Family.CONVOLUTION] * 2]
    assert [each.matrix_precision for each in problems[1:]] == [Precision.INT8] * 2


def test_heads_are_quantised_where_they_are_made(tmp_path: Path) -> None:
    sizes = Encoder(layers=1, heads=4, hidden=128, tokens=16)
    options = {
        "op_types_to_quantize": ["MatMul"],
        "extra_options": {"ActivationSymmetric": True},
    }
    quantised(encoder(sizes), tmp_path / "model.onnx", sizes, **options)
    lowered = lower_model(tmp_path / "model.onnx", {}, Precision.FP16)
    problems = [each.problem for each in lowered.program.operators]
    rounding = [each.words() for each in problems if each.family is Family.ELEMENT_WISE]
    assert sum("roundeven" in words for words in rounding) <= 1, rounding  # of the model's input
