"""Templates of warpgroups: numbers on the emulator, against float64 and exact on integers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.problems.warpgroup_layers import (
    BIAS,
    TAIL,
    TAPS,
    across,
    at,
    convolution,
    matmul,
)

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Tensor
from wpk.schedules import packings
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target


def _slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


CONV, GEMM = ConvWgmmaTemplate(), GemmWgmmaTemplate()
H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=3)
SHORT = replace(TILE, stages=2)  # for reductions of one or two steps
PRECISIONS = [Precision.FP16, Precision.TF32, Precision.FP32, _slow(Precision.BF16)]


CASES: dict[str, dict[str, Any]] = {
    **TAPS,
    "stride 2 and 1, 1x1": {
        "size": (9, 14),
        "stride": (2, 1),
        "filter": (1, 1),
        "pads": (0, 0, 0, 0),
    },
    "1x1 is a matrix": {"size": (5, 9), "n": 3, "filter": (1, 1), "pads": (0, 0, 0, 0), "c": 72},
    "1x1 of one image": {
        "one_image": True,
        "filter": (1, 1),
        "pads": (0, 0, 0, 0),
        "padding": 64,
    },
}
LARGE: dict[str, dict[str, Any]] = {
    "28x28": {"size": (28, 28), "n": 3},
    "56x56": {"size": (56, 56)},
    "56x56, stride 2": {"size": (56, 56), "stride": (2, 2), "k": 128},
    "7x7 of 112x112": {"size": (50, 56), "filter": (7, 7), "stride": (2, 2), "pads": (3, 3, 3, 3)},
}


@pytest.mark.parametrize("case", [*CASES, *map(_slow, LARGE)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_convolutions_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **(CASES | LARGE)[case])
    assert CONV.why_not(problem, H200) is None
    schedule = SHORT if problem.filter == (1, 1) else TILE
    check_convolution(fast_execution, CONV, problem, at(schedule, precision))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32, Precision.FP32])
def test_integers_are_exact_under_every_check(
    case: str,
    precision: Precision,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(precision=precision, **CASES[case])
    y = channels_last(DType.FP32, problem.k, problem.p, problem.q)
    problem = replace(problem, y=y, epilogue=Epilogue())
    schedule = replace(SHORT, split=2) if case == "7x7" else SHORT
    schedule = at(schedule, precision)
    check_convolution(checking_execution, CONV, problem, schedule, integers=True)


SCHEDULES = [
    WgmmaSchedule(64, 16, 64, 2),
    WgmmaSchedule(64, 32, 128, 4, early=1),
    WgmmaSchedule(128, 64, 64, 8, split=2),
    WgmmaSchedule(128, 128, 128, 3, split=3, early=1),
    WgmmaSchedule(128, 256, 64, 4),
    WgmmaSchedule(64, 128, 64, 2, split=4),
    WgmmaSchedule(64, 32, 64, 2, split=2, cluster=1),
    WgmmaSchedule(128, 128, 64, 3, split=4, cluster=1, early=1),
    WgmmaSchedule(64, 128, 128, 2, split=8, cluster=1),
    WgmmaSchedule(64, 16, 256, 2, split=3, cluster=1),
    WgmmaSchedule(64, 32, 192, 2, split=3),
    WgmmaSchedule(64, 64, 192, 4, early=1),
    WgmmaSchedule(192, 96, 64, 3, early=1),
    WgmmaSchedule(192, 96, 128, 2, share=1),
    _slow(WgmmaSchedule(64, 16, 64, 2, split=8, cluster=1)),
    _slow(WgmmaSchedule(128, 32, 128, 2, split=6, cluster=1)),
    _slow(WgmmaSchedule(128, 64, 256, 2)),
    _slow(WgmmaSchedule(64, 128, 64, 6, split=3)),
    _slow(WgmmaSchedule(128, 32, 64, 2, split=9)),
    _slow(WgmmaSchedule(128, 16, 128, 2, split=4, early=1)),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_kind_of_schedule_is_right_under_every_check(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=128, k=136, size=(9, 10), n=2)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize("split", [2, 3, 4, *map(_slow, (6, 8, 9, 12, 16))])
def test_every_split_agrees_with_float64(
    split: int, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=128, size=(7, 9), n=1 + split % 3)
    check_convolution(
        fast_execution, CONV, problem, replace(TILE, block_n=32, stages=2, split=split)
    )


@pytest.mark.parametrize("batch", [1, 3, 5])
@pytest.mark.parametrize("filter", [1, 3])
def test_the_batch_is_decided_at_run_time(
    batch: int, filter: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    pad = filter // 2
    problem = convolution(size=(5, 9), filter=(filter, filter), pads=(pad,) * 4)
    problem = replace(problem, n=Extent(2, "n"))
    schedule = replace(SHORT, split=filter)
    check_convolution(checking_execution, CONV, problem, schedule, batch=batch)


def test_the_output_may_lie_in_any_layout_and_type(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(k=10, size=(5, 9))
    y = Tensor(DType.FP32, (450, 45, 9, 1), alignment=4)
    clip = apply("Min", apply("Max", apply("Add", Acc(), Operand(0)), Scalar(0.0)), Scalar(6.0))
    problem = replace(problem, y=y, epilogue=Epilogue(clip, (BIAS,)))
    check_convolution(checking_execution, CONV, problem, TILE)


def test_the_padding_of_the_output_is_zero(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(k=58, size=(5, 9))
    y = channels_last(DType.FP16, 58, 5, 9, padding=6)
    problem = replace(problem, y=y, epilogue=Epilogue(TAIL, (BIAS, y)))
    check_convolution(checking_execution, CONV, problem, replace(TILE, split=2))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("shape", [(1, 8, 8), (100, 72, 200), (65, 136, 264), (130, 19, 48)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_agree_with_float64(
    shape: tuple[int, int, int],
    constant: bool,
    precision: Precision,
    fast_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem = matmul(*shape, constant=constant, precision=precision)
    assert GEMM.why_not(problem, H200) is None
    schedule = at(replace(TILE, block_m=128, block_n=32, stages=2), precision)
    check_matmul(fast_execution, GEMM, problem, schedule)


@pytest.mark.parametrize("schedule", [SHORT, WgmmaSchedule(128, 128, 128, 2, split=2, cluster=1)])
@pytest.mark.parametrize("shape", [(21, 24, 72), (70, 136, 264), (1, 8, 8)])
def test_a_b_that_lies_across_is_right_under_every_check(
    shape: tuple[int, int, int],
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    m, n, k = shape
    problem = across(m, n, k, (2, 3))
    assert GEMM.why_not(problem, H200) is None
    if k <= schedule.block_k:
        schedule = replace(schedule, split=1, cluster=0)
    check_matmul(checking_execution, GEMM, problem, schedule)


@pytest.mark.parametrize("rows", [1, 64, 100])
def test_rows_are_decided_at_run_time(
    rows: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(4, 24, 264), m=Extent(4, "n"))
    schedule = replace(TILE, block_n=32, stages=2, split=2, early=1)
    check_matmul(checking_execution, GEMM, problem, schedule, leading=rows)


@pytest.mark.parametrize("broadcast", ["nothing", "a", "b"])
@pytest.mark.parametrize("free", [False, True])
def test_batches_and_broadcasting_are_right_under_every_check(
    broadcast: str, free: bool, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    m, n, k = 21, 24, 72
    a = Tensor(DType.FP16, (0 if broadcast == "a" else 3 * m * k, m * k, k, 1))
    b = Tensor(DType.FP16, (3 * n * k, 0 if broadcast == "b" else n * k, 1, k))
    y = Tensor(DType.FP16, (3 * m * n, m * n, n, 1))
    problem = replace(matmul(m, n, k, constant=False), a=a, b=b, y=y, epilogue=Epilogue())
    problem = replace(problem, batch=(Extent(2, "n") if free else Extent(2), 3))
    schedule = replace(TILE, block_n=16, stages=2, split=2)
    check_matmul(checking_execution, GEMM, problem, schedule, leading=4 if free else None)


def test_heads_of_attention_are_strides(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    """Q and K as (batch, length, heads, 64): rows lie a whole token apart."""
    heads, length = 3, 70
    rows = (length * heads * 64, 64, heads * 64, 1)
    a = Tensor(DType.FP16, rows)
    b = Tensor(DType.FP16, (rows[0], rows[1], 1, rows[2]))
    y = Tensor(DType.FP16, (heads * length**2, length**2, length, 1), alignment=4)
    scale = Epilogue(apply("Mul", Acc(), Scalar(0.125)))
    problem = replace(matmul(length, length, 64, constant=False), a=a, b=b, y=y, epilogue=scale)
    problem = replace(problem, batch=(Extent(2), heads))
    assert GEMM.why_not(problem, H200) is None
    check_matmul(checking_execution, GEMM, problem, SHORT)


def test_the_order_of_the_sum_does_not_depend_on_who_is_last(fast_execution: Any) -> None:
    problem = replace(
        convolution(c=128), epilogue=Epilogue(), y=channels_last(DType.FP32, 64, 7, 7)
    )
    schedule = replace(SHORT, split=8)
    rng = np.random.default_rng(11)
    x = rng.standard_normal((1, 128, 7, 7)).astype(np.float16)
    w = rng.standard_normal((64, 128, 3, 3)).astype(np.float16)
    memory = [
        fast_execution.memory(problem.x, x),
        packings.pack(CONV.packing(problem, schedule), w, problem),
    ]
    shape = (1, 64, 7, 7)
    first = fast_execution.run(CONV, problem, schedule, memory, shape)
    for _ in range(8):  # blocks run in threads, in another order each time
        again = fast_execution.run(CONV, problem, schedule, memory, shape)
        np.testing.assert_array_equal(first, again)
    whole = fast_execution.run(CONV, problem, replace(schedule, split=1), memory, shape)
    assert (whole != first).any(), "sums in another order differ, or this test sees nothing"
