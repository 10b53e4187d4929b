"""Faults planted in the ring that feeds warpgroups: the emulator's checking mode sees each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from subjects.problems import channels_last, convolution
from support.faults.planter import Fault, before, behind, change, drop, move, plant, put, whole

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
    """A fault, and the schedule that shows it: with a split reduction, shared tiles, or blocks that stay."""

    fault: Fault
    split: int = 1
    precision: Precision = Precision.FP16
    share: int = 0
    persistent: int = 0

    @property
    def name(self) -> str:
        ways = (
            f" (share {self.share})" if self.share else " (blocks stay)" if self.persistent else ""
        )
        return self.fault.name + ways


ALONE = [
    Fault(
        "a slot is filled again before all have multiplied what lies there", drop("slot_awaited")
    ),
    Fault("products begin before their tiles are there", drop("tiles_awaited")),
    Fault(
        "a slot is given back while its products are under way",
        change("slot_released", "previous", "place.slot"),
    ),
    Fault(
        "a slot is given back by fewer warps than read it",
        change("warps_counted", "Warps * Fillers", "Warps * Fillers - 1"),
    ),
    Fault("the sums are read while products are under way", drop("products_done")),
    Fault(
        "fewer bytes are announced than arrive",
        change("first_bytes", "Shape::stageBytes", "Shape::stageBytes - 16"),
    ),
    Fault("products without their fence", drop("products_fenced")),
    Fault(
        "the second warpgroup multiplies the first one's rows",
        change("group_rows", "/ Shape::kGroupWarps", "/ 8"),
    ),
    Fault("barriers are used before they may be there", drop("barriers_there")),
    Fault("the epilogue takes the ring's place before all have left it", drop("ring_free")),
]
SPLIT = [
    Fault(
        "the producer's warp writes sums",
        change("split_summed", "<Shape::consumers, true>", "<Shape::consumers>"),
    ),
]
OF_FP32 = [
    Fault("sums of a box are taken while products add to them", drop("sums_done")),
    Fault(
        "a slot is given back before its products have ended",
        change("slot_released_behind_sums", "box == 0 && step > 0", "box == 0"),
    ),
    Fault(
        "sums of a box begin with those of the one before",
        change("sums_of_box_begun", "slice != 0", "1"),
    ),
    Fault(
        "both products are with the same part",
        change("big_times_small", "small + slice", "b + slice"),
    ),
    Fault("what is cut off is not fenced", drop("cuts_fenced")),
    Fault("what is cut off lies always in one place", change("place_of_cuts", "box % 2", "0")),
    Fault(
        "a warp loads another one's rows",
        change("fragment_row", "warpIndex() * 16", "warpIndex() * 8"),
    ),
]
SHARED = [
    Fault(
        "a slot is filled again before the other block has left it",
        put("filler_told", "arriveBarrier(empty(slot));"),
    ),
    Fault(
        "the other block is not told that a slot is free",
        change("fillers_told", "laneIndex() < Fillers", "laneIndex() == clusterRank()"),
    ),
    Fault(
        "warps of one block give back what two of them read",
        change("warps_counted", "Warps * Fillers", "Warps"),
    ),
    Fault("tiles come before the barriers that count them", drop("cluster_there")),
    Fault(
        "a block goes on while the other one arrives there",
        change("all_given_back", "step < end", "step < count"),
    ),
    Fault("both blocks bring the same half", put("part_of_block", "return 0;")),
    Fault("both halves are for one block", change("part_for_blocks", "(1 << Parts) - 1", "1")),
    Fault(
        "a half comes to its own block alone",
        change("part_for_blocks", "(1 << Parts) - 1", "1 << clusterRank()"),
    ),
]
HALVES = [
    Fault("the halves of A change places", change("place_of_part_a", "partA_", "(1 - partA_)")),
    Fault("the halves of B change places", change("place_of_part_b", "partB_", "(1 - partB_)")),
]
STAYING = [
    Fault("the consumers' phase begins again with a tile", behind("sums_begun", "place = {};")),
    Fault("the producer's phase begins again with a tile", before("tile_begun", "place = {};")),
    Fault("barriers are used before they may be there", drop("barriers_there")),
    Fault("the next tile does not wait for its slot", drop("slot_claimed")),
    Fault("a tile's last slot is not given back", drop("last_released")),
    Fault("another slot is given back", change("last_released", "place.last()", "place.slot")),
    Fault("staging lies in the ring", change("sums_staged", "shared + ring.bytes()", "shared")),
    Fault("a tile is left out", change("tiles_counted", "* kAcross)", "* kAcross - 1)")),
    Fault("tiles are left out between", change("next_tile", "(gridDim.x)", "(gridDim.x) + 1")),
    Fault("all rows are the first one's", put("first_row", "return 0;")),
    Fault("sums go on from tile to tile", move("sums_begun", before="tiles_in_turn")),
    Fault("A is asked for too early", drop("a_awaits_previous")),
    Fault("the epilogue touches memory too early", drop("epilogue_awaits_previous")),
]
CASES = [
    *map(Case, ALONE),
    *(Case(fault, split=2) for fault in SPLIT),
    *(Case(fault, precision=FP32) for fault in OF_FP32),
    *(Case(fault, share=share) for fault in SHARED for share in (1, 2)),
    *(Case(fault, share=share) for share, fault in enumerate(HALVES, 1)),
    *(Case(fault, persistent=2) for fault in STAYING),
]


def problem(precision: Precision, filters: int, channels: int) -> Convolution:
    """Integers give exact results in fp32, whatever the order."""
    layer = convolution(channels, filters, (7, 10), n=2, precision=precision)
    return replace(layer, y=channels_last(DType.FP32, filters, 7, 10))


def check(
    template: Any, case: Case, execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Of fp32 with numbers that have small parts; two tiles along each axis where any are shared.

    Blocks that stay have three of six tiles each, of an odd number of steps.
    """
    depth = 128 // case.precision.storage.bytes
    stays = case.persistent
    schedule = replace(SCHEDULE, split=case.split, block_k=depth, share=case.share)
    schedule = replace(schedule, persistent=stays, early=int(stays > 0))
    filters = 192 if stays else 128 if case.share else 64
    layer = problem(case.precision, filters, 32 if stays else 64)
    exact = case.precision is not FP32
    check_convolution(execution, template, layer, schedule, integers=exact)


@pytest.mark.parametrize("precision", [Precision.FP16, FP32])
@pytest.mark.parametrize(
    ("split", "share", "persistent"),
    [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 2, 0), (1, 0, 2)],
)
def test_without_a_fault_the_copied_headers_are_right(
    precision: Precision,
    split: int,
    share: int,
    persistent: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    nothing = Fault("", whole)
    case = Case(nothing, split, precision, share, persistent)
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
    """Of 128 x 128 sums that are larger than a ring of two slots; the template that put them there was wrong."""
    schedule = replace(SCHEDULE, block_n=128, **ways)
    layer = problem(Precision.FP16, 256, 64)
    check_convolution(checking_execution, TEMPLATE, layer, schedule, integers=True)
    fault = Fault("barriers lie behind the ring", put("place_of_barriers", "return end;"))
    with pytest.raises(EmulatorError, match="a store of 8 bytes over a barrier"):
        check_convolution(
            checking_execution, plant(TEMPLATE, fault), layer, schedule, integers=True
        )
