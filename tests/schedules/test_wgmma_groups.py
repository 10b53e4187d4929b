"""Grouped convolutions by warpgroups: numbers on the emulator, groups that do not touch each other, and refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, plant
from support.problems.warpgroup_layers import at, convolution, limited

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue
from wpk.schedules import packings
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV = ConvWgmmaTemplate()
H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=32, block_k=64, stages=2)

CASES: dict[str, tuple[dict[str, Any], WgmmaSchedule]] = {
    "whole boxes": ({"c": 128, "k": 80, "groups": 2}, TILE),
    "two boxes of a tap": ({"c": 256, "groups": 2, "n": 2}, replace(TILE, block_k=128)),
    "one product of a box": ({"c": 48, "k": 72, "groups": 3, "n": 3}, TILE),
    "three products of a box": (
        {"c": 144, "k": 48, "groups": 3, "n": 2},
        replace(TILE, block_k=192, block_n=16, early=1),
    ),
    "strided": ({"c": 96, "k": 96, "groups": 3, "size": (11, 8), "stride": (2, 2)}, TILE),
    "a matrix": (
        {"c": 96, "k": 144, "groups": 3, "n": 3, "filter": (1, 1), "pads": (0, 0, 0, 0)},
        TILE,
    ),
    "split": ({"c": 128, "k": 96, "groups": 2, "n": 2}, replace(TILE, split=3)),
    "split in a cluster": (
        {"c": 128, "k": 96, "groups": 2, "n": 2},
        replace(TILE, block_n=64, split=2, cluster=1, early=1),
    ),
    "pixels to two blocks": (
        {"c": 128, "k": 256, "groups": 2, "n": 2},
        replace(TILE, share=1, early=1),
    ),
    "filters to two blocks": (
        {"c": 128, "k": 80, "groups": 2, "n": 3},
        replace(TILE, share=2),
    ),
    "both warpgroups": ({"c": 128, "groups": 2, "n": 3}, replace(TILE, block_m=128)),
}


def _padded(problem: Convolution, padding: int) -> Convolution:
    """The same, with zeros behind the channels of the output."""
    y = channels_last(problem.y.dtype, problem.k, problem.p, problem.q, padding)
    return replace(problem, y=y, epilogue=Epilogue())


@pytest.mark.parametrize("case", CASES)
def test_groups_agree_with_float64(
    case: str, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    given, schedule = CASES[case]
    problem = convolution(**given)
    assert CONV.why_not(problem, H200) is None
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize("precision", [Precision.TF32, Precision.FP32, Precision.BF16])
def test_groups_of_other_precisions_agree_with_float64(
    precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=48, k=72, groups=3, n=2, precision=precision)
    check_convolution(fast_execution, CONV, problem, at(TILE, precision))


@pytest.mark.parametrize("share", [0, 2])
def test_zeros_follow_the_last_group_alone(
    share: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = _padded(convolution(c=64, k=60, groups=2, n=3), 4)
    check_convolution(checking_execution, CONV, problem, replace(TILE, block_n=32, share=share))


def test_padding_that_is_a_tile_of_its_own_is_written(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Each group has a tile too many then; that of the last one stores zeros, and reads no channels."""
    problem = _padded(convolution(c=64, k=64, groups=2, n=2), 8)
    check_convolution(checking_execution, CONV, problem, TILE)


def test_what_is_infinite_in_a_group_stays_there(fast_execution: Any) -> None:
    """A box brings the neighbours' channels, too; they are not even multiplied by zeros."""
    problem = convolution(c=48, k=48, groups=3, n=1)
    problem = replace(problem, epilogue=Epilogue())
    x = np.ones((1, problem.c, problem.h, problem.w), np.float16)
    x[:, 16:32] = np.inf
    w = np.ones((problem.k, problem.c // 3, *problem.filter), np.float16)
    packed = packings.pack(CONV.packing(problem, TILE), w, problem)
    memory = [fast_execution.memory(problem.x, x), packed]
    shape = (1, problem.k, problem.p, problem.q)
    y = fast_execution.run(CONV, problem, replace(TILE, block_n=16), memory, shape)
    assert np.isinf(y[:, 16:32]).all()
    assert np.isfinite(y[:, :16]).all()
    assert np.isfinite(y[:, 32:]).all()


def test_a_group_that_reads_another_ones_channels_is_noticed(
    fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    fault = Fault("all read the first group's", change("group_channels", "* P::c", "* 0"))
    with pytest.raises(AssertionError):
        check_convolution(
            fast_execution, plant(CONV, fault), convolution(c=96, k=96, groups=3, n=2), TILE
        )


def test_the_batch_of_groups_is_decided_at_run_time(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=96, k=48, groups=3, n=Extent(2, free="batch"))
    check_convolution(checking_execution, CONV, problem, TILE, batch=5)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (convolution(c=72, k=72, groups=3), "3 groups of 24 channels: products have 16"),
        (convolution(c=192, k=192, groups=2), "2 groups of 96 channels"),
        (convolution(c=64, k=64, groups=64), "64 groups of 1 channels"),
        (
            limited(convolution(c=128, groups=2, filter=(1, 1), pads=(0, 0, 0, 0))),
            "2 groups of an input between limits",
        ),
    ],
)
def test_refuses_groups_that_boxes_do_not_keep_apart(problem: Convolution, words: str) -> None:
    reason = CONV.why_not(problem, H200)
    assert reason is not None
    assert words in reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"persistent": 132, "stages": 2}, "persistent blocks count tiles of one group"),
        ({"share": 1, "shared_by": 4}, "all of the 64 filters of a group"),
    ],
)
def test_schedules_keep_groups_apart(changes: dict[str, int], words: str) -> None:
    problem = convolution(c=128, k=128, groups=2)
    reason = CONV.why_illegal(problem, replace(TILE, **changes), H200)
    assert reason is not None
    assert words in reason
