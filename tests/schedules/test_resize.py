"""Resize: every mode against ONNX Runtime, exact moves, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems import Resize, Tensor
from wpk.problems.movement import NearestMode, ResizeCoordinates, ResizeMode
from wpk.schedules.resize import ResizeSchedule, ResizeTemplate
from wpk.targets.registry import find_target

TEMPLATE = ResizeTemplate()
H200 = find_target("h200")


def resized(x: np.ndarray, scales: tuple[float, float], problem: Resize) -> np.ndarray:
    """ONNX Runtime's answer."""
    nearest = f', nearest_mode = "{problem.nearest}"' if problem.mode is ResizeMode.NEAREST else ""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 13]>'
        "agraph (float[a, b, c, d] x, float[r] roi, float[4] scales) => (float[e, f, g, h] y)"
        f'{{ y = Resize <mode = "{problem.mode}", coordinate_transformation_mode ='
        f' "{problem.coordinates}"{nearest}> (x, roi, scales) }}'
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {
        "x": x.astype(np.float32),
        "roi": np.zeros(0, np.float32),
        "scales": np.array([1, 1, *scales], np.float32),
    }
    return np.asarray(session.run(None, feeds)[0], np.float64)


def channels_last(dtype: DType, c: int, h: int, w: int, padding: int) -> Tensor:
    pixel = c + padding
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, 8)


def problem_of(
    mode: ResizeMode,
    coordinates: ResizeCoordinates,
    nearest: NearestMode,
    scale: tuple[float, float],
) -> Resize:
    c, h, w = 5, 6, 7
    p, q = int(h * scale[0]), int(w * scale[1])
    x, y = channels_last(DType.FP32, c, h, w, 3), channels_last(DType.FP32, c, p, q, 3)
    return Resize(mode, coordinates, nearest, Extent(2, "n"), c, h, w, p, q, scale, x, y)


@pytest.mark.parametrize("coordinates", ResizeCoordinates)
@pytest.mark.parametrize("nearest", [None, *NearestMode])
def test_agrees_with_onnxruntime(
    coordinates: ResizeCoordinates,
    nearest: NearestMode | None,
    fast_execution: Any,
) -> None:
    scale = (0.7, 1.5) if nearest is None else (2.0, 0.5)
    mode = ResizeMode.LINEAR if nearest is None else ResizeMode.NEAREST
    problem = problem_of(mode, coordinates, nearest or NearestMode.FLOOR, scale)
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 7)).astype(np.float32)
    expected = resized(x, scale, problem)
    assert expected.shape == (2, 5, problem.p, problem.q)
    memory = [fast_execution.memory(problem.x, x)]
    y = fast_execution.run(
        TEMPLATE, problem, ResizeSchedule(2, 64), memory, expected.shape, {"n": 2}
    )
    if nearest is not None:
        np.testing.assert_array_equal(y, expected)
    else:
        # Positions up to 7 are fp32; neighbouring samples differ by up to about 6.
        np.testing.assert_allclose(y, expected, atol=2 * 7 * 2.0**-23 * 6)


def test_channels_first_in_half_precision(execution: Any) -> None:
    problem = problem_of(
        ResizeMode.LINEAR, ResizeCoordinates.HALF_PIXEL, NearestMode.FLOOR, (2.0, 2.0)
    )
    x_tensor = Tensor(DType.FP16, (5 * 42, 42, 7, 1), alignment=2)
    y_tensor = Tensor(DType.FP16, (5 * 12 * 16, 12 * 16, 16, 1), padding=2)
    problem = replace(problem, x=x_tensor, y=y_tensor)
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 7)).astype(np.float16)
    expected = resized(x, (2.0, 2.0), problem)
    memory = [execution.memory(x_tensor, x)]
    y = execution.run(TEMPLATE, problem, ResizeSchedule(1, 64), memory, expected.shape, {"n": 2})
    np.testing.assert_allclose(y, expected, rtol=2.0**-11, atol=2.0**-18)


def test_nearest_moves_integers_exactly(fast_execution: Any) -> None:
    problem = problem_of(
        ResizeMode.NEAREST, ResizeCoordinates.ASYMMETRIC, NearestMode.FLOOR, (2.0, 2.0)
    )
    x_tensor = replace(problem.x, dtype=DType.INT32)
    problem = replace(problem, x=x_tensor, y=replace(problem.y, dtype=DType.INT32))
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 5, 6, 7))
    memory = [fast_execution.memory(x_tensor, x)]
    shape = (2, 5, 12, 14)
    y = fast_execution.run(TEMPLATE, problem, ResizeSchedule(2, 64), memory, shape, {"n": 2})
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_refuses_to_interpolate_integers() -> None:
    problem = problem_of(
        ResizeMode.LINEAR, ResizeCoordinates.ASYMMETRIC, NearestMode.FLOOR, (2.0, 2.0)
    )
    assert TEMPLATE.why_not(problem, H200) is None
    integers = replace(problem, x=replace(problem.x, dtype=DType.UINT8))
    assert "linear interpolation of uint8" in str(TEMPLATE.why_not(integers, H200))
