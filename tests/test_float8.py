"""8-bit floating point from a model's file to a checked plan, right beside ONNX Runtime."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from support.networks.dynamic_models import ENCODER
from support.networks.float8_models import CONVOLUTIONS, with_float8_products

import wpk
from wpk.dtypes import DType, Precision
from wpk.engine.arrays_file import read_arrays, write_arrays
from wpk.errors import UnsupportedError
from wpk.graph_passes import open_session, run_session
from wpk.plan import Outcome, PlanBundle
from wpk.plan.plan_file import read_plan
from wpk.report.plans.precision import precision_of

pytestmark = pytest.mark.usefixtures("warm")

TYPES = {"float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e5m2": ml_dtypes.float8_e5m2}
CODES = {"float8e4m3fn": 17, "float8e5m2": 19}
E4M3, E5M2 = CODES.values()
X = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
X *= np.exp(np.random.default_rng(1).uniform(-12, 12, (5, 7))).astype(np.float32)
X[0, :5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]


def parsed(text: str, opset: int = 21) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    onnx.checker.check_model(model)
    return model


def planned(model: onnx.ModelProto, folder: Path, precision: str = "fp32") -> PlanBundle:
    onnx.save(model, folder / "model.onnx")
    return wpk.optimize(
        folder / "model.onnx",
        folder / "model.plan",
        target="h200",
        precision=precision,
        fallback="off",
    )


def both(
    model: onnx.ModelProto, folder: Path, x: np.ndarray, precision: str = "fp32"
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what a plan and ONNX Runtime give for each output."""
    bundle = planned(model, folder, precision)
    assert all(check.outcome is Outcome.OK for check in bundle.plan.checks)
    expected = run_session(open_session(model.SerializeToString()), {"x": x})
    actual = wpk.load(folder / "model.plan", device="cpu").run({"x": x})
    return [(actual[o.name], e) for o, e in zip(model.graph.output, expected, strict=True)]


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Check numbers and types; NaN is NaN."""
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", TYPES)
def test_casts_to_and_from(kind: str, saturate: int, tmp_path: Path) -> None:
    text = f"""g (float[5, 7] x) => ({kind}[5, 7] q, float16[5, 7] y) {{
        q = Cast <to = {CODES[kind]}, saturate = {saturate}> (x)
        y = Cast <to = 10> (q) }}"""
    for actual, expected in both(parsed(text), tmp_path, X):
        assert_same(actual, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_inputs_and_outputs_are_moved_as_they_are(kind: str, tmp_path: Path) -> None:
    text = f"""g ({kind}[5, 7] x) => (float[5, 7] y, {kind}[7, 5] t) {{
        y = Cast <to = 1> (x)
        t = Transpose (x) }}"""
    with np.errstate(all="ignore"):
        x = X.astype(TYPES[kind])
    for actual, expected in both(parsed(text), tmp_path, x):
        assert_same(actual, expected)


@pytest.mark.parametrize("kind", TYPES)
def test_quantisation_with_a_scale_for_each_index(kind: str, tmp_path: Path) -> None:
    text = f"""g (float[5, 7] x) => ({kind}[5, 7] q, float[5, 7] y) {{
        q = QuantizeLinear <axis = 1> (x, s, z)
        y = DequantizeLinear <axis = 1> (q, s) }}"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    scales = np.random.default_rng(2).uniform(0.01, 3, 7).astype(np.float32)
    zeros = onnx.helper.make_tensor("z", CODES[kind], [7], bytes(7), raw=True)
    model.graph.initializer.extend([onnx.numpy_helper.from_array(scales, "s"), zeros])
    for actual, expected in both(model, tmp_path, X):
        assert_same(actual, expected)


@pytest.mark.parametrize(
    ("network", "activations", "precision"),
    [(CONVOLUTIONS, E5M2, "fp32"), (ENCODER, E4M3, "fp32"), (CONVOLUTIONS, E4M3, "fp16")],
    ids=["convolutions-e5m2-fp32", "encoder-e4m3-fp32", "convolutions-e4m3-fp16"],
)
def test_networks_with_quantised_products(
    network: str, activations: int, precision: str, tmp_path: Path
) -> None:
    model = with_float8_products(network, activations)
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    ((actual, expected),) = both(model, tmp_path, x, precision)
    # Strict fp32 has sums of its own, and E5M2 is not multiplied by E4M3.
    of_float8 = precision_of(read_plan(tmp_path / "model.plan").plan).of_float8
    assert of_float8 == (3 if (activations, precision) == (E4M3, "fp16") else 0)
    # No element lies on a tie of these inputs in fp32; 11 bits move some over one.
    loose = 2e-6 if precision == "fp32" else 0.05
    np.testing.assert_allclose(actual, expected, rtol=loose, atol=loose)


def test_products_read_one_byte_in_memory_and_write_one(tmp_path: Path) -> None:
    bundle = planned(with_float8_products(CONVOLUTIONS), tmp_path, "fp16")
    problems = [step.operator.problem for step in bundle.plan.steps]
    precisions = [each.matrix_precision for each in problems]
    assert precisions == [None, *[Precision.FP8_E4M3] * 2, None, Precision.FP8_E4M3]
    stored = [each.y.dtype is DType.FP8_E4M3 for each in problems]
    assert stored == [
        True,
        True,
        False,
        True,
        False,
    ]  # between the second product and Q lies the pool
    assert precision_of(bundle.plan).of_float8 == 3


def test_arrays_survive_a_file(tmp_path: Path) -> None:
    text = "g (float8e5m2[5, 7] x) => (float[5, 7] y) { y = Cast <to = 1> (x) }"
    planned(parsed(text), tmp_path)
    with np.errstate(all="ignore"):
        x = X.astype(ml_dtypes.float8_e5m2)
    write_arrays(tmp_path / "x.npz", {"x": x})
    y = wpk.load(tmp_path / "model.plan", device="cpu").run(read_arrays(tmp_path / "x.npz"))["y"]
    np.testing.assert_array_equal(y, x.astype(np.float32))


@pytest.mark.parametrize("kind", ["float8e4m3fnuz", "float8e5m2fnuz"])
def test_other_forms_are_refused_in_words(kind: str, tmp_path: Path) -> None:
    model = parsed(f"g ({kind}[5, 7] x) => (float[5, 7] y) {{ y = Cast <to = 1> (x) }}")
    with pytest.raises(UnsupportedError, match=f"input 'x': {kind.upper()}"):
        planned(model, tmp_path)
