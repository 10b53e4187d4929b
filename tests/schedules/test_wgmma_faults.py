"""Faults planted in the pipeline that feeds warpgroups: the emulator's checking mode sees each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from subjects.problems import channels_last, convolution
from support.faults.planter import (
    Fault,
    before,
    behind,
    change,
    drop,
    move,
    plant,
    put,
    together,
    whole,
)

from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.problems import Convolution
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule

FP32 = Precision.FP32
TEMPLATE = ConvWgmmaTemplate()
SCHEDULE = WgmmaSchedule(block_m=128, block_n=64, block_k=64, stages=2)


@dataclass(frozen=True)
class Case:
    """A fault, and the schedule that shows it: with split-K, multicast, or persistent blocks."""

    fault: Fault
    split: int = 1
    precision: Precision = Precision.FP16
    share: int = 0
    persistent: int = 0
    cluster: int = 0

    @property
    def name(self) -> str:
        ways = (
            f" (share {self.share})" if self.share else " (persistent)" if self.persistent else ""
        )
        return self.fault.name + ways


ALONE = [
    Fault(
        "a stage is filled again before all have multiplied what lies there", drop("stage_acquired")
    ),
    Fault("products begin before their tiles are there", drop("tiles_awaited")),
    Fault(
        "a stage is released while its products are under way",
        change("stage_released", "previous", "state.stage"),
    ),
    Fault(
        "a stage is released by fewer warps than read it",
        change("consumers_counted", "Group::blocks", "Group::blocks - 1"),
    ),
    Fault("the sums are read while products are under way", drop("products_awaited")),
    Fault(
        "fewer bytes are announced than arrive",
        change("bytes_announced", "Shape::stageBytes", "Shape::stageBytes - 16"),
    ),
    Fault("products without their fence", drop("products_fenced")),
    Fault(
        "the second warpgroup multiplies the first one's rows",
        change("rows_of_group", "/ Shape::kGroupWarps", "/ 8"),
    ),
    Fault("barriers are used before they may be there", drop("barriers_ready")),
    Fault("the epilogue takes the stages' place before all have left it", drop("stages_free")),
]
SPLIT = [
    Fault(
        "the producer's warp writes sums",
        change("parts_summed", "<Shape::consumers, true>", "<Shape::consumers>"),
    ),
]
OF_FP32 = [
    Fault("sums of a box are taken while products add to them", drop("box_awaited")),
    Fault(
        "a stage is released before its products have ended",
        change("stage_released_fp32", "box == 0 && step > 0", "box == 0"),
    ),
    Fault(
        "sums of a box begin with those of the one before",
        change("first_product", "slice != 0", "1"),
    ),
    Fault(
        "both products are with the same part",
        change("small_product", "small + slice", "b + slice"),
    ),
    Fault("what is cut off is not fenced", drop("cuts_fenced")),
    Fault("what is cut off lies always in one place", change("small_box", "box % 2", "0")),
    Fault(
        "a warp loads another one's rows",
        change("rows_loaded", "warpIndex() * 16", "warpIndex() * 8"),
    ),
]
MULTICAST = [
    Fault(
        "a stage is filled again before the other block has left it",
        put("block_told", "arriveBarrier(empty(stage));"),
    ),
    Fault(
        "the other block is not told that a stage is empty",
        change("blocks_told", "laneIndex() < Group::blocks", "laneIndex() == clusterRank()"),
    ),
    Fault(
        "warps of one block release what two of them read",
        change("consumers_counted", "Warps * Group::blocks", "Warps"),
    ),
    Fault("tiles come before the barriers that count them", drop("cluster_ready")),
    Fault(
        "a block goes on while the other one arrives there",
        change("stages_drained", "minOf(Shape::stages, count)", "0"),
    ),
    Fault("both blocks bring the same half", change("part_chosen", "Group::member()", "0")),
    Fault("both halves are for one block", change("multicast", "targets", "1")),
    Fault(
        "a half comes to its own block alone",
        change("multicast", "targets", "1 << part"),
    ),
    Fault("the halves change places", change("part_placed", "part *", "(Blocks - 1 - part) *")),
]
PERSISTENT = [
    Fault("the consumers' phase begins again with a tile", behind("sums_zeroed", "state = {};")),
    Fault("the producer's phase begins again with a tile", before("tile_begun", "state = {};")),
    Fault("barriers are used before they may be there", drop("persistent_barriers_ready")),
    Fault("the next tile does not wait for its stage", drop("stage_acquired")),
    Fault("a tile's last stage is not released", drop("last_stage_released")),
    Fault(
        "another stage is released",
        change("last_stage_released", "state.lastStage()", "state.stage"),
    ),
    Fault(
        "staging lies in the pipeline",
        change("staged_beside", "shared + pipeline.bytes()", "shared"),
    ),
    Fault("a tile is left out", change("tiles_counted", "* across_", "* across_ - 1")),
    Fault("tiles are left out between", change("next_tile", "(gridDim.x)", "(gridDim.x) + 1")),
    Fault(
        "all rows are the first one's",
        change("tile_placed", "row * Shape::blockM", "0"),
    ),
    Fault("sums go on from tile to tile", move("sums_zeroed", before="tiles_in_turn")),
    Fault("A is asked for too early", drop("first_a_awaits")),
    Fault("the epilogue touches memory too early", drop("epilogue_awaits")),
]
CLUSTER = [
    Fault("parts are sent before others may have their barriers", drop("parts_ready")),
    Fault("parts are sent as they lay there before", drop("parts_fenced")),
    Fault("parts are added before they are there", drop("parts_awaited")),
    Fault(
        "fewer bytes are announced than parts have",
        change("parts_announced", "(kBlocks - 1)", "(kBlocks - 2)"),
    ),
    Fault(
        "a block does not wait for all of its own warps",
        change("senders_counted", "Shape::warpsM", "Shape::warpsM - 1"),
    ),
    Fault("shares change places", change("share_chosen", "target", "(target ^ 1)")),
    Fault("all parts come to one place", change("part_sent", "partOf(rank,", "partOf(0,")),
    Fault(
        "a block adds what it sent, not what it has", change("own_part", "block == rank", "false")
    ),
    Fault("a block ends while others take its parts", drop("parts_taken")),
]
CASES = [
    *map(Case, ALONE),
    *(Case(fault, split=2) for fault in SPLIT),
    *(Case(fault, split=3, cluster=1) for fault in CLUSTER),
    *(Case(fault, precision=FP32) for fault in OF_FP32),
    *(Case(fault, share=share) for fault in MULTICAST for share in (1, 2)),
    *(Case(fault, persistent=2) for fault in PERSISTENT),
]


def problem(precision: Precision, filters: int, channels: int) -> Convolution:
    """Integers give exact results in fp32, whatever the order."""
    layer = convolution(channels, filters, (7, 10), n=2, precision=precision)
    return replace(layer, y=channels_last(DType.FP32, filters, 7, 10))


def check(
    template: Any, case: Case, execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Of fp32 with numbers that have small parts; two tiles along each axis where any are multicast.

    Persistent blocks have three of six tiles each, of an odd number of steps.
    """
    depth = 128 // case.precision.storage.bytes
    persistent = case.persistent
    schedule = replace(SCHEDULE, split=case.split, cluster=case.cluster, block_k=depth)
    schedule = replace(schedule, share=case.share, persistent=persistent, early=int(persistent > 0))
    filters = 192 if persistent else 128 if case.share else 64
    layer = problem(case.precision, filters, 32 if persistent else 64)
    exact = case.precision is not FP32
    check_convolution(execution, template, layer, schedule, integers=exact)


@pytest.mark.parametrize("precision", [Precision.FP16, FP32])
@pytest.mark.parametrize(
    ("split", "share", "persistent", "cluster"),
    [(1, 0, 0, 0), (2, 0, 0, 0), (1, 1, 0, 0), (1, 2, 0, 0), (1, 0, 2, 0), (3, 0, 0, 1)],
)
def test_without_a_fault_the_copied_headers_are_right(
    precision: Precision,
    split: int,
    share: int,
    persistent: int,
    cluster: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    nothing = Fault("", whole)
    case = Case(nothing, split, precision, share, persistent, cluster)
    check(plant(TEMPLATE, nothing), case, checking_execution, check_convolution)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_planted_fault_is_seen(
    case: Case, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    with pytest.raises((EmulatorError, AssertionError)):
        check(plant(TEMPLATE, case.fault), case, checking_execution, check_convolution)


@pytest.mark.parametrize("ways", [{}, {"split": 2, "cluster": 1}, {"share": 2}])
def test_sums_are_staged_beside_barriers_not_over_them(
    ways: dict[str, int], checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Of 128 x 128 sums that are larger than two stages; the template that put them there was wrong."""
    schedule = replace(SCHEDULE, block_n=128, **ways)
    layer = problem(Precision.FP16, 256, 64)
    check_convolution(checking_execution, TEMPLATE, layer, schedule, integers=True)
    fault = Fault(
        "barriers lie behind the stages",
        together(put("barriers_placed", "return end;"), drop("bytes_compared")),
    )
    with pytest.raises(EmulatorError, match="a store of 8 bytes over a barrier"):
        check_convolution(
            checking_execution, plant(TEMPLATE, fault), layer, schedule, integers=True
        )
