"""8-bit floating point on the GPU: the instructions that convert, and what is put right behind them."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import wpk
from wpk.device import CudaDevice
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
