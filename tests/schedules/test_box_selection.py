"""Boxes that overlap none of a higher score: ONNX Runtime's selections, in their order."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.problems import BoxSelection, Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

SELECTION = TEMPLATE_OF["box_selection"]
H200 = find_target("h200")
BATCH, CLASSES, COUNT, MOST = 2, 3, 77, 9


def selection(count: int = COUNT, most: int = MOST, **changes: Any) -> BoxSelection:
    """Of contiguous boxes and scores."""
    problem = BoxSelection(
        *(False, 0.25, 0.3, Extent(BATCH), CLASSES, count, most),
        *(Tensor(DType.FP32, (4 * count, 4, 1)), Tensor(DType.FP32, (CLASSES * count, count, 1))),
        Tensor(DType.INT64, (CLASSES * most * 3, most * 3, 3, 1), alignment=8),
    )
    return replace(problem, **changes)


def drawn(count: int = COUNT) -> tuple[Any, Any]:
    """Boxes whose corners come in any order, and scores many of which are equal."""
    rng = np.random.default_rng(count)
    boxes = rng.uniform(0, 6, (BATCH, count, 4)).astype(np.float32)
    boxes[:, 1::7] = boxes[:, ::7][:, : boxes[:, 1::7].shape[1]]  # some twice
    scores = rng.integers(0, 16, (BATCH, CLASSES, count)).astype(np.float32) / 16
    return boxes, scores


def in_onnx_runtime(problem: BoxSelection, boxes: Any, scores: Any) -> Any:
    """Its rows, each class's filled up with -1."""
    inputs = {
        "b": boxes,
        "s": scores,
        "m": np.array([problem.most]),
        "o": np.array([problem.overlap], np.float32),
    }
    if problem.threshold is not None:
        inputs["t"] = np.array([problem.threshold], np.float32)
    node = onnx.helper.make_node(
        "NonMaxSuppression", list(inputs), ["y"], center_point_box=int(problem.centred)
    )
    ports = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape
        )
        for name, each in inputs.items()
    ]
    graph = onnx.helper.make_graph(
        [node], "g", ports, [onnx.helper.make_tensor_value_info("y", 7, None)]
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    y = np.full((BATCH, CLASSES, problem.most, 3), -1)
    for image, kind in np.ndindex(BATCH, CLASSES):
        rows = found[(found[:, 0] == image) & (found[:, 1] == kind)]
        y[image, kind, : len(rows)] = rows
    return y


def computed(
    execution: Any, problem: BoxSelection, threads: int, given: Any, template: Any = SELECTION
) -> Any:
    made = SELECTION.schedule_type(threads)
    assert SELECTION.why_illegal(problem, made, H200) is None
    memory = [each.reshape(-1) for each in given]
    shape = (BATCH, CLASSES, problem.most, 3)
    return execution.run(template, problem, made, memory, shape)


@pytest.mark.parametrize(
    ("centred", "threshold", "overlap", "threads"),
    [
        (False, 0.3, 0.25, 64),
        (True, None, 0.1, 32),
        (False, 0.99, 0.5, 128),
        (True, -1.0, 0.0, 64),
    ],
)
def test_agrees_with_onnx_runtime(
    centred: bool, threshold: float | None, overlap: float, threads: int, checking_execution: Any
) -> None:
    problem = selection(centred=centred, threshold=threshold, overlap=overlap)
    assert SELECTION.why_not(problem, H200) is None
    given = drawn()
    y = computed(checking_execution, problem, threads, given)
    np.testing.assert_array_equal(y, in_onnx_runtime(problem, *given))


def test_as_many_boxes_as_a_thread_remembers(fast_execution: Any) -> None:
    problem, given = selection(2048, 20), drawn(2048)
    assert "64 of the 2049 boxes" in str(
        SELECTION.why_illegal(selection(2049), SELECTION.schedule_type(32), H200)
    )
    y = computed(fast_execution, problem, 32, given)
    np.testing.assert_array_equal(y, in_onnx_runtime(problem, *given))


def test_scores_that_are_none_are_not_selected_and_infinite_ones_are(fast_execution: Any) -> None:
    problem = selection(threshold=None)
    boxes, scores = drawn()
    scores[:, :, 3], scores[:, :, 40] = np.nan, np.inf
    boxes[0, 7] = np.nan  # overlaps nothing
    y = computed(fast_execution, problem, 64, (boxes, scores))
    assert (y[:, :, 0, 2] == 40).all()
    assert (y[..., 2] != 3).all()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("the higher of equals", change("lower_first", "box < other", "box > other")),
        Fault("what is on the threshold", change("above_threshold", "score > threshold", "score >= threshold")),
        Fault("the selected one stays", change("forgotten", "box == found ||", "")),
        Fault("halves are compared too early", drop("halves_written")),
        Fault("the best is read too early", drop("best_known")),
    ],
    ids=lambda fault: fault.name.replace(" ", "-"),
)  # fmt: skip
def test_faults_are_found(fault: Fault, checking_execution: Any) -> None:
    problem = selection(threshold=0.5)
    boxes, scores = drawn()
    boxes[:, 5] = 1.0  # a box without an area overlaps not even itself
    scores[:, :, 5], scores[:, 0, 6:] = 0.95, 0.5
    template = plant(SELECTION, fault)
    try:
        y = computed(checking_execution, problem, 64, (boxes, scores), template)
    except LaunchError:
        return
    assert (y != in_onnx_runtime(problem, boxes, scores)).any()


def test_refuses_in_words() -> None:
    problem = selection()
    assert problem.words() == "select 9 of 77 boxes for 3 classes batch 2"
    integers = replace(problem, scores=replace(problem.scores, dtype=DType.INT32))
    assert "scores of int32" in str(SELECTION.why_not(integers, H200))
    narrow = replace(problem, y=replace(problem.y, dtype=DType.INT32))
    assert "are int32; int64 is carried" in str(SELECTION.why_not(narrow, H200))
    assert list(selection(77, 78).contradictions()) == [("most", "78 of 77 boxes")]
    assert list(selection(2**16 + 1).contradictions()) == [
        ("count", "65537 boxes, at most 65536 are carried")
    ]
