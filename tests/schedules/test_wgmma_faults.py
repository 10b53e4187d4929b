"""Faults planted in the pipeline that feeds warpgroups: the emulator's checking mode sees each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.faults.planter import (
    Edit,
    Fault,
    before,
    behind,
    change,
    drop,
    plant,
    put,
    together,
)

from wpk.dtypes import DType, Precision
from wpk.emulator.errors import EmulatorError
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.schedule import WgmmaSchedule

FP32 = Precision.FP32
SCHEDULE = WgmmaSchedule(block_m=128, block_n=64, block_k=64, stages=2)


@dataclass(frozen=True)
class Case:
    """A fault, and the kernel that has it: some need split-K to be seen, fp32, multicast, or persistent blocks."""

    name: str
    edit: Edit
    split: int = 1
    precision: Precision = Precision.FP16
    share: int = 0
    persistent: int = 0


PERSISTENT = [
    ("the consumers' phase begins again with a tile", behind("sums_zeroed", "state = {};")),
    ("the producer's phase begins again with a tile", before("tile_begun", "state = {};")),
    ("barriers are used before they may be there", drop("persistent_barriers_ready")),
    ("the next tile does not wait for its stage", drop("stage_acquired")),
    ("a tile's last stage is not released", drop("last_stage_released")),
    (
        "another stage is released",
        change("last_stage_released", "state.lastStage()", "state.stage"),
    ),
    (
        "staging lies in the pipeline",
        change("staged_beside", "shared + pipeline.bytes()", "shared"),
    ),
    ("a tile is left out", change("tiles_counted", "* across_", "* across_ - 1")),
    ("tiles are left out between", change("next_tile", "gridDim.x)", "gridDim.x) + 1")),
    (
        "all rows are the first one's",
        change("tile_placed", "tile_ / across_ * Shape::blockM", "0"),
    ),
    (
        "sums go on from tile to tile",
        together(
            drop("sums_zeroed"),
            behind("consumer_begins", "float acc[Shape::accumulators] = {};"),
        ),
    ),
    ("A is asked for too early", drop("first_a_awaits")),
    ("the epilogue touches memory too early", drop("epilogue_awaits")),
]
MULTICAST = [
    (
        "a stage is filled again before the other block has released it",
        put("block_told", "arriveBarrier(empty(stage));"),
    ),
    (
        "the other block is not told that a stage is empty",
        change("blocks_told", "laneIndex() < Blocks", "laneIndex() == clusterRank()"),
    ),
    (
        "warps of one block release what two of them read",
        change("consumers_counted", "Warps * Blocks", "Warps"),
    ),
    ("tiles come before the barriers that count them", drop("cluster_ready")),
    (
        "a block goes on while the other one arrives there",
        change("stages_drained", "count + Shape::stages", "count"),
    ),
    ("both blocks bring the same part", change("part_chosen", "clusterRank()", "0")),
    ("both parts are for one block", change("multicast", "kTargets", "1")),
    ("a part comes to its own block alone", change("multicast", "kTargets", "1 << part")),
    ("the parts change places", change("part_placed", "part *", "(Blocks - 1 - part) *")),
]
CASES = [
    Case("a stage is filled again before all have multiplied it", drop("stage_acquired")),
    Case("products begin before their tiles are there", drop("tiles_awaited")),
    Case(
        "a stage is released while its products are under way",
        change("stage_released", "previous", "state.stage"),
    ),
    Case(
        "a stage is released by fewer warps than read it",
        change("consumers_counted", "Warps * Blocks", "Warps * Blocks - 1"),
    ),
    Case("the sums are read while products are under way", drop("products_awaited")),
    Case(
        "fewer bytes are announced than arrive",
        change("bytes_announced", "Shape::stageBytes", "Shape::stageBytes - 16"),
    ),
    Case("products without their fence", drop("products_fenced")),
    Case(
        "the second warpgroup multiplies the first one's rows",
        change("rows_of_group", "/ Shape::kGroupWarps", "/ 8"),
    ),
    Case("barriers are used before they may be there", drop("barriers_ready")),
    Case("the epilogue takes the stages' place before all have left it", drop("stages_free")),
    Case(
        "the producer's warp writes sums",
        change("parts_summed", "sum<Shape::consumers, true>", "sum<Shape::consumers>"),
        split=2,
    ),
    Case(
        "sums of a box are taken while products add to them", drop("box_awaited"), precision=FP32
    ),
    Case(
        "a stage is released before its products have ended",
        change("stage_released_fp32", " && step > 0", ""),
        precision=FP32,
    ),
    Case(
        "sums of a box begin with those of the one before",
        change("first_product", "slice != 0", "1"),
        precision=FP32,
    ),
    Case(
        "both products are with the same part",
        change("small_product", "small + slice", "b + slice"),
        precision=FP32,
    ),
    Case("what is cut off is not fenced", drop("cuts_fenced"), precision=FP32),
    Case(
        "what is cut off lies always in one place",
        change("small_box", "box % 2", "0"),
        precision=FP32,
    ),
    Case(
        "a warp loads another one's rows",
        change("rows_loaded", "warpIndex() * 16", "warpIndex() * 8"),
        precision=FP32,
    ),
    *(
        Case(f"{name} (share {share})", edit, share=share)
        for name, edit in MULTICAST
        for share in (1, 2)
    ),
    *(Case(f"{name} (persistent)", edit, persistent=2) for name, edit in PERSISTENT),
]


def problem(precision: Precision, filters: int, channels: int) -> Convolution:
    """Integers give exact results in fp32, whatever the order."""
    x = Tensor(precision.storage, (70 * channels, 1, 10 * channels, channels))
    y = Tensor(DType.FP32, (70 * filters, 1, 10 * filters, filters))
    shape = (channels, 7, 10, filters, 7, 10, (3, 3), (1, 1), (1, 1), (1, 1), 1, False)
    return Convolution(precision, Extent(2), *shape, x, y, Epilogue())


def check(case: Case, template: Any, execution: Any, check_convolution: Callable[..., None]) -> None:
    """Of fp32 with numbers that have small parts; two tiles along each axis where any are multicast.

    Persistent blocks have three of six tiles each, of an odd number of steps.
    """
    persistent = case.persistent
    schedule = replace(
        SCHEDULE,
        split=case.split,
        block_k=128 // case.precision.storage.bytes,
        share=case.share,
        persistent=persistent,
        early=int(persistent > 0),
    )
    filters = 192 if persistent else 128 if case.share else 64
    layer = problem(case.precision, filters, 32 if persistent else 64)
    exact = case.precision is not FP32
    check_convolution(execution, template, layer, schedule, integers=exact)


@pytest.mark.parametrize("precision", [Precision.FP16, FP32])
@pytest.mark.parametrize(
    ("split", "share", "persistent"),
    [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 2, 0), (1, 0, 2)],
)
def test_without_a_fault_the_same_kernels_are_right(
    precision: Precision,
    split: int,
    share: int,
    persistent: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    case = Case("", together(), split, precision, share, persistent)
    unchanged = plant(ConvWgmmaTemplate(), Fault(case.name, case.edit))
    check(case, unchanged, checking_execution, check_convolution)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_planted_fault_is_seen(
    case: Case, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    faulty = plant(ConvWgmmaTemplate(), Fault(case.name, case.edit))
    with pytest.raises((EmulatorError, AssertionError)):
        check(case, faulty, checking_execution, check_convolution)


@pytest.mark.parametrize("ways", [{}, {"split": 2, "cluster": 1}, {"share": 2}])
def test_sums_are_staged_beside_barriers_not_over_them(
    ways: dict[str, int], checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Of 128 x 128 sums that are larger than two stages; the template that put them there was wrong."""
    schedule = replace(SCHEDULE, block_n=128, **ways)
    layer = problem(Precision.FP16, 256, 64)
    check_convolution(checking_execution, ConvWgmmaTemplate(), layer, schedule, integers=True)
    at_the_end = together(put("barriers_placed", "return end;"), drop("bytes_compared"))
    faulty = plant(ConvWgmmaTemplate(), Fault("barriers lie behind the stages", at_the_end))
    with pytest.raises(EmulatorError, match="a store of 8 bytes over a barrier"):
        check_convolution(checking_execution, faulty, layer, schedule, integers=True)
