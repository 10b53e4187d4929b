"""Convolutions of groups of few channels: numbers on the emulator, refusals, what the compiler makes of them."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from subjects.problems import channels_first, channels_last, convolution
from support.each_value import each_value
from support.machine_code.compiled_units import assert_compiles_as_modelled
from support.machine_code.disassembly import listing
from support.problems.warpgroup_layers import limited

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.errors import CompileError
from wpk.expression import Acc, Scalar, apply
from wpk.extent import Extent
from wpk.performance import Grids, bound, estimate
from wpk.problems import Convolution, Epilogue
from wpk.schedules.conv_grouped import ConvGroupedTemplate, GroupedSchedule
from wpk.schedules.tiles.groups import GroupTiles
from wpk.targets.registry import find_target

TEMPLATE = ConvGroupedTemplate()
H200 = find_target("h200")
TILE = GroupedSchedule(tile_p=4, tile_q=8, block_n=32, warps_m=2, warps_n=1)
_TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}

CASES: dict[str, tuple[dict[str, Any], GroupedSchedule]] = {
    "4 channels": ({"c": 64, "groups": 16, "size": (9, 13), "n": 2}, TILE),
    "4 channels, the last block is not full": (
        {"c": 40, "groups": 10, "size": (7, 9), "n": 3},
        replace(TILE, block_n=16, warps_m=1),
    ),
    "8 channels": ({"c": 64, "groups": 8, "size": (9, 13), "n": 2}, replace(TILE, early=1)),
    "8 channels, warps side by side": (
        {"c": 104, "groups": 13, "size": (10, 7)},
        replace(TILE, block_n=64, warps_m=1, warps_n=4, early=1),
    ),
    "16 channels": ({"c": 96, "groups": 6, "size": (5, 20), "n": 2}, replace(TILE, tile_q=16)),
    "24 channels": (
        {"c": 72, "groups": 3, "size": (6, 6), "filter": (3, 1), "pads": (1, 0, 1, 0)},
        replace(TILE, block_n=48, warps_n=2),
    ),
    "24 channels, 9 taps, a warp has 24 filters": (
        {"c": 48, "groups": 2, "size": (6, 9), "n": 2},
        replace(TILE, block_n=48, warps_n=2),
    ),
    "8 filters of a warp": (
        {"c": 32, "groups": 4, "size": (6, 9), "filter": 5},
        replace(TILE, warps_n=4),
    ),
    "32 channels, a warp has a part of a group": (
        {"c": 96, "groups": 3, "size": (6, 9), "n": 2},
        replace(TILE, block_n=64, warps_m=2, warps_n=4),
    ),
    "more filters than channels": (
        {"c": 32, "k": 64, "groups": 8, "size": (6, 9), "n": 2},
        replace(TILE, block_n=16),
    ),
    "fewer filters than channels": (
        {"c": 64, "k": 32, "groups": 8, "size": (6, 9), "n": 2},
        replace(TILE, block_n=16),
    ),
    "4 channels, 12 of them groups of 8 filters": (
        {"c": 48, "k": 96, "groups": 12, "size": (6, 9), "n": 2},
        replace(TILE, block_n=32, warps_n=2),
    ),
    "8 channels, 4 filters, a row of taps": (
        {"c": 64, "k": 32, "groups": 8, "size": (6, 9), "filter": (1, 3), "pads": (0, 1, 0, 1)},
        replace(TILE, block_n=16, warps_n=2),
    ),
    "walks longer than the filter, two tiles of an odd number": (
        {"c": 32, "groups": 8, "size": (9, 13), "n": 3},
        replace(TILE, tile_p=8, warps_m=1, tiles=2, early=1),
    ),
    "several tiles, more than a block of them is left": (
        {"c": 32, "groups": 4, "size": (9, 13), "n": 2},
        replace(TILE, tile_p=16, tiles=8),
    ),
    "a warp has several pairs of strips": (
        {"c": 32, "groups": 8, "size": (5, 30), "n": 2},
        replace(TILE, tile_p=4, tile_q=32, warps_m=1, tiles=2),
    ),
    "seven strips beside each other, in two bands": (
        {"c": 16, "groups": 2, "size": (6, 51), "n": 2},
        replace(TILE, tile_p=4, tile_q=56, block_n=16, warps_m=7),
    ),
    "a tile that is the image": (
        {"c": 32, "groups": 8, "size": (8, 16), "n": 2},
        replace(TILE, tile_p=8, tile_q=16, warps_m=1, tiles=2),
    ),
    "strided": ({"c": 64, "groups": 8, "size": (14, 11), "stride": (2, 2), "n": 2}, TILE),
    "strided, 4 channels": ({"c": 32, "groups": 8, "size": (9, 12), "stride": (2, 1)}, TILE),
    "strided along rows alone, several tiles": (
        {"c": 32, "groups": 2, "size": (9, 22), "stride": (1, 2), "n": 3},
        replace(TILE, tile_p=8, tiles=2),
    ),
    "dilated": (
        {"c": 32, "groups": 4, "size": (9, 12), "dilation": (2, 3), "pads": (2, 3, 2, 3)},
        TILE,
    ),
    "asymmetric": (
        {"c": 32, "groups": 8, "size": (6, 9), "filter": (3, 2), "pads": (0, 2, 1, 0)},
        TILE,
    ),
    "one tap": ({"c": 32, "groups": 4, "size": (6, 9), "filter": 1, "pads": 0, "n": 2}, TILE),
    "49 taps": (
        {"c": 16, "groups": 4, "size": (6, 9), "filter": 7},
        replace(TILE, tile_p=8, block_n=16, warps_n=2),
    ),
    "five taps a row": (
        {"c": 32, "groups": 8, "size": (6, 9), "filter": 5},
        replace(TILE, warps_n=2),
    ),
}


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_groups_agree_with_float64(
    case: str, residual: bool, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """With operands that differ from pixel to pixel, and with those that are the same in all (column_epilogue.cuh)."""
    given, schedule = CASES[case]
    problem = convolution(**given, **_TAIL | {"residual": residual})
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, TEMPLATE, problem, schedule)


@pytest.mark.parametrize("residual", [True, False])
def test_bfloat16_agrees_with_float64(
    residual: bool, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    tail = _TAIL | {"residual": residual, "bias": DType.BF16}
    problem = convolution(c=32, groups=8, size=(6, 9), n=2, precision=Precision.BF16, **tail)
    check_convolution(fast_execution, TEMPLATE, problem, TILE)


@pytest.mark.parametrize("groups", [4, 8])
def test_zeros_follow_the_last_filter(
    groups: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """The output's padding is partly in the last block, and partly a block of its own."""
    problem = convolution(c=32, groups=groups, size=(6, 9), n=2)
    one_more = Epilogue(apply("Add", Acc(), Scalar(1.0)))  # zeros stay zeros
    for padding, block_n in ((16, 32), (8, 16)):
        y = channels_last(DType.FP16, problem.k, problem.p, problem.q, padding)
        padded = replace(problem, y=y, epilogue=one_more)
        check_convolution(checking_execution, TEMPLATE, padded, replace(TILE, block_n=block_n))


def test_channels_that_are_no_whole_chunk_end_with_the_last_one(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=36, groups=9, size=(6, 9), n=2, padding=(4, 4))
    problem = replace(problem, epilogue=Epilogue())
    check_convolution(checking_execution, TEMPLATE, problem, replace(TILE, block_n=16))


def test_the_batch_is_decided_at_run_time(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=32, groups=8, size=(6, 9), n=Extent(2, free="batch"), **_TAIL)
    for tiles in (1, 4):
        check_convolution(
            checking_execution, TEMPLATE, problem, replace(TILE, tiles=tiles), batch=5
        )


SMALL = convolution(c=32, groups=8)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (convolution(c=32), "one group"),
        (convolution(c=48, groups=8), "8 groups of 6 channels and 6 filters: chunks are of 8"),
        (convolution(c=128, groups=2), "at most 32 channels"),
        (convolution(c=32, k=48, groups=8), "tiles have 8 filters"),
        (convolution(c=96, groups=3, filter=7), "224 words of filters and sums"),
        (convolution(c=32, groups=32), "32 groups of 1 channels"),
        (replace(SMALL, transposed=True), "transposed"),
        (convolution(c=32, groups=8, precision=Precision.TF32), "products of tf32"),
        (replace(SMALL, x=channels_last(DType.FP32, 32, 14, 14)), "x is fp32"),
        (replace(SMALL, x=channels_first(DType.FP16, 32, 14, 14)), "a stride of 196 along"),
        (replace(SMALL, x=replace(SMALL.x, alignment=8)), "aligned to 8 bytes"),
        (limited(convolution(c=32, groups=4, filter=1, pads=0)), "limits of the input"),
    ],
)
def test_refuses_in_words(problem: Convolution, words: str) -> None:
    reason = TEMPLATE.why_not(problem, H200)
    assert reason is not None
    assert words in reason


def test_refuses_gpus_without_its_products() -> None:
    assert "t4" in str(TEMPLATE.why_not(SMALL, find_target("t4"))).lower()


@pytest.mark.parametrize(
    "schedule",
    [
        TILE,
        replace(TILE, tile_q=12),
        replace(TILE, tile_p=3, tile_q=8),
        replace(TILE, block_n=16, warps_n=2),
        replace(TILE, block_n=24, warps_n=1),
        replace(TILE, tile_p=16, tile_q=32, block_n=64, warps_m=1),
    ],
    ids=str,
)
def test_what_is_legal_compiles_and_nothing_else(schedule: GroupedSchedule) -> None:
    (source,) = TEMPLATE.instantiate(SMALL, schedule)
    if TEMPLATE.why_illegal(SMALL, schedule, H200) is None:
        resources = load_nvrtc().compile(source, H200.arch).resources
        assert resources.spill_store_bytes == 0
    else:
        with pytest.raises(CompileError):
            load_nvrtc().compile(source, H200.arch)


WIDE = GroupedSchedule(14, 16, block_n=64, warps_m=2, warps_n=2, tiles=2, early=1)
LAYERS: dict[str, tuple[dict[str, Any], GroupedSchedule]] = {
    "4 channels": ({"c": 128, "groups": 32, "size": 56}, WIDE),
    "8 channels": ({"c": 256, "groups": 32, "size": 28}, WIDE),
    "16 channels": ({"c": 512, "groups": 32, "size": 28}, WIDE),
    "24 channels": ({"c": 192, "groups": 8, "size": 28}, replace(WIDE, block_n=48)),
    "32 channels": ({"c": 256, "groups": 8, "size": 28}, replace(WIDE, warps_n=4)),
    "4 channels, strided": (
        {"c": 128, "groups": 32, "size": 56, "stride": 2},
        replace(WIDE, tile_p=4, tile_q=8, warps_m=1, tiles=1),
    ),
}


@pytest.mark.parametrize(
    ("name", "precision"), each_value(LAYERS, [Precision.FP16, Precision.BF16])
)
def test_compiles_as_modelled(name: str, precision: Precision) -> None:
    given, schedule = LAYERS[name]
    problem = convolution(**given, n=32, precision=precision, bias=DType.FP32, relu=True)
    assert_compiles_as_modelled(TEMPLATE, problem, schedule, "hmma")


def test_a_step_down_the_strips_takes_few_instructions(tmp_path: Path) -> None:
    """512 sums of a warp: 24 products of 4 loads of fragments, 2 vectors stored; 100 in all as this was written."""
    given, schedule = LAYERS["8 channels"]
    problem = convolution(**given, n=32, bias=DType.FP32, relu=True)
    (source,) = TEMPLATE.instantiate(problem, replace(schedule, tiles=1))
    text = listing(load_nvrtc().compile(source, "sm_90a").cubin, tmp_path)
    counts = Counter(re.findall(r"\b(HMMA|LDSM|STSM|LDS.128|STG.E.128)\b", text))
    ahead, steps = 2, 3  # rows before the loop, and those of its body
    assert counts["HMMA"] == steps * 24 + 24
    assert counts["LDSM"] == (ahead + steps) * 6
    assert counts["STSM"] == steps * 2
    assert counts["STG.E.128"] == counts["LDS.128"] == steps * 2
    assert len(re.findall(r"^\s+/\*[0-9a-f]{4}\*/", text, re.MULTILINE)) < 1000


def test_estimates_of_patches_leave_out_what_nobody_loads() -> None:
    problem = convolution(c=64, groups=8, size=16, n=4)
    narrow, wide = (
        GroupTiles(problem, replace(TILE, tile_q=tile, warps_m=2, tile_p=4).columns())
        for tile in (16, 32)
    )
    assert wide.pixels[0] > narrow.pixels[0]
    assert wide.transactions(32)[1] == narrow.transactions(32)[1]
    assert wide.stored[0] == narrow.stored[0]


def test_a_step_takes_the_longer_the_more_filters_a_warp_has() -> None:
    """16 x 16 tiles of 32 filters of ResNeXt's 14 x 14: 6.1 us by eight warps of 16 filters on an H200, 8.3 by four of 32."""
    problem = convolution(c=512, groups=32, size=14, n=32, bias=DType.FP16, relu=True)
    tile = GroupedSchedule(16, 16, block_n=32, warps_m=4, warps_n=2, tiles=2, early=1)
    seconds = [
        float(estimate(TEMPLATE.work(problem, each.columns(), H200), bound(problem, H200), H200)[0])
        for each in (tile, replace(tile, warps_n=1))
    ]
    assert seconds[0] < seconds[1]


def test_issue_slots_go_on_while_other_warps_multiply() -> None:
    problem = convolution(c=128, groups=32, size=56, n=32)
    work = TEMPLATE.work(problem, WIDE.columns(), H200)
    assert work.slots_beside
    grids = [Grids.of(replace(work, slots_beside=beside), H200) for beside in (True, False)]
    assert grids[0].waves[0] < 0.9 * grids[1].waves[0]


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    problem = convolution(c=128, size=56, groups=32, **_TAIL)
    (source,) = TEMPLATE.instantiate(problem, replace(TILE, early=1))
    assert_golden("schedules/conv_grouped.cu", source.text)
