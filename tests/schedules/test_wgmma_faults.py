"""Faults planted in the ring that feeds warpgroups: the emulator's checking mode sees each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import pytest

from wpk.dtypes import DType, Precision
from wpk.emulator.errors import EmulatorError
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule

FP32 = Precision.FP32
SCHEDULE = WgmmaSchedule(block_m=128, block_n=64, block_k=64, stages=2)
_HEADERS = (
    "schedules/wgmma/conv.cuh",
    "kernels/wgmma/persistent.cuh",
    "kernels/wgmma/tile.cuh",
    "kernels/wgmma/registers.cuh",
    "kernels/wgmma/pipeline.cuh",
)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and how the headers come to have it; some need a split reduction to be seen, fp32, sharing, or blocks that stay."""

    name: str
    old: str
    new: str = ""
    split: int = 1
    precision: Precision = Precision.FP16
    share: int = 0
    persistent: int = 0


STAYING = [
    (
        "the consumers' phase begins again with a tile",
        "float acc[Shape::accumulators] = {};\n        multiplyRing",
        "float acc[Shape::accumulators] = {};\n        place = {};\n        multiplyRing",
    ),
    (
        "the producer's phase begins again with a tile",
        "const Tiles tiles = tilesAt(turn",
        "place = {};\n        const Tiles tiles = tilesAt(turn",
    ),
    (
        "barriers are used before they may be there",
        "__syncthreads(); // the barriers are there for everyone\n    if (isProducer)",
        "if (isProducer)",
    ),
    (
        "the next tile does not wait for its slot",
        "waitBarrier(empty(place.slot), place.parity ^ 1);",
        "",
    ),
    (
        "a tile's last slot is not given back",
        "ring.release(place.last());\n        if (Shape::isSplit)",
        "if (Shape::isSplit)",
    ),
    (
        "another slot is given back",
        "ring.release(place.last());\n        if (Shape::isSplit)",
        "ring.release(place.slot);\n        if (Shape::isSplit)",
    ),
    ("staging lies in the ring", "shared + ring.bytes()", "shared"),
    ("a tile is left out", "* kAcross)", "* kAcross - 1)"),
    (
        "tiles are left out between",
        "static_cast<int>(gridDim.x)",
        "static_cast<int>(gridDim.x) + 1",
    ),
    ("all rows are the first one's", "tile_ / kAcross * Shape::blockM", "0"),
    (
        "sums go on from tile to tile",
        "WPK_KEEP_LOOP\n    for (; !turn.isDone(); turn.advance())\n    {\n        float acc[Shape::accumulators] = {};",
        "float acc[Shape::accumulators] = {};\n    for (; !turn.isDone(); turn.advance())\n    {",
    ),
    ("A is asked for too early", "if (waits)\n                waitForPrevious();", ""),
    (
        "the epilogue touches memory too early",
        "waitForPrevious(); // the epilogue touches memory that kernels in front touch",
        "",
    ),
]
SHARED = [
    (
        "a slot is filled again before the other block has left it",
        "arriveReadBarrier(clusterAddress(empty(slot), laneIndex()));",
        "arriveBarrier(empty(slot));",
    ),
    (
        "the other block is not told that a slot is free",
        "laneIndex() < Fillers",
        "laneIndex() == clusterRank()",
    ),
    (
        "warps of one block give back what two of them read",
        "Warps * Fillers",
        "Warps",
    ),
    (
        "tiles come before the barriers that count them",
        "syncCluster(); // no block brings tiles before the other one's barriers are there",
        "",
    ),
    (
        "a block goes on while the other one arrives there",
        "step < end",
        "step < count",
    ),
    ("both blocks bring the same half", "Parts == 1 ? 0 : clusterRank()", "0"),
    ("both halves are for one block", "(1 << Parts) - 1", "1"),
    ("a half comes to its own block alone", "(1 << Parts) - 1", "1 << clusterRank()"),
]
HALVES = [
    (
        "the halves of A change places",
        "partA_ * (Shape::boxBytesA / Shape::partsA)",
        "(1 - partA_) * (Shape::boxBytesA / Shape::partsA)",
        1,
    ),
    (
        "the halves of B change places",
        "partB_ * (Shape::boxBytesB / Shape::partsB)",
        "(1 - partB_) * (Shape::boxBytesB / Shape::partsB)",
        2,
    ),
]
FAULTS = [
    Fault(
        "a slot is filled again before all have multiplied what lies there",
        "waitBarrier(ring.empty(place.slot), place.parity);",
    ),
    Fault(
        "products begin before their tiles are there",
        "waitBarrier(ring.full(place.slot), place.parity);",
    ),
    Fault(
        "a slot is given back while its products are under way",
        "ring.release(previous);",
        "ring.release(place.slot);",
    ),
    Fault(
        "a slot is given back by fewer warps than read it",
        "initBarrier(empty(slot), Warps * Fillers);",
        "initBarrier(empty(slot), Warps * Fillers - 1);",
    ),
    Fault("the sums are read while products are under way", "waitWgmma<0>(acc);"),
    Fault(
        "fewer bytes are announced than arrive",
        "arriveExpectBytes(ring.full(slot), Shape::stageBytes);",
        "arriveExpectBytes(ring.full(slot), Shape::stageBytes - 16);",
    ),
    Fault("products without their fence", "fenceWgmma();"),
    Fault("the second warpgroup multiplies the first one's rows", "/ Shape::kGroupWarps", "/ 8"),
    Fault(
        "barriers are used before they may be there",
        "__syncthreads(); // the barriers are there for everyone\n    if (warpIndex() < Shape::warpsM)",
        "if (warpIndex() < Shape::warpsM)",
    ),
    Fault(
        "the epilogue takes the ring's place before all have left it",
        "__syncthreads();       // the ring is free",
    ),
    Fault(
        "the producer's warp writes sums", "sum<Shape::consumers, true>", "sum<Shape::consumers>", 2
    ),
    Fault(
        "sums of a box are taken while products add to them", "waitWgmma<0>(sums);", precision=FP32
    ),
    Fault(
        "a slot is given back before its products have ended",
        "            takeSums(acc, sums, parts); // of the box before\n            if (box == 0 && step > 0",
        "            takeSums(acc, sums, parts); // of the box before\n            if (box == 0",
        precision=FP32,
    ),
    Fault(
        "sums of a box begin with those of the one before",
        "b + slice * 2, slice != 0);",
        "b + slice * 2, 1);",
        precision=FP32,
    ),
    Fault("both products are with the same part", "small + slice", "b + slice", precision=FP32),
    Fault("what is cut off is not fenced", "fenceAsyncProxy();", precision=FP32),
    Fault(
        "what is cut off lies always in one place", "box % 2 * Shape", "0 * Shape", precision=FP32
    ),
    Fault(
        "a warp loads another one's rows", "warpIndex() * 16 +", "warpIndex() * 8 +", precision=FP32
    ),
    *(
        Fault(f"{name} (share {share})", old, new, share=share)
        for name, old, new in SHARED
        for share in (1, 2)
    ),
    *(Fault(name, old, new, share=share) for name, old, new, share in HALVES),
    *(Fault(f"{name} (blocks stay)", old, new, persistent=2) for name, old, new in STAYING),
]


class Faulty:
    """The template with another text in the place of its headers."""

    def __init__(self, fault: Fault) -> None:
        self._fault, self._template = fault, ConvWgmmaTemplate()

    def packing(self, problem: Convolution, schedule: WgmmaSchedule) -> str:
        return self._template.packing(problem, schedule)

    def instantiate(
        self, problem: Convolution, schedule: WgmmaSchedule
    ) -> tuple[KernelSource, ...]:
        (source,) = self._template.instantiate(problem, schedule)
        text, planted = source.text, 0
        for name in _HEADERS:
            header = files("wpk").joinpath(name).read_text(encoding="utf-8")
            planted += header.count(self._fault.old)
            header = header.replace(self._fault.old, self._fault.new)
            text = text.replace(f"#include <wpk/{name}>", header.replace("#pragma once", ""))
        assert planted or not self._fault.name, "the headers have nowhere to plant the fault"
        return (KernelSource(source.entry, text),)

    def launches(self, problem: Convolution, schedule: WgmmaSchedule) -> tuple[Launch, ...]:
        (source,) = self.instantiate(problem, schedule)
        (launch,) = self._template.launches(problem, schedule)
        return (replace(launch, kernel=source.digest),)


def problem(precision: Precision, filters: int, channels: int) -> Convolution:
    """Integers give exact results in fp32, whatever the order."""
    x = Tensor(precision.storage, (70 * channels, 1, 10 * channels, channels))
    y = Tensor(DType.FP32, (70 * filters, 1, 10 * filters, filters))
    shape = (channels, 7, 10, filters, 7, 10, (3, 3), (1, 1), (1, 1), (1, 1), 1, False)
    return Convolution(precision, Extent(2), *shape, x, y, Epilogue())


def check(fault: Fault, split: int, execution: Any, check_convolution: Callable[..., None]) -> None:
    """Of fp32 with numbers that have small parts; two tiles along each axis where any are shared.

    Blocks that stay have three of six tiles each, of an odd number of steps.
    """
    depth = 128 // fault.precision.storage.bytes
    stays = fault.persistent
    schedule = replace(SCHEDULE, split=split, block_k=depth, share=fault.share)
    schedule = replace(schedule, persistent=stays, early=int(stays > 0))
    filters = 192 if stays else 128 if fault.share else 64
    layer = problem(fault.precision, filters, 32 if stays else 64)
    exact = fault.precision is not FP32
    check_convolution(execution, Faulty(fault), layer, schedule, integers=exact)


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
    fault = Fault("", "\0", precision=precision, share=share, persistent=persistent)
    check(fault, split, checking_execution, check_convolution)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    with pytest.raises((EmulatorError, AssertionError)) as seen:
        check(fault, fault.split, checking_execution, check_convolution)
    assert "nowhere to plant" not in str(seen.value)


@pytest.mark.parametrize("ways", [{}, {"split": 2, "cluster": 1}, {"share": 2}])
def test_sums_are_staged_beside_barriers_not_over_them(
    ways: dict[str, int], checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Of 128 x 128 sums that are larger than a ring of two slots; the template that put them there was wrong."""
    schedule = replace(SCHEDULE, block_n=128, **ways)
    layer = problem(Precision.FP16, 256, 64)
    check_convolution(checking_execution, ConvWgmmaTemplate(), layer, schedule, integers=True)
    end = "Shape::stays ? end : maxOf(end, Shape::warpsM * Shape::stagingBytes)"
    fault = Fault("barriers lie behind the ring", end, "end")
    with pytest.raises(EmulatorError, match="a store of 8 bytes over a barrier"):
        check_convolution(checking_execution, Faulty(fault), layer, schedule, integers=True)
