"""Resize: every mode and tile against ONNX Runtime, exact moves, refusals, faults, machine code."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.faults.planter import Fault, change, plant
from support.machine_code.disassembly import listing

from wpk.build import load_nvrtc
from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Resize, Tensor
from wpk.problems.movement import NearestMode, ResizeCoordinates, ResizeMode
from wpk.schedules.resize import ResizeSchedule, ResizeTemplate
from wpk.schedules.tiles.resampled import ResampledAxis
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


def small(
    coordinates: ResizeCoordinates,
    nearest: NearestMode | None,
    scale: tuple[float, float],
    *,
    first: bool = False,
) -> Resize:
    """5 channels of 6 x 7 pixels, channels last, to channels last or first; rows of either are padded."""
    mode = ResizeMode.LINEAR if nearest is None else ResizeMode.NEAREST
    problem = problem_of(mode, coordinates, nearest or NearestMode.FLOOR, scale)
    if not first:
        return problem
    row = -(-problem.q // 4) * 4
    plane = problem.p * row
    y = Tensor(DType.FP32, (5 * plane, plane, row, 1), row - problem.q, 16)
    return replace(problem, y=y)


def assert_resized(execution: Any, problem: Resize, schedule: ResizeSchedule) -> None:
    """Two images agree with ONNX Runtime: exactly where elements are moved."""
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    x = np.random.default_rng(0).standard_normal((2, 5, 6, 7)).astype(np.float32)
    expected = resized(x, problem.scale, problem)
    memory = [execution.memory(problem.x, x)]
    y = execution.run(TEMPLATE, problem, schedule, memory, expected.shape, {"n": 2})
    if problem.mode is ResizeMode.NEAREST:
        np.testing.assert_array_equal(y, expected)
    else:
        np.testing.assert_allclose(y, expected, atol=2 * 7 * 2.0**-23 * 6)


WHOLE, ONE, NEITHER = "begins at a sample", "lies between two samples", "is like no other"
TILES: dict[tuple[str, str], tuple[tuple[float, float], tuple[int, int]]] = {
    (WHOLE, WHOLE): ((2.0, 4.0), (4, 4)),
    (WHOLE, ONE): ((3.0, 8.0), (3, 2)),
    (ONE, WHOLE): ((4.0, 2.0), (2, 8)),
    (ONE, ONE): ((8.0, 6.0), (4, 1)),
    (NEITHER, WHOLE): ((1.5, 2.0), (2, 2)),
    (WHOLE, NEITHER): ((1.0, 3.0), (2, 2)),
    (NEITHER, NEITHER): ((0.7, 2.6), (2, 4)),
}


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize("kinds", TILES, ids=" x ".join)
def test_tiles_of_every_kind(kinds: tuple[str, str], first: bool, execution: Any) -> None:
    """Sizes that tiles do not divide, two images, paddings behind rows and pixels."""
    scale, (rows, pixels) = TILES[kinds]
    problem = small(ResizeCoordinates.HALF_PIXEL, None, scale, first=first)
    for axis, count in enumerate((rows, pixels)):
        along = ResampledAxis.of(problem, axis)
        whole = along.is_known(count) and count % along.ratio == 0
        assert kinds[axis] == (WHOLE if whole else ONE if along.is_known(count) else NEITHER)
    schedule = ResizeSchedule(1 if first else 2, 64, pixels=pixels, rows=rows)
    assert_resized(execution, problem, schedule)


@pytest.mark.parametrize("scale", [(2.0, 4.0), (8.0, 3.0), (1.0, 6.0), (1.4, 2.5)], ids=str)
@pytest.mark.parametrize("coordinates", ResizeCoordinates)
@pytest.mark.parametrize("nearest", [None, *NearestMode])
def test_tiles_in_every_mode(
    coordinates: ResizeCoordinates,
    nearest: NearestMode | None,
    scale: tuple[float, float],
    fast_execution: Any,
) -> None:
    problem = small(coordinates, nearest, scale, first=scale[0] > 4)
    vector = 1 if scale[0] > 4 else 2
    assert_resized(fast_execution, problem, ResizeSchedule(vector, 64, pixels=4, rows=2))


@pytest.mark.parametrize("coordinates", ResizeCoordinates)
def test_one_output_an_axis(coordinates: ResizeCoordinates, fast_execution: Any) -> None:
    """PyTorch's half pixels and aligned corners see the first sample there."""
    scale = (1 / 6, 3.0)
    problem = small(coordinates, None, scale)
    assert_resized(fast_execution, problem, ResizeSchedule(2, 64, pixels=3))


FAULTS = {
    "a run reads one sample further": change("samples_end", "start + s", "start + s + 1"),
    "samples before the first are read": change("samples_end", "maxOf(start + s, 0)", "start + s"),
    "rows beyond the last are written": change("rows_end", ">= Problem::p", "> Problem::p"),
    "columns beyond the last are written": change("columns_end", "j < run.valid", "true"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, checking_execution: Any) -> None:
    problem = small(ResizeCoordinates.HALF_PIXEL, None, (2.5, 2.0))
    faulty, x = plant(TEMPLATE, Fault(name, FAULTS[name])), np.ones((2, 5, 6, 7), np.float32)
    x += np.arange(7, dtype=np.float32)
    expected = resized(x, problem.scale, problem)
    schedule = ResizeSchedule(2, 64, pixels=4, rows=4)
    memory = [checking_execution.memory(problem.x, x)]
    try:
        y = checking_execution.run(faulty, problem, schedule, memory, expected.shape, {"n": 2})
    except LaunchError:
        return
    assert not np.allclose(y, expected, atol=1e-4)


def large(c: int, size: int, ratio: int, *, first: bool, mode: ResizeMode) -> Resize:
    """An image in fp16, channels last, to channels last, or to channels first as a network's output is."""
    row, outputs = -(-c // 8) * 8, size * ratio
    x = Tensor(DType.FP16, (size * size * row, 1, size * row, row), row - c)
    y = Tensor(DType.FP16, (outputs * outputs * row, 1, outputs * row, row), row - c)
    if first:
        y = Tensor(DType.FP32, (c * outputs * outputs, outputs * outputs, outputs, 1))
    coordinates = ResizeCoordinates.PYTORCH_HALF_PIXEL
    if mode is ResizeMode.NEAREST:
        coordinates = ResizeCoordinates.ASYMMETRIC
    sizes = (c, size, size, outputs, outputs, (float(ratio), float(ratio)))
    return Resize(mode, coordinates, NearestMode.FLOOR, Extent(1), *sizes, x, y)


LARGE = {
    "21 channels, eight times as large": (
        large(21, 64, 8, first=True, mode=ResizeMode.LINEAR),
        5.0,
    ),
    "256 channels, twice as large": (large(256, 64, 2, first=False, mode=ResizeMode.LINEAR), 8.0),
    "256 channels moved": (large(256, 64, 2, first=False, mode=ResizeMode.NEAREST), 1.5),
    "256 channels, four times as large": (
        large(256, 32, 4, first=False, mode=ResizeMode.LINEAR),
        6.5,
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_an_output_takes_few_instructions_and_the_model_knows_them(
    name: str, tmp_path: Path
) -> None:
    """Schedules that the model thinks the least of, in instructions an output."""
    problem, most = LARGE[name]
    columns = TEMPLATE.space(problem, H200)[1]
    work = TEMPLATE.work(problem, columns, H200)
    modelled = work.thread_slots + work.thread_flops / 2
    outputs = columns["vector"] * columns["pixels"] * columns["rows"]
    best = int(np.argmin(modelled / outputs))
    (source,) = TEMPLATE.instantiate(problem, TEMPLATE.schedule(columns, best))
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert abs(kernel.resources.registers - work.registers[best]) <= 32
    text = listing(kernel.cubin, tmp_path)
    instructions = len(re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?!NOP)", text, re.MULTILINE))
    assert instructions / outputs[best] <= most
    assert 0.75 <= instructions / modelled[best] <= 1.25


@pytest.mark.parametrize("name", LARGE)
def test_the_model_counts_what_each_block_loads(name: str) -> None:
    """Blocks do not share L1: all of them load more than the input, and the more the smaller they are."""
    problem, _ = LARGE[name]
    columns = {
        "vector": np.full(2, 1 if problem.y.dtype is DType.FP32 else 8),
        "threads": np.array([64, 512]),
        "early": np.zeros(2, int),
        "pixels": np.ones(2, int),
        "rows": np.ones(2, int),
    }
    work = TEMPLATE.work(problem, columns, H200)
    loaded = work.blocks * work.block_transactions * H200.transaction_bytes
    size = problem.c * problem.h * problem.w * 2
    if problem.mode is ResizeMode.LINEAR:  # neighbours read the same samples
        assert loaded[0] > loaded[1] > size
    else:
        assert loaded[0] == loaded[1] >= size


def test_the_model_knows_what_one_output_a_thread_takes() -> None:
    """52 us, measured on an H100: 43008 blocks of an early launch. The first choice has 40 times fewer."""
    problem, _ = LARGE["21 channels, eight times as large"]
    h100 = find_target("h100")
    before = ResizeSchedule(1, 128, early=1).columns()
    columns = TEMPLATE.space(problem, h100)[1]
    limit = bound(problem, h100)
    (alone,) = estimate(TEMPLATE.work(problem, before, h100), limit, h100)
    assert 0.9 <= alone / 52e-6 <= 1.1
    assert estimate(TEMPLATE.work(problem, columns, h100), limit, h100).min() < 0.2 * alone
