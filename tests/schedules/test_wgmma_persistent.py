"""Blocks that stay for several tiles: numbers on the emulator under every check, grids, machine code, models."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.each_value import each_value
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
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Convolution, Epilogue
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=3, early=1, persistent=2)
PRECISIONS = [Precision.FP16, Precision.BF16, Precision.TF32, Precision.FP32]


def single(**more: Any) -> dict[str, Any]:
    return {"filter": (1, 1), "pads": (0, 0, 0, 0), **more}


# Tiles of 64 x 64, odd and even numbers of them; one to many steps each.
LAYERS: dict[str, dict[str, Any]] = {
    "one step, 3 x 3 tiles": single(size=(5, 9), n=3, c=64, k=136),
    "less than a step, 5 tiles": single(size=(9, 11), n=3, c=24, k=64),
    "three steps, 4 x 2 tiles": single(size=(11, 20), c=136, k=72),
    "3x3, 3 tiles": {"size": (7, 7), "n": 3},
    "stride 2, 1x1, padded": single(size=(18, 14), stride=(2, 2), n=2, c=136, k=136, padding=8),
    "asymmetric, dilated": {
        "size": (9, 11),
        "filter": (3, 2),
        "dilation": (2, 3),
        "pads": (2, 3, 2, 0),
        "k": 136,
    },
}


@pytest.mark.parametrize("persistent", [1, 2])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", LAYERS)
def test_convolutions_agree_with_float64_under_every_check(
    case: str,
    precision: Precision,
    persistent: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(precision=precision, **LAYERS[case])
    schedule = at(replace(TILE, persistent=persistent), precision)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize(
    "schedule",
    [
        WgmmaSchedule(128, 64, 64, 2, persistent=2),
        WgmmaSchedule(128, 128, 64, 4, early=1, persistent=3),
        WgmmaSchedule(64, 256, 64, 3, early=1, persistent=1),
        WgmmaSchedule(128, 64, 192, 2, persistent=4),
        WgmmaSchedule(64, 16, 256, 2, early=1, persistent=5),
        WgmmaSchedule(64, 128, 64, 8, early=1, persistent=4),
        WgmmaSchedule(128, 32, 64, 6, early=1, persistent=7),
        WgmmaSchedule(192, 128, 64, 2, early=1, persistent=2),
    ],
    ids=str,
)
def test_every_kind_of_schedule_is_exact_on_integers(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """264 columns end inside of a tile and of what is staged together."""
    problem = convolution(c=128, k=264, size=(9, 10), n=3)
    y = channels_last(DType.FP32, 264, 9, 10)
    problem = replace(problem, y=y, epilogue=Epilogue())
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule, integers=True)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_padding_of_the_output_is_zero(
    precision: Precision, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(precision=precision, **single(size=(9, 9), n=2, k=67))
    y = channels_last(precision.storage, 67, 9, 9, padding=5)
    problem = replace(problem, y=y, epilogue=Epilogue())
    schedule = at(TILE, precision)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_batch_is_decided_at_run_time(
    batch: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Batch 1 has fewer tiles than there are blocks to stay, batch 7 a part of a round more."""
    problem = replace(convolution(size=(5, 9), k=72), n=Extent(5, "n"))
    schedule = replace(TILE, persistent=4)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule, batch=batch)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_between_limits_are_right(
    precision: Precision, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    plain = convolution(**single(c=72, k=72, size=(8, 6), n=5, precision=precision))
    problem = limited(replace(plain, epilogue=Epilogue()))
    schedule = at(TILE, precision)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "case", [((130, 136, 200), True), ((65, 136, 264), False), ((300, 40, 64), True)]
)
def test_products_agree_with_float64_under_every_check(
    case: tuple[tuple[int, int, int], bool],
    precision: Precision,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    shape, constant = case
    problem = matmul(*shape, constant=constant, precision=precision)
    schedule = at(TILE, precision)
    assert GEMM.why_illegal(problem, schedule, H200) is None
    check_matmul(checking_execution, GEMM, problem, schedule)


@pytest.mark.parametrize("rows", [1, 64, 200])
def test_rows_are_decided_at_run_time(
    rows: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(100, 136, 264), m=Extent(100, "n"))
    check_matmul(checking_execution, GEMM, problem, replace(TILE, persistent=3), leading=rows)


def test_a_b_that_lies_across_is_right(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = across(70, 136, 264)
    assert GEMM.why_illegal(problem, TILE, H200) is None
    check_matmul(checking_execution, GEMM, problem, TILE)


def test_each_tile_is_computed_once(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """As many stores to shared memory as where every tile has a block, and a tile more has more."""
    problem = convolution(**single(size=(9, 11), n=3, c=72, k=136))
    stored = []
    for changes in ({"persistent": 0}, {"persistent": 1}, {"persistent": 4}, {"block_n": 128}):
        schedule = replace(TILE, stages=2, **changes)
        check_convolution(checking_execution, CONV, problem, schedule)
        stored.append(checking_execution.statistics.phases["store"])
    assert stored[0] == stored[1] == stored[2] < stored[3]


REFUSALS = [
    ({"persistent": -1}, "a number of blocks, or 0 (persistent=-1)"),
    ({"split": 2, "stages": 2}, "whole reductions"),
    ({"share": ROWS, "block_n": 64}, "whole clusters"),
    ({"persistent": 6}, "fewer persistent blocks than tiles"),
    ({"stages": 8}, "no more stages than a block has steps"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSALS)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    """Of 3 x 2 tiles, of one step each."""
    problem = convolution(**single(size=(9, 15), c=64, k=128))
    legal = replace(TILE, persistent=1)
    assert CONV.why_illegal(problem, legal, H200) is None
    reason = CONV.why_illegal(problem, replace(legal, **changes), H200)
    assert reason is not None
    assert words in reason


def test_matrices_of_a_batch_have_blocks_of_their_own() -> None:
    problem = across(70, 136, 136, (2, 3))
    reason = GEMM.why_illegal(problem, TILE, H200)
    assert reason is not None
    assert "one matrix" in reason


def test_blocks_that_stay_are_held_at_once_and_no_more_than_tiles() -> None:
    problem = resnet(n=64)  # 12544 rows, 98 tiles of 128; 4 of columns
    schedule = WgmmaSchedule(128, 64, 64, 3, persistent=264)  # two of 110 kB an SM
    assert CONV.why_illegal(problem, schedule, H200) is None
    reason = CONV.why_illegal(problem, replace(schedule, stages=4), H200)
    assert reason is not None
    assert "hold all persistent blocks" in reason
    (launch,) = CONV.launches(problem, schedule)
    blocks = [tuple(evaluate(size, {"n": n}) for size in launch.grid) for n in (1, 3, 64, 65)]
    assert blocks == [(8, 1, 1), (20, 1, 1), (264, 1, 1), (264, 1, 1)]


@pytest.mark.parametrize(
    ("name", "problem", "values"),
    [
        ("conv_wgmma", resnet(), (0,)),
        ("conv_wgmma", resnet(64, 56), (0,)),
        ("conv_wgmma", resnet(n=64), (0, 132, 264, 396, 528)),
        ("gemm_wgmma", dense(), (0,)),
        ("gemm_wgmma", dense(4096, 768, 768), (0, 132, 264, 396, 528)),
    ],
)
def test_staying_is_tried_where_tiles_are_more_than_fit_at_once(
    name: str, problem: Any, values: tuple[int, ...]
) -> None:
    template = TEMPLATE_OF[name]
    assert template.axes(problem, H200)["persistent"] == values
    _, columns = template.space(problem, H200)
    stay = columns["persistent"] > 0
    assert stay.any() == (len(values) > 1)
    families = template.families(columns)
    assert not set(families[stay]) & set(families[~stay])


def pointwise() -> Convolution:
    """1 x 1, 64 to 64 channels at 56 x 56, batch 64: one step a tile."""
    return replace(convolution(**single(size=(56, 56), n=64)), n=Extent(64, "n"))


def test_models_see_that_the_ends_are_once_a_block() -> None:
    problem = pointwise()  # 200704 rows, 1568 tiles of 128
    alone = WgmmaSchedule(128, 64, 64, 2)
    schedules = [alone, replace(alone, stages=3, persistent=264)]
    columns = {
        name: np.concatenate([s.columns()[name] for s in schedules])
        for name, _ in TILE.parameters()
    }
    work = CONV.work(problem, columns, H200)
    assert work.blocks.tolist() == [1568, 264]
    assert work.steps.tolist() == [1, 6]
    moved = work.blocks * (work.block_transactions + work.store_bytes)
    np.testing.assert_allclose(moved[0], moved[1])
    limit = bound(problem, H200)
    seconds = estimate(work, limit, H200)
    assert limit.seconds <= seconds[1] < seconds[0]
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()


@pytest.mark.parametrize(
    ("name", "precision"), each_value(["conv_wgmma", "gemm_wgmma"], PRECISIONS)
)
def test_machine_code_keeps_its_registers(name: str, precision: Precision) -> None:
    """Nothing spills, and ptxas waits for no product by itself."""
    problem = resnet(n=32, precision=precision)
    if name == "gemm_wgmma":
        problem = dense(512, 512, 512, precision=precision)
    widest = 128 if precision is Precision.FP32 else 256
    for tile in (TILE, replace(TILE, block_n=widest, stages=2), replace(TILE, block_m=128)):
        (source,) = TEMPLATE_OF[name].instantiate(problem, at(tile, precision))
        kernel = load_nvrtc().compile(source, "sm_90a")
        assert not kernel.resources.spills, tile
        assert "serialized" not in kernel.log, tile


def legal_schedules_that_stay(count: int) -> list[Any]:
    """Some of every precision, widest ones among them."""
    cases = [
        ("conv_wgmma", pointwise()),
        *(("conv_wgmma", resnet(n=64, precision=precision)) for precision in PRECISIONS),
        *(("gemm_wgmma", dense(4096, 768, 768, precision=precision)) for precision in PRECISIONS),
    ]
    found = []
    for seed, (name, problem) in enumerate(cases):
        _, columns = TEMPLATE_OF[name].space(problem, H200)
        stay = np.flatnonzero(columns["persistent"] > 0)
        wide = stay[columns["block_n"][stay] == columns["block_n"][stay].max()]
        rng = np.random.default_rng(seed)
        rows = {int(wide[-1]), *map(int, rng.permutation(stay)[:count])}
        found += [(name, problem, TEMPLATE_OF[name].schedule(columns, row)) for row in rows]
    return found


@pytest.mark.exhaustive
def test_legal_schedules_do_not_spill() -> None:
    drawn = legal_schedules_that_stay(8)
    assert len(drawn) >= 60
    for name, problem, schedule in drawn:
        (source,) = TEMPLATE_OF[name].instantiate(problem, schedule)
        assert not load_nvrtc().compile(source, "sm_90a").resources.spills, schedule
