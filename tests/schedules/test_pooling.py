"""Pooling: numbers against ONNX Runtime, and refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.problems.first_layers import channels_first

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Pooling, Tensor
from wpk.problems.pooling import PoolKind
from wpk.schedules.pooling import PoolingTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE = PoolingTemplate()
H200 = find_target("h200")
N = 3


def channels_last(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    pixel = c + padding
    alignment = next(a for a in (16, 8, 4, 2, 1) if pixel * dtype.bytes % a == 0)
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, alignment)


def pool(kind: str, x: np.ndarray, **attributes: Any) -> np.ndarray:
    """ONNX Runtime's answer."""
    node = onnx.helper.make_node(kind, ["x"], ["y"], **attributes)
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None] * 4)]
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    opset = [onnx.helper.make_opsetid("", 19)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, {"x": x.astype(np.float32)})[0], np.float64)


def pooling(
    x: Tensor, c: int, size: tuple[int, int], out: tuple[int, int], **given: Any
) -> Pooling:
    values: dict[str, Any] = {
        "kind": PoolKind.MAX,
        "window": (3, 3),
        "stride": (2, 2),
        "dilation": (1, 1),
        "pad": (1, 1),
        "pad_end": (1, 1),
        "count_include_pad": False,
        "y": channels_last(x.dtype, c, *out, x.padding),
        "epilogue": Epilogue(),
        **given,
    }
    return Pooling(n=Extent(N, "n"), c=c, h=size[0], w=size[1], p=out[0], q=out[1], x=x, **values)


CASES: dict[str, dict[str, Any]] = {
    "3x3 stride 2": {},
    "asymmetric": {"pads": [0, 1, 2, 0], "kernel_shape": [3, 2], "strides": [1, 2]},
    "dilated": {"dilations": [2, 1], "pads": [1, 1, 0, 1], "strides": [1, 1]},
    "ceil mode": {"ceil_mode": 1, "pads": [0, 0, 0, 0]},
    "windows in the padding": {"dilations": [3, 3], "kernel_shape": [2, 2], "strides": [1, 1]},
}


def both(attributes: dict[str, Any], include: int) -> tuple[dict[str, Any], Any]:
    """ONNX attributes with defaults, and the problem's."""
    onnx_attributes = {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
        "dilations": [1, 1],
        **attributes,
    }
    problem = {
        "window": tuple(onnx_attributes["kernel_shape"]),
        "stride": tuple(onnx_attributes["strides"]),
        "dilation": tuple(onnx_attributes["dilations"]),
        "pad": tuple(onnx_attributes["pads"][:2]),
        "pad_end": tuple(onnx_attributes["pads"][2:]),
        "count_include_pad": bool(include),
    }
    return onnx_attributes, problem


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "AveragePool, padding counts"])
def test_agrees_with_onnxruntime(
    case: str, kind: str, fast_execution: Any, assert_close: Callable[..., None]
) -> None:
    c, h, w, include = 5, 8, 9, int("," in kind)
    attributes, given = both(CASES[case], include)
    x = np.random.default_rng(1).standard_normal((N, c, h, w)).astype(np.float32)
    extra = {"count_include_pad": include} if kind != "MaxPool" else {}
    expected = pool(kind.split(",")[0], x, **attributes, **extra)
    given["kind"] = PoolKind.MAX if kind == "MaxPool" else PoolKind.AVERAGE
    tensor = channels_last(DType.FP32, c, h, w, 3)
    problem = pooling(tensor, c, (h, w), expected.shape[2:], **given)
    schedule = VectorSchedule(vector=4, threads=64)
    memory = [fast_execution.memory(tensor, x)]
    y = fast_execution.run(TEMPLATE, problem, schedule, memory, expected.shape, {"n": N})
    assert_close(y, expected, np.abs(expected), out=2.0**-24, multiply=2.0**-24, reduction=9)


@pytest.mark.parametrize(
    ("dtype", "c", "padding", "layout", "vector"),
    [
        (DType.FP16, 58, 6, "last", 8),
        (DType.BF16, 58, 0, "last", 2),
        (DType.FP16, 58, 2, "last", 8),
        (DType.FP32, 5, 0, "last", 4),
        (DType.FP16, 7, 0, "first", 1),
        (DType.FP32, 3, 0, "mixed", 2),
    ],
)
def test_layouts_and_types(
    dtype: DType,
    c: int,
    padding: int,
    layout: str,
    vector: int,
    execution: Any,
    assert_close: Callable[..., None],
) -> None:
    h, w = 7, 9
    drawn = np.random.default_rng(2).standard_normal((N, c, h, w))
    x = drawn.astype(dtype.numpy)
    attributes, given = both({}, 0)
    expected = pool("AveragePool", x.astype(np.float32), **attributes)
    p, q = expected.shape[2:]
    bias = np.random.default_rng(3).standard_normal(c).astype(np.float32)
    tail = apply("Relu", apply("Add", Acc(), Operand(0)))
    given["epilogue"] = Epilogue(tail, (Tensor(DType.FP32, (0, 1, 0, 0)),))
    make = channels_first if layout == "first" else channels_last
    tensor = channels_first(dtype, c, h, w) if layout == "mixed" else make(dtype, c, h, w)
    if padding:
        tensor = channels_last(dtype, c, h, w, padding)
    y_tensor = channels_last(dtype, c, p, q, padding) if padding else make(dtype, c, p, q)
    if layout == "mixed":
        y_tensor = channels_last(dtype, c, p, q, 1)
    given["kind"], given["y"] = PoolKind.AVERAGE, y_tensor
    problem = pooling(tensor, c, (h, w), (p, q), **given)
    schedule = VectorSchedule(vector=vector, threads=128)
    memory = [execution.memory(tensor, x), bias]
    y = execution.run(TEMPLATE, problem, schedule, memory, expected.shape, {"n": N})
    wide = bias.astype(np.float64)[None, :, None, None]
    absolute = pool("AveragePool", np.abs(x.astype(np.float32)), **attributes)
    assert_close(
        y,
        np.maximum(expected + wide, 0),
        absolute + np.abs(wide),
        out=dtype.unit_roundoff,
        multiply=2.0**-24,
        reduction=9,
    )


@pytest.mark.parametrize("place", range(9))
def test_a_nan_reaches_every_window_that_holds_it(fast_execution: Any, place: int) -> None:
    x = np.full((1, 1, 3, 4), [-np.inf, 1.0, 2.0, 3.0])
    x[0, 0, place // 3, place % 3] = np.nan
    tensor = channels_first(DType.FP32, 1, 3, 4)
    problem = pooling(tensor, 1, (3, 4), (1, 2), pad=(0, 0), stride=(1, 1))
    problem = replace(problem, pad_end=(0, 0), y=channels_first(DType.FP32, 1, 1, 2))
    memory = [fast_execution.memory(tensor, x)]
    y = fast_execution.run(TEMPLATE, problem, VectorSchedule(1, 64), memory, (1, 1, 1, 2), {"n": 1})
    assert np.isnan(y).tolist() == [[[[True, place % 3 > 0]]]]


def test_the_maximum_of_negative_infinities_is_one(fast_execution: Any) -> None:
    x = np.full((1, 1, 2, 2), -np.inf)
    tensor = channels_first(DType.FP32, 1, 2, 2)
    problem = pooling(tensor, 1, (2, 2), (1, 1), pad=(1, 1), stride=(2, 2))
    problem = replace(problem, y=channels_first(DType.FP32, 1, 1, 1))
    memory = [fast_execution.memory(tensor, x)]
    y = fast_execution.run(TEMPLATE, problem, VectorSchedule(1, 64), memory, (1, 1, 1, 1), {"n": 1})
    assert np.isneginf(y).all()


def test_refuses_what_the_kernel_cannot_address() -> None:
    tensor = channels_last(DType.FP16, 8, 8, 8)
    good = pooling(tensor, 8, (8, 8), (4, 4))
    assert TEMPLATE.why_not(good, H200) is None
    huge = replace(tensor, strides=(0, 1, 2**31, 8))
    assert "2^31 - 1 are allowed" in str(TEMPLATE.why_not(replace(good, x=huge), H200))
    across = Tensor(DType.FP16, (144, 18, 1, 6), padding=2)
    assert "does not pad" in str(TEMPLATE.why_not(replace(good, y=across), H200))
    lost = replace(good, epilogue=Epilogue(Operand(1)))
    assert "reads operand 1" in str(TEMPLATE.why_not(lost, H200))


def test_refuses_vectors_across_rows() -> None:
    tensor = channels_first(DType.FP16, 8, 8, 8)
    problem = replace(pooling(tensor, 8, (8, 8), (4, 4)), y=channels_first(DType.FP16, 8, 4, 4))
    assert set(TEMPLATE.space(problem, H200)[1]["vector"]) == {1}
    reason = TEMPLATE.why_illegal(problem, VectorSchedule(2, 64), H200)
    assert "vectors run along the channels, y's neighbours do not (vector=2)" in str(reason)
