"""Depthwise convolution: numbers at odd shapes in float64, packing, refusals."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import convolution
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.disassembly import listing

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules import packings
from wpk.schedules.depthwise import DepthwiseSchedule, DepthwiseTemplate
from wpk.search.models.shortlist import shortlist
from wpk.targets.registry import find_target

TEMPLATE = DepthwiseTemplate()
H200 = find_target("h200")


def channels_first(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    row = w + padding
    return Tensor(dtype, (c * h * row, h * row, row, 1), padding, dtype.bytes)


def depthwise(
    c: int = 12, size: tuple[int, int] = (7, 9), multiplier: int = 1, **given: Any
) -> Convolution:
    plain = {"n": Extent(2, "n"), "precision": Precision.FP32, "pads": 1, **given}
    return convolution(c, c * multiplier, size, groups=c, **plain)


CASES: dict[str, tuple[dict[str, Any], DepthwiseSchedule]] = {
    "3x3": ({}, DepthwiseSchedule(4, 4, 64)),
    "58 padded channels": ({"c": 58, "padding": (6, 6)}, DepthwiseSchedule(4, 2, 64)),
    "57 channels": ({"c": 57}, DepthwiseSchedule(1, 3, 32)),
    "5x5 stride 2": (
        {"filter": (5, 5), "stride": (2, 2), "pads": (2, 2, 2, 2)},
        DepthwiseSchedule(2, 2, 64),
    ),
    "dilated, asymmetric": (
        {"dilation": (2, 3), "pads": (2, 4, 1, 0), "stride": (1, 2)},
        DepthwiseSchedule(4, 3, 64),
    ),
    "multiplier 3": ({"c": 5, "multiplier": 3, "padding": (0, 1)}, DepthwiseSchedule(4, 2, 64)),
    "transposed": (
        {"transposed": True, "stride": (2, 2), "pads": (1, 1, 0, 0)},
        DepthwiseSchedule(4, 2, 64),
    ),
    "transposed, multiplier 2": (
        {"transposed": True, "multiplier": 2, "stride": (2, 1), "dilation": (1, 2)},
        DepthwiseSchedule(2, 1, 64),
    ),
    "channels first": ({"layout": channels_first}, DepthwiseSchedule(1, 4, 64)),
    "channels first, padded rows": (
        {"layout": channels_first, "padding": (0, 3)},
        DepthwiseSchedule(1, 4, 64),
    ),
    "one-dimensional": (
        {"size": (1, 21), "filter": (1, 5), "pads": (0, 2, 0, 2)},
        DepthwiseSchedule(4, 8, 32),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_integers_are_exact(
    case: str, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = CASES[case]
    problem = depthwise(**given)
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(fast_execution, TEMPLATE, problem, schedule, batch=3, integers=True)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16, Precision.TF32])
def test_agrees_with_float64(
    precision: Precision, execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = depthwise(c=29, precision=precision, padding=(3, 3), stride=(2, 1))
    dtype = problem.y.dtype
    residual = replace(problem.y, padding=0)
    bias = Tensor(DType.FP32, (0, 1, 0, 0))
    tail = apply("Min", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)), Scalar(1.5))
    problem = replace(problem, epilogue=Epilogue(tail, (bias, residual)))
    schedule = DepthwiseSchedule(vector=problem.y.vector(1), pixels=2, threads=96)
    assert dtype.bytes * schedule.vector == 16
    check_convolution(execution, TEMPLATE, problem, schedule)


TILES: dict[str, tuple[dict[str, Any], DepthwiseSchedule]] = {
    "3x3": ({"c": 16, "size": (9, 11)}, DepthwiseSchedule(4, 2, 128, rows=4)),
    "whole tiles": ({"c": 8, "size": (8, 12)}, DepthwiseSchedule(4, 3, 128, rows=4)),
    "vectors of 8": (
        {"c": 16, "precision": Precision.FP16, "filter": (3, 1), "pads": (1, 0, 1, 0)},
        DepthwiseSchedule(8, 2, 128, rows=3),
    ),
    "more rows than there are": ({"size": (3, 5)}, DepthwiseSchedule(2, 4, 128, rows=7)),
    "stride 2": (
        {"size": (15, 13), "stride": (2, 2), "precision": Precision.BF16},
        DepthwiseSchedule(4, 2, 128, rows=4),
    ),
    "5x5 stride 2, no padding above": (
        {"size": (17, 9), "filter": (5, 5), "stride": (2, 2), "pads": (0, 2, 3, 1)},
        DepthwiseSchedule(2, 2, 128, rows=3),
    ),
    "stride 3": ({"size": (17, 11), "stride": (3, 3)}, DepthwiseSchedule(2, 3, 128, rows=3)),
    "dilated": (
        {"size": (13, 12), "dilation": (2, 2), "pads": (2, 2, 2, 2)},
        DepthwiseSchedule(2, 3, 128, rows=4),
    ),
    "dilated, asymmetric": (
        {"size": (12, 14), "dilation": (2, 3), "pads": (2, 4, 1, 0), "stride": (1, 2)},
        DepthwiseSchedule(1, 3, 128, rows=7),
    ),
    "wide padding": ({"size": (4, 3), "pads": (4, 5, 6, 5)}, DepthwiseSchedule(2, 4, 128, rows=3)),
    "57 channels": ({"c": 57}, DepthwiseSchedule(1, 4, 128, rows=4)),
    "58 padded channels": (
        {"c": 58, "padding": (6, 6), "precision": Precision.FP16, "filter": (1, 3)},
        DepthwiseSchedule(8, 2, 128, rows=2),
    ),
    "multiplier 3": (
        {"c": 5, "multiplier": 3, "padding": (0, 1)},
        DepthwiseSchedule(4, 2, 128, rows=4),
    ),
    "channels first": ({"layout": channels_first}, DepthwiseSchedule(1, 4, 128, rows=4)),
    "channels first, padded rows": (
        {"layout": channels_first, "padding": (0, 3)},
        DepthwiseSchedule(1, 4, 128, rows=3),
    ),
    "one tap": ({"filter": (1, 1), "pads": (0,) * 4}, DepthwiseSchedule(4, 2, 128, rows=3)),
}


def _with_operands(problem: Convolution) -> Convolution:
    """Bias, a factor of each image, a residual, an activation."""
    bias = Tensor(DType.FP32, (0, 1, 0, 0), alignment=4)
    factor = Tensor(problem.y.dtype, (problem.k, 1, 0, 0), alignment=problem.y.dtype.bytes)
    biased = apply("Add", apply("Mul", Acc(), Operand(1)), Operand(0))
    tail = apply("Min", apply("Add", biased, Operand(2)), Scalar(1.5))
    return replace(problem, epilogue=Epilogue(tail, (bias, factor, problem.y)))


@pytest.mark.parametrize("case", TILES)
def test_tiles_of_rows_are_exact(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = TILES[case]
    problem = depthwise(**given)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, schedule, batch=3, integers=True)


@pytest.mark.parametrize("case", TILES)
def test_tiles_of_rows_agree_with_float64(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = TILES[case]
    problem = _with_operands(depthwise(**given))
    assert TEMPLATE.why_not(problem, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, replace(schedule, early=1))


FAULTS = [
    Fault("a row above the image", change("above", "at >= Pad ||", "true ||")),
    Fault("a row below the image", change("below", "input(first, at) < Inputs", "true")),
    Fault(
        "a row taken for its neighbour", change("row_loaded", "next % slots", "(next + 1) % slots")
    ),
    Fault("a row stored too early", change("row_completed", "step - (", "step + 1 - (")),
    Fault("rows that are none", change("is_output", "Outputs % Count == 0 ||", "true ||")),
    Fault("zeros forgotten", drop("zeros")),
    Fault("the first pixel's residual", change("pixel_operands", "q + pixel", "q")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = TILES["3x3"]
    problem = _with_operands(depthwise(**given))
    with pytest.raises((AssertionError, EmulatorError)):
        check_convolution(checking_execution, plant(TEMPLATE, fault), problem, schedule)


def mobile(n: int = 64, stride: int = 1, precision: Precision = Precision.FP16) -> Convolution:
    """A layer of MobileNetV2."""
    plain = depthwise(c=144, size=(56, 56), stride=(stride, stride), precision=precision)
    tail = apply("Relu", apply("Add", Acc(), Operand(0)))
    bias = Tensor(DType.FP32, (0, 1, 0, 0))
    return replace(plain, n=Extent(n, "n"), epilogue=Epilogue(tail, (bias,)))


def test_work_falls_with_rows() -> None:
    problem = mobile()
    columns = {
        name: np.array([value] * 4) for name, value in DepthwiseSchedule(2, 4, 256).parameters()
    }
    work = TEMPLATE.work(problem, columns | {"rows": np.array([1, 2, 4, 7])}, H200)
    assert (np.diff(work.blocks * work.block_transactions) < 0).all()
    assert (np.diff(work.blocks * work.threads * work.thread_slots) < 0).all()
    assert (np.diff(work.blocks * work.steps) < 0).all()
    assert np.ptp(work.blocks * work.block_flops) == 0


@pytest.mark.parametrize("n", [1, 64])
def test_rows_are_tried_where_the_gpu_is_full(n: int) -> None:
    problem = mobile(n)
    columns = TEMPLATE.space(problem, H200)[1]
    assert len(columns["rows"]) <= 160
    seconds = estimate(TEMPLATE.work(problem, columns, H200), bound(problem, H200), H200)
    assert set(columns["rows"]) == ({1} if n == 1 else {1, 4, 7})
    assert (columns["rows"][seconds.argmin()] > 1) == (n > 1)


@pytest.mark.parametrize(
    ("schedule", "loads"),
    [(DepthwiseSchedule(4, 4, 256, 1, 7), 54), (DepthwiseSchedule(4, 4, 256, 1), 18)],
    ids=["seven rows", "one row"],
)
def test_machine_code_loads_an_input_once_and_none_waits_for_another(
    schedule: DepthwiseSchedule, loads: int, tmp_path: Path
) -> None:
    (source,) = TEMPLATE.instantiate(mobile(), schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert kernel.resources.registers <= 128
    text = listing(kernel.cubin, tmp_path)
    code = [line for line in text.splitlines() if "LDG." in line or "BSSY" in line]
    first = next(place for place, line in enumerate(code) if "LDG." in line)
    assert first <= 1  # in front of them threads ask for the filter
    # And weights, and the bias; no branch that threads leave.
    assert len(code[first:]) == loads + 9 + 1


def test_single_rows_and_tiles_are_both_kept_where_a_gpu_is_full() -> None:
    """The models prefer tiles, and were not held against a measurement yet."""
    problem = mobile(n=64)
    kept = shortlist(problem, TEMPLATE, H200, bound(problem, H200)).ranked
    several = {scored.schedule.rows > 1 for scored in kept}
    assert several == {False, True}


@pytest.mark.parametrize(
    ("changes", "schedule", "reason"),
    [
        ({"precision": Precision.FP16}, DepthwiseSchedule(8, 2, 128, rows=4), "120 words, 1152"),
        ({"precision": Precision.FP16}, DepthwiseSchedule(1, 2, 128, rows=4), "of whole words"),
        ({"filter": (7, 7)}, DepthwiseSchedule(1, 4, 128, rows=7), "1152 products"),
        ({"stride": (2, 2)}, DepthwiseSchedule(1, 8, 128, rows=7), "160 loads"),
        ({"transposed": True}, DepthwiseSchedule(1, 2, 128, rows=2), "that is not transposed"),
    ],
)
def test_refuses_tiles_that_registers_do_not_hold(
    changes: dict[str, Any], schedule: DepthwiseSchedule, reason: str
) -> None:
    problem = depthwise(c=64, **changes)
    assert reason in str(TEMPLATE.why_illegal(problem, schedule, H200))
    (source,) = TEMPLATE.instantiate(problem, schedule)
    with pytest.raises(CompileError, match="holds the filter"):
        load_nvrtc().compile(source, H200.arch)


def test_refuses_small_blocks_of_several_rows() -> None:
    reason = TEMPLATE.why_illegal(mobile(), DepthwiseSchedule(4, 1, 256, rows=4), H200)
    assert "several rows go with 2 columns and 128 threads or more" in str(reason)
    assert TEMPLATE.why_illegal(mobile(), DepthwiseSchedule(4, 2, 64, rows=4), H200)


@pytest.mark.parametrize("case", ["57 channels", "multiplier 3", "transposed, multiplier 2"])
def test_packing_has_an_inverse(case: str) -> None:
    problem = depthwise(**CASES[case][0])
    per = problem.k // problem.c
    shape = (
        (problem.c, per, *problem.filter) if problem.transposed else (problem.k, 1, *problem.filter)
    )
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    packed = packings.pack("depthwise_rsk", weight, problem)
    assert packed.shape[:2] == problem.filter
    assert packed.strides[1] % 16 == 0
    assert not packed[..., problem.k :].any()
    np.testing.assert_array_equal(packings.unpack("depthwise_rsk", packed, problem), weight)


def test_refuses_groups_of_several_channels() -> None:
    problem = replace(depthwise(c=12), groups=4)
    assert "4 groups of 3 channels" in str(TEMPLATE.why_not(problem, H200))
    assert "1 groups of 12" in str(TEMPLATE.why_not(replace(problem, groups=1), H200))


def test_refuses_more_than_registers_hold() -> None:
    problem = depthwise(c=64, filter=(3, 15), precision=Precision.FP16)
    reason = TEMPLATE.why_illegal(problem, DepthwiseSchedule(8, 8, 64), H200)
    assert reason == "a thread holds at most 160 sums and weights (vector=8, pixels=8)"
    legal = TEMPLATE.space(problem, H200)[1]
    assert (legal["vector"] * (legal["pixels"] + 15) <= 160).all()
