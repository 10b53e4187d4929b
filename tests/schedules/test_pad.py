"""Pad: every mode against ONNX Runtime, cropping, types, refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems import Pad, Tensor
from wpk.problems.movement import PadMode
from wpk.schedules.pad import PadTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE = PadTemplate()
H200 = find_target("h200")


def padded(x: np.ndarray, pads: list[int], mode: str, value: float) -> np.ndarray:
    """ONNX Runtime's answer."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 19]>'
        "agraph (float[a, b, c, d] x, int64[8] pads, float value) => (float[e, f, g, h] y)"
        f'{{ y = Pad <mode = "{mode}"> (x, pads, value) }}'
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {
        "x": x.astype(np.float32),
        "pads": np.array(pads),
        "value": np.array(value, np.float32),
    }
    return np.asarray(session.run(None, feeds)[0], np.float64)


def contiguous(dtype: DType, shape: tuple[int, ...], last: int, padding: int = 0) -> Tensor:
    """Contiguous with axis ``last`` innermost."""
    strides, step = [0] * len(shape), 1
    order = [axis for axis in range(len(shape)) if axis != last] + [last]
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis] + (padding if axis == last else 0)
    alignment = 16
    while any(s != 1 and s * dtype.bytes % alignment for s in strides):
        alignment //= 2
    return Tensor(dtype, tuple(strides), padding, alignment)


@pytest.mark.parametrize("mode", PadMode)
@pytest.mark.parametrize("last", [1, 3])
def test_every_mode_agrees_with_onnxruntime(mode: PadMode, last: int, execution: Any) -> None:
    pads = [0, 1, 2, 0, 0, 2, 0, 3]
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 4)).astype(np.float16)
    expected = padded(x, pads, mode.value, 0.5)
    problem = Pad(
        Extent(2, "n"),
        x.shape,
        expected.shape,
        tuple(pads[:4]),
        mode,
        0.5,
        contiguous(DType.FP16, x.shape, last),
        contiguous(DType.FP16, expected.shape, last, 16 - expected.shape[last]),
    )
    assert TEMPLATE.why_not(problem, H200) is None
    memory = [execution.memory(problem.x, x)]
    shape = expected.shape
    y = execution.run(TEMPLATE, problem, VectorSchedule(8, 64), memory, shape, {"n": 2})
    np.testing.assert_array_equal(y, expected)


def test_crops_and_moves_whole_vectors(execution: Any) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4, 24)).astype(np.float32)
    x_tensor, y_tensor = (contiguous(DType.FP32, (3, n, m), 2) for n, m in ((4, 24), (5, 20)))
    begin = (0, 2, -4)
    problem = Pad(
        Extent(3), (3, 4, 24), (3, 5, 20), begin, PadMode.CONSTANT, -1.0, x_tensor, y_tensor
    )
    memory = [execution.memory(x_tensor, x)]
    y = execution.run(TEMPLATE, problem, VectorSchedule(4, 64), memory, (3, 5, 20))
    expected = np.full((3, 5, 20), -1.0)
    expected[:, 2:] = x[:, :3, 4:]
    np.testing.assert_array_equal(y, expected)


def test_refuses_in_words() -> None:
    tensor = contiguous(DType.FP32, (2, 4), 1)
    good = Pad(Extent(2), (2, 4), (2, 4), (0, 0), PadMode.EDGE, 0.0, tensor, tensor)
    assert TEMPLATE.why_not(good, H200) is None
    first = replace(good, y_shape=(3, 4))
    assert "the leading axis is padded" in str(TEMPLATE.why_not(first, H200))
    deep = replace(good, y_shape=(2, 1, 1, 1, 4))
    assert "5 axes, at most 4" in str(TEMPLATE.why_not(deep, H200))
    assert "no elements to edge" in str(TEMPLATE.why_not(replace(good, x_shape=(2, 0)), H200))
