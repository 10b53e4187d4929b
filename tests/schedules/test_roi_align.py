"""RoiAlign: every mode against ONNX Runtime, in all layouts and types, with regions of every kind."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.faults.planter import Fault, change, plant

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, RoiAlign, RoiMode, Tensor
from wpk.problems.signs import TIMES
from wpk.schedules.roi_align import RoiAlignTemplate
from wpk.schedules.streaming import VectorSchedule
from wpk.targets.registry import find_target

TEMPLATE = RoiAlignTemplate()
H200 = find_target("h200")
C, H, W, P, Q = 5, 9, 11, 2, 3
ROIS = np.array(
    [
        *([1, 1, 8, 7], [-5, -3, 4, 20], [3, 3, 2, 2], [0.3, 0.2, 0.4, 0.5]),
        *([10.5, 8.5, 30, 30], [-900, -700, 5000, 800], [40, 2, 50, 5], [2.2, 4.1, 9.7, 6.3]),
    ],
    np.float32,
)  # inside, across edges, inside out, tiny, mostly outside, huge, outside, and an odd one
IMAGES = np.array([0, 1, 1, 0, 1, 0, 1, 0])


def channels_last(dtype: DType, h: int, w: int, padding: int) -> Tensor:
    pixel = C + padding
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, 8)


def regions(dtype: DType = DType.FP32, **changes: Any) -> RoiAlign:
    """Eight regions of two images, or a free number of them."""
    problem = RoiAlign(
        *(RoiMode.AVERAGE, True, None, 0.75, Extent(4, "n"), 2, C, H, W, P, Q),
        *(channels_last(dtype, H, W, 3), Tensor(DType.FP32, (4, 1))),
        *(Tensor(DType.INT64, (1,), alignment=8), channels_last(dtype, P, Q, 3), Epilogue()),
    )
    return replace(problem, **changes)


def in_onnx_runtime(problem: RoiAlign, x: Any, rois: Any, images: Any) -> Any:
    """Its answer in fp32."""
    half = "half_pixel" if problem.half_pixel else "output_half_pixel"
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 16]> g (float[a, b, c, d] x, float[r, 4] rois, int64[r] i)'
        f' => (float[r, b, e, f] y) {{ y = RoiAlign <mode = "{problem.mode}",'
        f' coordinate_transformation_mode = "{half}", output_height = {P}, output_width = {Q},'
        f" sampling_ratio = {problem.sampling or 0}, spatial_scale = {problem.scale}> (x, rois, i) }}"
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {"x": x.astype(np.float32), "rois": rois, "i": images}
    return np.asarray(session.run(None, feeds)[0], np.float64)


def computed(execution: Any, template: Any, problem: RoiAlign, x: Any, vector: int) -> Any:
    memory = [execution.memory(problem.x, x), ROIS.reshape(-1), IMAGES]
    schedule = VectorSchedule(vector, 64)
    assert template.why_illegal(problem, schedule, H200) is None
    return execution.run(template, problem, schedule, memory, (8, C, P, Q), {"n": 8})


def image(dtype: DType) -> Any:
    return np.random.default_rng(3).standard_normal((2, C, H, W)).astype(dtype.numpy)


@pytest.mark.parametrize("mode", RoiMode)
@pytest.mark.parametrize("half_pixel", [True, False])
@pytest.mark.parametrize("sampling", [None, 1, 3])
def test_agrees_with_onnx_runtime(
    mode: RoiMode, half_pixel: bool, sampling: int | None, fast_execution: Any
) -> None:
    problem = regions(mode=mode, half_pixel=half_pixel, sampling=sampling)
    x = image(DType.FP32)
    y = computed(fast_execution, TEMPLATE, problem, x, 2)
    right = in_onnx_runtime(problem, x, ROIS, IMAGES)
    # Places of up to 4000 pixels are fp32; neighbouring pixels differ by up to about 6.
    tolerance = np.where(np.arange(8) == 5, 4000, 12) * 4 * 2.0**-23 * 6
    assert (np.abs(y - right) <= tolerance[:, None, None, None]).all()


@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16])
def test_images_in_16_bits_channels_first_with_an_epilogue(
    dtype: DType, checking_execution: Any
) -> None:
    bias = Epilogue(
        apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(DType.FP32, (0, 1, 0, 0)),)
    )
    x_tensor = Tensor(dtype, (C * H * W, H * W, W, 1), alignment=2)
    y_tensor = Tensor(dtype, (C * P * (Q + 1), P * (Q + 1), Q + 1, 1), padding=1, alignment=2)
    problem = regions(x=x_tensor, y=y_tensor, epilogue=bias)
    x, b = image(dtype), np.linspace(-0.5, 0.5, C, dtype=np.float32)
    memory = [checking_execution.memory(x_tensor, x), ROIS.reshape(-1), IMAGES, b]
    y = checking_execution.run(
        TEMPLATE, problem, VectorSchedule(1, 64), memory, (8, C, P, Q), {"n": 8}
    )
    right = np.maximum(in_onnx_runtime(problem, x, ROIS, IMAGES) + b[:, None, None], 0)
    np.testing.assert_allclose(y, right, rtol=dtype.unit_roundoff * 1.01, atol=1e-2)
    small = [0, 2, 3, 7]  # whose places are exact to a few parts in a million
    np.testing.assert_allclose(y[small], right[small], rtol=dtype.unit_roundoff * 1.01, atol=1e-4)


def test_what_is_not_finite_goes_where_windows_touch_it(fast_execution: Any) -> None:
    problem, x = regions(), image(DType.FP32)
    x[0, 0, 4, 4], x[1, 1, 6, 6] = np.nan, np.inf
    y = computed(fast_execution, TEMPLATE, problem, x, 1)
    with np.errstate(invalid="ignore"):
        right = in_onnx_runtime(problem, x, ROIS, IMAGES)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(right))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(right))


def test_a_region_of_no_image_or_without_an_end_is_nan(fast_execution: Any) -> None:
    problem, rois, images = regions(), ROIS.copy(), IMAGES.copy()
    images[0], images[1], rois[2, 3], rois[3, 0] = 2, -1, np.inf, np.nan
    memory = [fast_execution.memory(problem.x, image(DType.FP32)), rois.reshape(-1), images]
    y = fast_execution.run(TEMPLATE, problem, VectorSchedule(1, 64), memory, (8, C, P, Q), {"n": 8})
    assert np.isnan(y[:4]).all()
    assert np.isfinite(y[4:]).all()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("reads images that are not", change("image_exists", "image < Problem::images &&", "")),
        Fault("samples outside count", change("inside_only", "row.inside &&", "")),
        Fault("samples lie at their beginnings", change("row_sampled", "rows.place(p, i)", "rows.place(p, 0)")),
    ],
    ids=lambda fault: fault.name.replace(" ", "-"),
)  # fmt: skip
def test_faults_are_found(fault: Fault, checking_execution: Any) -> None:
    problem, x, images = regions(), image(DType.FP32), IMAGES.copy()
    faulty = plant(TEMPLATE, fault)
    right = computed(checking_execution, TEMPLATE, problem, x, 1)
    images[0] = 3000
    memory = [checking_execution.memory(problem.x, x), ROIS.reshape(-1), images]
    schedule, shape = VectorSchedule(1, 64), (8, C, P, Q)
    try:
        y = checking_execution.run(faulty, problem, schedule, memory, shape, {"n": 8})
    except LaunchError:
        return
    assert not np.allclose(y[1:], right[1:])


def test_refuses_in_words() -> None:
    problem = regions()
    assert TEMPLATE.why_not(problem, H200) is None
    assert problem.words().replace(TIMES, "x") == "n regions (avg) 5ch 9x11 → 2x3"
    integers = replace(problem, x=replace(problem.x, dtype=DType.UINT8))
    assert TEMPLATE.why_not(integers, H200) == "regions of fp32 in uint8"
    strange = replace(problem, image=Tensor(DType.INT16, (1,)))
    assert TEMPLATE.why_not(strange, H200) == "indices are int16; int32 and int64 are carried"
