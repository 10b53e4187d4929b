"""8-bit floating point on the GPU: the instructions that convert, and what is put right behind them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import wpk
from wpk.device import CudaDevice
from wpk.dtypes import DType, Precision
from wpk.engine import Engine
from wpk.plan.plan_file import read_plan

pytestmark = pytest.mark.gpu

TYPES = {17: ("float8e4m3fn", ml_dtypes.float8_e4m3fn), 19: ("float8e5m2", ml_dtypes.float8_e5m2)}


def many_numbers(dtype: type) -> np.ndarray:
    """Numbers of the type and the ties between them, what is next to these, and every 997th fp32 pattern."""
    own = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    own = np.sort(own[np.isfinite(own)])
    grid = np.concatenate([own, (own[1:] + own[:-1]) / 2])
    near = [np.nextafter(grid, np.float32(way)) for way in (-np.inf, np.inf)]
    drawn = np.arange(0, 2**32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([grid, *near, drawn])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", TYPES)
def test_casts_round_as_ml_dtypes_does(
    cuda: CudaDevice, tmp_path: Path, kind: int, saturate: int
) -> None:
    name, dtype = TYPES[kind]
    x = many_numbers(dtype)
    text = f"""<ir_version: 9, opset_import: ["" : 19]>
    g (float[{x.size}] x) => ({name}[{x.size}] q, float[{x.size}] y) {{
        q = Cast <to = {kind}, saturate = {saturate}> (x)
        y = Cast <to = 1> (q) }}"""
    wpk.optimize(onnx.parser.parse_model(text), tmp_path / "model.plan", target="h200", check="off")
    with Engine(read_plan(tmp_path / "model.plan"), cuda) as engine:
        outputs = engine.run({"x": x})
    largest = float(ml_dtypes.finfo(dtype).max)
    with np.errstate(all="ignore"):
        expected = (np.clip(x, -largest, largest) if saturate else x).astype(dtype)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(outputs["q"]), ~numbers)
    np.testing.assert_array_equal(
        outputs["q"][numbers].view(np.uint8), expected[numbers].view(np.uint8)
    )
    np.testing.assert_array_equal(outputs["y"], expected.astype(np.float32))


SUMMED = 512


def _factors(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Rows of each finite number alone; and one whose products differ by 2^20, which fewer bits than fp32's lose."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    x = np.zeros((len(numbers) + 1, SUMMED), np.float32)
    x[np.arange(len(numbers)), np.arange(len(numbers)) * 7 % SUMMED] = numbers
    x[-1] = 0.25
    x[-1, 0] = 256.0
    w = np.full((SUMMED, 16), 0.25, np.float32)
    w[0] = 256.0
    return x, w


@pytest.mark.parametrize("kind", TYPES)
def test_products_take_every_number_and_sum_in_fp32(
    cuda: CudaDevice, tmp_path: Path, kind: int
) -> None:
    _, dtype = TYPES[kind]
    x, w = _factors(dtype)
    text = f"""<ir_version: 9, opset_import: ["" : 19]>
    g (float[{len(x)}, {SUMMED}] x) => (float[{len(x)}, 16] y) {{
        xq = QuantizeLinear (x, one, zero)
        xd = DequantizeLinear (xq, one, zero)
        wd = DequantizeLinear (wq, one, zero)
        y = MatMul (xd, wd) }}"""
    model = onnx.parser.parse_model(text)
    one = onnx.numpy_helper.from_array(np.array(1, np.float32), "one")
    zero = onnx.helper.make_tensor("zero", kind, [], b"\0", raw=True)
    held = onnx.helper.make_tensor("wq", kind, w.shape, w.astype(dtype).tobytes(), raw=True)
    model.graph.initializer.extend([one, zero, held])
    wpk.optimize(
        model, tmp_path / "model.plan", target="h200", precision="fp16", check="off", fallback="off"
    )
    bundle = read_plan(tmp_path / "model.plan")
    assert bundle.plan.steps[-1].operator.problem.matrix_precision is Precision(
        DType.FP8_E4M3 if kind == 17 else DType.FP8_E5M2
    )
    with Engine(bundle, cuda) as engine:
        outputs = engine.run({"x": x})
    np.testing.assert_array_equal(outputs["y"], x.astype(np.float64) @ w)
