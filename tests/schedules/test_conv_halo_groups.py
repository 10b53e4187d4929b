"""Grouped convolutions over patches that stay: numbers on the emulator, groups that do not touch each other, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, plant
from support.machine_code.compiled_units import assert_compiles_as_modelled
from support.problems.warpgroup_layers import convolution, limited

from wpk.dims import evaluate
from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue
from wpk.schedules import packings
from wpk.schedules.conv_halo import ConvHaloTemplate, HaloSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvHaloTemplate()
H200 = find_target("h200")
TILE = HaloSchedule(tile_p=7, tile_q=8, block_n=32, teams=2)

CASES: dict[str, tuple[dict[str, Any], HaloSchedule]] = {
    "whole patches": ({"c": 128, "k": 64, "groups": 2, "n": 2}, TILE),
    "two patches of a group": (
        {"c": 256, "k": 32, "groups": 2, "n": 2},
        replace(TILE, block_n=16, patches=2),
    ),
    "one product of a patch": ({"c": 48, "k": 72, "groups": 3, "n": 3}, TILE),
    "three products of a patch": (
        {"c": 144, "k": 48, "groups": 3, "n": 2, "size": (9, 11)},
        replace(TILE, block_n=16, early=1),
    ),
    "several tiles of filters": ({"c": 64, "k": 200, "groups": 2, "n": 3}, TILE),
    "a tile for each team": (
        {"c": 64, "k": 96, "groups": 2, "n": 3, "size": (15, 10)},
        replace(TILE, early=1),
    ),
    "persistent blocks": (
        {"c": 64, "k": 96, "groups": 2, "n": 5, "size": (15, 17)},
        replace(TILE, block_n=16, patches=2, persistent=6, early=1),
    ),
    "strided": ({"c": 96, "k": 96, "groups": 3, "size": (11, 8), "stride": (2, 2)}, TILE),
    "carried rows": (
        {"c": 64, "k": 64, "groups": 2, "n": 2, "size": (17, 11)},
        replace(TILE, tile_p=8, carry=1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_groups_agree_with_float64(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = CASES[case]
    problem = convolution(**given)
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, schedule)


@pytest.mark.parametrize("precision", [Precision.TF32, Precision.BF16])
def test_groups_of_other_precisions_agree_with_float64(
    precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=48, k=72, groups=3, n=2, precision=precision)
    check_convolution(fast_execution, TEMPLATE, problem, TILE)


@pytest.mark.parametrize(("filters", "padding"), [(60, 4), (64, 8)])
def test_zeros_follow_the_last_group_alone(
    filters: int, padding: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Where they are a tile of their own, each group has one too many, and that of the last one stores zeros."""
    problem = convolution(c=64, k=filters, groups=2, n=3)
    y = channels_last(problem.y.dtype, problem.k, problem.p, problem.q, padding)
    padded = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(checking_execution, TEMPLATE, padded, TILE)


def test_what_is_infinite_in_a_group_stays_there(fast_execution: Any) -> None:
    """A patch has the neighbours' channels, too; they are not even multiplied by zeros."""
    problem = replace(convolution(c=48, k=48, groups=3, n=1), epilogue=Epilogue())
    x = np.ones((1, problem.c, problem.h, problem.w), np.float16)
    x[:, 16:32] = np.inf
    w = np.ones((problem.k, problem.c // 3, *problem.filter), np.float16)
    packed = packings.pack(TEMPLATE.packing(problem, TILE), w, problem)
    memory = [fast_execution.memory(problem.x, x), packed]
    shape = (1, problem.k, problem.p, problem.q)
    y = fast_execution.run(TEMPLATE, problem, replace(TILE, block_n=16), memory, shape)
    assert np.isinf(y[:, 16:32]).all()
    assert np.isfinite(y[:, :16]).all()
    assert np.isfinite(y[:, 32:]).all()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("all read the first group's channels", change("channels_of_group", "group *", "0 *")),
        Fault("all have the first group's filters", change("filters_of_group", "group *", "0 *")),
    ],
    ids=lambda fault: fault.name,
)
def test_a_group_that_takes_what_is_another_ones_is_noticed(
    fault: Fault, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=96, k=96, groups=3, n=2)
    with pytest.raises(AssertionError):
        check_convolution(fast_execution, plant(TEMPLATE, fault), problem, TILE)


def test_the_batch_of_groups_is_decided_at_run_time(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=96, k=48, groups=3, n=Extent(2, free="batch"))
    check_convolution(checking_execution, TEMPLATE, problem, replace(TILE, block_n=16), batch=3)


def test_schedules_of_groups_compile_without_spills_and_with_the_registers_that_are_expected() -> (
    None
):
    problem = convolution(c=64, k=128, size=(56, 56), n=32, groups=2)
    schedule = HaloSchedule(8, 8, 64, teams=3, patches=1, persistent=132, early=1)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    assert_compiles_as_modelled(TEMPLATE, problem, schedule, "hgmma")


def test_work_covers_all_groups() -> None:
    problem = convolution(c=64, k=128, size=(56, 56), n=32, groups=2)
    _, columns = TEMPLATE.space(problem, H200)
    work = TEMPLATE.work(problem, columns, H200)
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()
    assert (work.store_bytes * work.blocks * 1.001 >= 2.0 * 32 * 128 * 56 * 56).all()
    both = work.blocks * work.block_transactions * H200.transaction_bytes
    assert (both >= 2.0 * 32 * 64 * 56 * 56).all()


REFUSALS: list[tuple[Convolution, str]] = [
    (convolution(c=72, k=72, groups=3), "3 groups of 24 channels"),
    (convolution(c=192, k=64, groups=2), "2 groups of 96 channels"),
    (limited(convolution(c=64, k=64, groups=2, pads=(0, 0, 0, 0))), "between limits"),
]


@pytest.mark.parametrize(("problem", "reason"), REFUSALS, ids=[reason for _, reason in REFUSALS])
def test_refuses_groups_in_words(problem: Convolution, reason: str) -> None:
    assert reason in (TEMPLATE.why_not(problem, H200) or "")


def test_persistent_blocks_are_dealt_out_evenly_to_groups() -> None:
    problem = convolution(c=96, k=96, groups=3, size=(28, 28), n=32)
    persistent = replace(TILE, persistent=132)
    assert TEMPLATE.why_illegal(problem, persistent, H200) is None
    plan = TEMPLATE.kernel(problem, persistent)
    assert (evaluate(plan.grid[0], {}), *plan.grid[1:]) == (44, 1, 3)
    assert "each group" in (
        TEMPLATE.why_illegal(problem, replace(TILE, persistent=130), H200) or ""
    )
