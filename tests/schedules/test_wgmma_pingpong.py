"""Warpgroups in turns, and persistent blocks that multicast: numbers under every check, machine code, planted faults."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, drop, plant, whole
from support.problems.network_layers import dense, resnet
from support.problems.warpgroup_layers import (
    across,
    at,
    convolution,
    limited,
    matmul,
)

from wpk.build import load_nvrtc
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.problems import Epilogue
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import COLUMNS, ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=2, early=1, persistent=2)
TURNS = replace(TILE, pingpong=1)
WAYS = [
    replace(TURNS, persistent=1, stages=3),
    replace(TURNS, block_m=128, stages=4),
    replace(TURNS, share=ROWS),
    replace(TURNS, share=COLUMNS),
    replace(TILE, share=ROWS, stages=3),
    replace(TILE, share=COLUMNS),
]
"""Persistent blocks of warpgroups in turns, of those that multicast, and both."""


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
@pytest.mark.parametrize("case", [(65, 136, 264), (300, 40, 136)])
@pytest.mark.parametrize("schedule", WAYS, ids=str)
def test_products_agree_with_float64_under_every_check(
    case: tuple[int, int, int],
    precision: Precision,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    """Odd and even numbers of tiles along each axis, of one step to three."""
    problem = matmul(*case, precision=precision)
    check_matmul(checking_execution, GEMM, problem, at(schedule, precision))


@pytest.mark.parametrize("schedule", WAYS, ids=str)
def test_convolutions_agree_with_float64_at_another_batch(
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = replace(convolution(size=(7, 9), k=136, c=72), n=Extent(2, "n"))
    check_convolution(checking_execution, CONV, problem, schedule, batch=3)


@pytest.mark.parametrize(
    "schedule",
    [
        WgmmaSchedule(64, 256, 64, 3, early=1, persistent=1, pingpong=1),
        WgmmaSchedule(128, 128, 64, 4, early=1, persistent=2, pingpong=1, share=ROWS),
        WgmmaSchedule(64, 64, 128, 4, persistent=2, pingpong=1, share=COLUMNS),
        WgmmaSchedule(128, 32, 64, 6, persistent=3, pingpong=1),
    ],
    ids=str,
)
def test_every_kind_of_schedule_is_exact_on_integers(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=128, k=264, size=(9, 10), n=3)
    y = channels_last(DType.FP32, 264, 9, 10)
    problem = replace(problem, y=y, epilogue=Epilogue())
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule, integers=True)


@pytest.mark.parametrize("schedule", [TURNS, replace(TURNS, share=ROWS)], ids=str)
def test_a_b_that_kernels_write_is_right(
    schedule: WgmmaSchedule, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    check_matmul(checking_execution, GEMM, across(70, 136, 264), schedule)
    check_matmul(checking_execution, GEMM, matmul(65, 72, 264, constant=False), schedule)


def test_pairs_of_persistent_blocks_are_clusters_and_whole() -> None:
    problem = resnet(n=64)  # 196 tiles of 64 rows, 4 of columns
    schedule = WgmmaSchedule(64, 64, 64, 3, persistent=264, pingpong=1, share=COLUMNS)
    assert CONV.why_illegal(problem, schedule, H200) is None
    (launch,) = CONV.launches(problem, schedule)
    assert launch.cluster == (2, 1, 1)
    blocks = [tuple(evaluate(size, {"n": n}) for size in launch.grid) for n in (1, 2, 64)]
    assert blocks == [(16, 1, 1), (32, 1, 1), (264, 1, 1)]  # 7 tiles of rows are four pairs


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"persistent": 0}, "take turns in persistent blocks"),
        ({"pingpong": 2}, "pingpong is 0 or 1"),
        ({"block_m": 128, "block_n": 256}, "16384 sums at most"),
        ({"share": ROWS, "persistent": 3}, "whole clusters"),
    ],
)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    problem = dense(512, 512, 512)
    assert GEMM.why_illegal(problem, TURNS, H200) is None
    reason = GEMM.why_illegal(problem, replace(TURNS, **changes), H200)
    assert reason is not None
    assert words in reason


def test_what_goes_through_registers_takes_no_turns() -> None:
    fp32 = GEMM.why_illegal(
        dense(512, 512, 512, precision=Precision.FP32), at(TURNS, Precision.FP32), H200
    )
    clamped = CONV.why_illegal(limited(replace(resnet(n=4), epilogue=Epilogue())), TURNS, H200)
    for reason in (fp32, clamped):
        assert reason is not None
        assert "multiplied as they come" in reason
    axes = GEMM.axes(dense(4096, 768, 768, precision=Precision.FP32), H200)
    assert axes["pingpong"] == (0,)


def test_turns_are_tried_where_persistent_blocks_are_and_kept_apart_from_them() -> None:
    assert GEMM.axes(dense(), H200)["pingpong"] == (0,)
    problem = dense(4096, 768, 768)
    assert GEMM.axes(problem, H200)["pingpong"] == (0, 1)
    _, columns = GEMM.space(problem, H200)
    families = GEMM.families(columns)
    turns = columns["pingpong"] == 1
    assert not set(families[turns]) & set(families[~turns])


@pytest.mark.parametrize("share", [0, ROWS])
@pytest.mark.parametrize("name", ["conv_wgmma", "gemm_wgmma"])
def test_machine_code_of_the_largest_tiles_keeps_its_registers(name: str, share: int) -> None:
    problem = dense(4096, 768, 512) if name == "gemm_wgmma" else resnet(n=32)
    schedule = WgmmaSchedule(128, 128, 64, 4, early=1, persistent=132, pingpong=1, share=share)
    (source,) = TEMPLATE_OF[name].instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert "serialized" not in kernel.log


IN_TURNS = [
    Fault("a group does not wait for its turn", drop("turn_awaited")),
    Fault("a group keeps the turn", drop("turn_passed")),
    Fault("the second group begins", change("first_turn", "group ^ 1", "group")),
    Fault("a group does not pass over the other's steps", drop("steps_skipped")),
    Fault("a round that is passed over is not counted", drop("phase_skipped")),
    Fault("the second group stores below its tile", change("group_placed", "-above", "0 * above")),
    Fault(
        "a group multiplies its first rows again",
        change("rows_of_product", "product * kProductBytes", "0"),
    ),
    Fault("a group stores its second rows above", change("rows_stored", "from(row,", "from(0,")),
    Fault("a tile's last stage is not released", drop("last_stage_released")),
]
IN_PAIRS = [
    Fault("tiles come before the barriers that count them", drop("persistent_cluster_ready")),
    Fault("a block ends while the other one arrives there", drop("persistent_stages_drained")),
    Fault("both blocks compute the same tile", change("neighbour_told", "clusterRank()", "0")),
    Fault(
        "a pair passes over a pair",
        change("next_tile", "/ Shape::multicast", "* Shape::multicast"),
    ),
]
CASES = [
    *((fault, replace(TURNS, block_m=128)) for fault in IN_TURNS),
    *((fault, replace(TURNS, share=share)) for fault in IN_PAIRS for share in (ROWS, COLUMNS)),
]


def _check(
    template: Any, schedule: WgmmaSchedule, execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Eight rows of tiles and three of columns, of one step; with 128 rows four."""
    problem = convolution(c=32, k=192, size=(13, 19), n=2)
    y = channels_last(DType.FP32, 192, 13, 19)
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(execution, template, problem, schedule, integers=True)


@pytest.mark.parametrize("schedule", [case[1] for case in CASES[::9]], ids=str)
def test_without_a_fault_the_copied_headers_are_right(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    _check(plant(CONV, Fault("", whole)), schedule, checking_execution, check_convolution)


@pytest.mark.parametrize(
    ("fault", "schedule"), CASES, ids=[f"{fault.name}, share {s.share}" for fault, s in CASES]
)
def test_a_planted_fault_is_seen(
    fault: Fault,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    with pytest.raises((EmulatorError, AssertionError)):
        _check(plant(CONV, fault), schedule, checking_execution, check_convolution)
