"""Where the largest elements of windows are: ONNX Runtime's indices, in planes by rows and by columns."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from support.faults.planter import Fault, change, plant

from wpk.checks.reference.operators import REFERENCE_OPS
from wpk.dtypes import DType
from wpk.expression import Acc, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Pooling, PoolKind, Tensor
from wpk.schedules.pooling import PoolingTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE = PoolingTemplate()
H200 = find_target("h200")
N, C, H, W, P, Q = 3, 5, 9, 8, 5, 4
ATTRIBUTES = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "dilations": [1, 1]}


def tensor(dtype: DType, h: int, w: int, *, last: bool) -> Tensor:
    if last:
        return Tensor(dtype, (h * w * (C + 3), 1, w * (C + 3), C + 3), 3, min(16, 8 * dtype.bytes))
    return Tensor(dtype, (C * h * w, h * w, w, 1), alignment=dtype.bytes)


def places(
    dtype: DType = DType.FP32, *, last: bool = False, kind: PoolKind = PoolKind.PLACES
) -> Pooling:
    return Pooling(
        *(kind, Extent(2, "n"), C, H, W, P, Q, (3, 2), (2, 2), (1, 1), (1, 0), (1, 1), False),
        *(tensor(dtype, H, W, last=last), tensor(DType.INT64, P, Q, last=last), Epilogue()),
    )


def drawn(dtype: DType) -> Any:
    """With many equal numbers."""
    low = 0 if dtype is DType.UINT8 else -3
    return np.random.default_rng(4).integers(low, 4, (N, C, H, W)).astype(dtype.numpy)


def node(kind: PoolKind) -> onnx.NodeProto:
    by_columns = int(kind is PoolKind.COLUMN_PLACES)
    return onnx.helper.make_node(
        "MaxPool", ["x"], ["y", "i"], storage_order=by_columns, **ATTRIBUTES
    )


def in_onnx_runtime(kind: PoolKind, x: Any) -> Any:
    inputs = [onnx.helper.make_tensor_value_info("x", 1, x.shape)]
    outputs = [onnx.helper.make_tensor_value_info("i", 7, None)]
    graph = onnx.helper.make_graph([node(kind)], "g", inputs, outputs)
    opset = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


def computed(execution: Any, template: Any, problem: Pooling, x: Any, vector: int = 1) -> Any:
    schedule = VectorSchedule(vector, 64)
    memory = [execution.memory(problem.x, x)]
    return execution.run(template, problem, schedule, memory, (N, C, P, Q), {"n": N})


@pytest.mark.parametrize(
    ("dtype", "last", "kind", "vector"),
    [
        (DType.FP32, False, PoolKind.PLACES, 1),
        (DType.FP16, True, PoolKind.COLUMN_PLACES, 2),
        (DType.BF16, False, PoolKind.COLUMN_PLACES, 1),
        (DType.UINT8, True, PoolKind.PLACES, 4),
    ],
)
def test_agrees_with_onnx_runtime(
    dtype: DType, last: bool, kind: PoolKind, vector: int, checking_execution: Any
) -> None:
    x, problem = drawn(dtype), places(dtype, last=last, kind=kind)
    assert TEMPLATE.why_not(problem, H200) is None
    y = computed(checking_execution, TEMPLATE, problem, x, vector)
    np.testing.assert_array_equal(y, in_onnx_runtime(kind, x.astype(np.float32)))


def test_nan_is_the_largest_and_infinity_is_found(fast_execution: Any) -> None:
    x = drawn(DType.FP32)
    x[0, 0, 4:6, 3:5], x[1] = np.nan, -np.inf
    evaluator = ReferenceEvaluator(node(PoolKind.PLACES), new_ops=[*REFERENCE_OPS])
    _, right = evaluator.run(None, {"x": x})
    y = computed(fast_execution, TEMPLATE, places(), x)
    np.testing.assert_array_equal(y, right)
    assert (y[1] >= H * W * C).all()


def test_a_window_in_the_padding_has_no_place(fast_execution: Any) -> None:
    problem = replace(places(), pad=(3, 0), pad_end=(0, 1), dilation=(1, 1))
    y = computed(fast_execution, TEMPLATE, problem, drawn(DType.FP32))
    assert (y[:, :, 0] == -1).all()
    assert (y[:, :, 1:] >= 0).all()


def test_the_last_of_equals_is_found_out(fast_execution: Any) -> None:
    late = Fault(
        "the last of equals",
        change("first_of_equals", "values[v] > largest", "values[v] >= largest"),
    )
    x = drawn(DType.FP32)
    y = computed(fast_execution, plant(TEMPLATE, late), places(), x)
    assert (y != in_onnx_runtime(PoolKind.PLACES, x)).any()


def test_refuses_in_words() -> None:
    problem = places()
    narrow = replace(problem, y=replace(problem.y, dtype=DType.INT32))
    assert TEMPLATE.why_not(narrow, H200) == "places are int32; int64 is carried"
    tailed = replace(problem, epilogue=Epilogue(apply("Relu", Acc())))
    assert list(tailed.contradictions()) == [("epilogue", "computes with places")]
    assert problem.words().startswith("places of the max pool 3")
