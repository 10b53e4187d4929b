"""Faults planted in conv_grouped: each is seen; and groups that are multiplied together do not touch each other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last, convolution
from support.faults.planter import Fault, change, drop, plant

from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.expression import Acc, Scalar, apply
from wpk.problems import Epilogue
from wpk.schedules import packings
from wpk.schedules.conv_grouped import ConvGroupedTemplate, GroupedSchedule

TEMPLATE = ConvGroupedTemplate()
TILE = GroupedSchedule(tile_p=4, tile_q=8, block_n=32, warps_m=2, warps_n=1)
_TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}


def _run_infinite(channels: int, filters: int, execution: Any, template: Any = TEMPLATE) -> None:
    """Ones all over, but for one group in the image's first rows; others' sums are those of ones."""
    groups = 8
    problem = convolution(c=channels * groups, k=filters * groups, groups=groups, size=(9, 9))
    problem = replace(problem, epilogue=Epilogue())
    x = np.ones((1, problem.c, problem.h, problem.w), np.float16)
    x[:, channels : 2 * channels, :3] = np.inf
    w = np.ones((problem.k, channels, 3, 3), np.float16)
    memory = [execution.memory(problem.x, x), packings.pack("group_mma", w, problem)]
    shape = (1, problem.k, problem.p, problem.q)
    y = execution.run(template, problem, replace(TILE, tile_p=8, warps_m=1, tiles=2), memory, shape)
    mine = slice(filters, 2 * filters)
    assert np.isinf(y[:, mine, :4]).all()
    np.testing.assert_array_equal(y[:, mine, 4:], y[:, -filters:, 4:])
    others = np.delete(y, np.r_[mine], axis=1)
    assert (others[:, :, 1:-1, 1:-1] == 9 * channels).all()
    assert (others[:, :, 0, 0] == 4 * channels).all()


_GROUPS = [(4, 4), (4, 8), (8, 4), (8, 8), (16, 16)]


@pytest.mark.parametrize(("channels", "filters"), _GROUPS)
def test_what_is_infinite_in_a_group_stays_there(
    channels: int, filters: int, fast_execution: Any
) -> None:
    _run_infinite(channels, filters, fast_execution)


TOGETHER = [
    Fault("what is no number is not seen", change("nan_seen", "!= 0", "== 33")),
    Fault("nobody's channels are zeros", change("own_pixels", "== group", ">= 0")),
    Fault("sums of both groups are the first one's", change("own_sums", "== group", "== 0")),
]


@pytest.mark.every_combination
@pytest.mark.parametrize(("channels", "filters"), _GROUPS[:3])
@pytest.mark.parametrize("fault", TOGETHER, ids=lambda fault: fault.name)
def test_groups_that_are_not_kept_apart_are_seen(
    fault: Fault, channels: int, filters: int, fast_execution: Any
) -> None:
    with pytest.raises(AssertionError):
        _run_infinite(channels, filters, fast_execution, plant(TEMPLATE, fault))


FAULTS = [
    Fault("the patch is read before it is there", drop("patch_there")),
    Fault("before all have brought it", drop("patch_for_all")),
    Fault("patches lie over each other", change("patch_of_tile", "patchBytes", "rowBytes")),
    Fault("tiles behind the last one", change("tiles_end", "n * Tile::kTiles", "1 << 20")),
    Fault("x is read before the kernel in front has ended", drop("previous_awaited")),
    Fault("pixels outside of the image", change("pixel_exists", "static_cast<uint32>(h)", "0u")),
    Fault(
        "both chunks of a step are the first", change("chunk_chosen", "laneIndex() < 16", "true")
    ),
    Fault("sums begin with those of other rows", drop("sums_begun")),
    Fault("all rows are added to the same sums", change("turn_of_row", "- down", "")),
    Fault("filters behind the last one", change("tile_exists", "< kTiles", "< 1 + kTiles")),
]
COLUMNS = [
    Fault("rows are stored before they are staged", drop("rows_staged")),
    Fault("tiles of columns lie elsewhere", change("tiles_staged", "first * 16", "first * 8")),
    Fault("rows of a tile are exchanged", change("pair_given", "+ half", "+ 1 - half")),
    Fault("operands behind the last one", change("pair_exists", "< valid", "< valid + 64")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=40, groups=5, size=(12, 9), n=3, **_TAIL)
    schedule = replace(TILE, tile_p=16, block_n=16, tiles=4, early=1)
    with pytest.raises((AssertionError, EmulatorError)):
        check_convolution(checking_execution, plant(TEMPLATE, fault), problem, schedule)


@pytest.mark.parametrize("fault", COLUMNS, ids=lambda fault: fault.name)
def test_a_fault_of_an_epilogue_by_columns_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=40, groups=5, size=(12, 9), n=2, bias=DType.FP32, relu=True)
    schedule = replace(TILE, tile_p=8, block_n=32)
    with pytest.raises((AssertionError, EmulatorError)):
        check_convolution(checking_execution, plant(TEMPLATE, fault), problem, schedule)


def test_columns_of_padding_are_zeros(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=32, groups=8, size=(6, 9), n=2)
    y = channels_last(DType.FP16, problem.k, problem.p, problem.q, 8)
    one_more = Epilogue(apply("Add", Acc(), Scalar(1.0)))
    padded = replace(problem, y=y, epilogue=one_more)
    fault = Fault("", change("padding_zero", "exists ? number : Number(0)", "number"))
    with pytest.raises((AssertionError, EmulatorError)):
        check_convolution(checking_execution, plant(TEMPLATE, fault), padded, TILE)
