"""RoiAlign: the reference beside ONNX Runtime, and a bound that holds what fp32 may give, and little else."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.checks.bounded import Ball, Call
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator

U = 2.0**-24
KINDS = [
    "",
    'mode = "max"',
    "sampling_ratio = 2, spatial_scale = 0.3",
    'coordinate_transformation_mode = "output_half_pixel"',
]


def node(attributes: str) -> onnx.NodeProto:
    more = f", {attributes}" if attributes else ""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 16]> g (float[2, 3, 9, 11] x, float[r, 4] rois, int64[r] i)'
        f" => (float[r, 3, 2, 3] y) {{ y = RoiAlign<output_height = 2, output_width = 3{more}>(x, rois, i) }}"
    )
    return model.graph.node[0]


def drawn(count: int = 30) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(11)
    rois = rng.uniform(-4, 12, (count, 4)).astype(np.float32)
    rois[:, 2:] = rois[:, :2] + rng.uniform(0.1, 9, (count, 2))  # ONNX Runtime counts no others
    return rng.standard_normal((2, 3, 9, 11)).astype(np.float32), rois, rng.integers(0, 2, count)


def bounded(attributes: str, x: Any, rois: Any, images: Any) -> tuple[Any, Any]:
    """The float64 result, and the bound of its error."""
    evaluate = NodeEvaluator(node(attributes), {"": 16})
    given = [Ball(np.asarray(x, np.float64)), Ball(np.asarray(rois, np.float64)), Ball(images)]
    y = evaluate([each.value for each in given])
    error = bound_error(Call(evaluate, given, y, U))
    assert error is not None
    return y[0], error


def in_onnx_runtime(attributes: str, x: Any, rois: Any, images: Any) -> Any:
    made = onnx.helper.make_graph(
        [node(attributes)],
        "g",
        [
            onnx.helper.make_tensor_value_info("x", 1, x.shape),
            onnx.helper.make_tensor_value_info("rois", 1, rois.shape),
            onnx.helper.make_tensor_value_info("i", 7, images.shape),
        ],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
    )
    opsets = [onnx.helper.make_opsetid("", 16)]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = onnx.helper.make_model(made, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"x": x, "rois": rois, "i": images})[0]


@pytest.mark.parametrize("attributes", KINDS)
def test_onnx_runtime_stays_within_the_bound_which_is_narrow(attributes: str) -> None:
    x, rois, images = drawn()
    y, error = bounded(attributes, x, rois, images)
    found = in_onnx_runtime(attributes, x, rois, images)
    assert (np.abs(found - y) <= error + U * np.abs(y)).all()
    assert error.max() < 1e-3
    assert np.median(error) < 1e-4


@pytest.mark.parametrize("attributes", KINDS)
def test_regions_that_lie_elsewhere_do_not(attributes: str) -> None:
    x, rois, images = drawn()
    y, error = bounded(attributes, x, rois, images)
    found = in_onnx_runtime(attributes, x, rois + np.float32(0.02), images)
    touched = np.abs(y) > 0
    assert (np.abs(found - y) > error)[touched].mean() > 0.5


def test_a_window_of_a_whole_number_of_pixels_may_have_either_grid() -> None:
    x, _, _ = drawn()
    whole, apart = np.array([[1, 1, 7, 5]], np.float32), np.array([[1, 1, 7.4, 5.4]], np.float32)
    errors = [bounded("", x, rois, np.array([0]))[1].max() for rois in (whole, apart)]
    assert errors[0] > 0.05 > 1e-4 > errors[1]
