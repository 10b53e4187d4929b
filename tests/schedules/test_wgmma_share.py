"""Tiles that two blocks share: numbers on the emulator under every check, grids, boxes, what blocks then load."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.each_value import each_value
from support.machine_code.disassembly import listing
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
from wpk.launch import TensorMapArgument
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Epilogue
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import COLUMNS, FOUR, PAIR, ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=3)
SHARE = pytest.mark.parametrize("share", [ROWS, COLUMNS])
PRECISIONS = [Precision.FP16, Precision.TF32, Precision.FP32]


# Odd and even numbers of tiles along each axis; two or three tiles of 64.
LAYERS: dict[str, dict[str, Any]] = {
    "three of 7x7": {"n": 3, "k": 136},
    "9x10": {"size": (9, 10), "k": 128, "c": 72},
    "stride 2, three of 11x16": {"size": (11, 16), "stride": (2, 2), "n": 3, "k": 72},
    "stride 2, 1x1": {
        "size": (18, 14),
        "stride": (2, 2),
        "filter": (1, 1),
        "pads": (0, 0, 0, 0),
        "n": 2,
        "k": 136,
        "c": 136,
    },
    "asymmetric, dilated": {
        "size": (9, 11),
        "filter": (3, 2),
        "dilation": (2, 3),
        "pads": (2, 3, 2, 0),
        "k": 72,
    },
    "1x1 is a matrix": {
        "size": (5, 9),
        "n": 3,
        "filter": (1, 1),
        "pads": (0, 0, 0, 0),
        "c": 264,
        "k": 136,
    },
}


@SHARE
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", LAYERS)
def test_convolutions_agree_with_float64_under_every_check(
    case: str,
    precision: Precision,
    share: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = convolution(precision=precision, **LAYERS[case])
    schedule = at(replace(TILE, share=share), precision)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.parametrize(
    "schedule",
    [
        WgmmaSchedule(128, 64, 64, 2, share=ROWS),
        WgmmaSchedule(128, 128, 64, 4, early=1, share=ROWS),
        WgmmaSchedule(64, 256, 64, 3, early=1, share=COLUMNS),
        WgmmaSchedule(128, 128, 192, 2, share=COLUMNS),
        WgmmaSchedule(64, 64, 256, 2, early=1, share=COLUMNS),
        WgmmaSchedule(64, 128, 64, 8, early=1, share=ROWS),
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


@SHARE
@pytest.mark.parametrize("batch", [1, 3, 5])
def test_a_batch_that_leaves_a_block_without_rows_is_right(
    batch: int, share: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    """Batch 1 is one tile of rows, where the schedule was chosen for two."""
    problem = replace(convolution(size=(5, 9), k=72), n=Extent(2, "n"))
    schedule = replace(TILE, share=share, early=1)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule, batch=batch)


@SHARE
@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_between_limits_are_right(
    precision: Precision,
    share: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    shape: dict[str, Any] = {"size": (8, 6), "n": 2, "filter": (1, 1), "pads": (0, 0, 0, 0)}
    plain = convolution(c=72, k=72, **shape, precision=precision)
    problem = limited(replace(plain, epilogue=Epilogue()))
    schedule = at(replace(TILE, stages=2, share=share), precision)
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@SHARE
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", [((130, 72, 200), True), ((65, 136, 264), False)])
def test_products_agree_with_float64_under_every_check(
    case: tuple[tuple[int, int, int], bool],
    precision: Precision,
    share: int,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    shape, constant = case
    problem = matmul(*shape, constant=constant, precision=precision)
    schedule = at(replace(TILE, share=share), precision)
    assert GEMM.why_illegal(problem, schedule, H200) is None
    check_matmul(checking_execution, GEMM, problem, schedule)


@SHARE
@pytest.mark.parametrize("rows", [1, 64, 200])
def test_rows_are_decided_at_run_time(
    rows: int, share: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(100, 72, 264), m=Extent(100, "n"))
    schedule = replace(TILE, early=1, share=share)
    check_matmul(checking_execution, GEMM, problem, schedule, leading=rows)


@SHARE
@pytest.mark.parametrize("block_k", [64, 192])
def test_a_b_that_lies_across_is_shared_by_its_depth(
    block_k: int, share: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = across(70, 136, 264)
    schedule = replace(TILE, block_k=block_k, stages=2, share=share)
    assert GEMM.why_illegal(problem, schedule, H200) is None
    check_matmul(checking_execution, GEMM, problem, schedule)


def test_matrices_of_a_batch_share_rows_but_not_columns(
    checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = across(70, 72, 136, (2, 3))
    check_matmul(checking_execution, GEMM, problem, replace(TILE, share=ROWS))
    reason = GEMM.why_illegal(problem, replace(TILE, share=COLUMNS), H200)
    assert reason is not None
    assert "two matrices" in reason


REFUSALS = [
    ({"share": 3}, "2 (of B) (share=3)"),
    ({"share": ROWS, "block_n": 16}, "at least 32 columns"),
    ({"share": ROWS, "block_n": 128}, "an axis of two"),
    ({"share": COLUMNS, "block_m": 128}, "an axis of two"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSALS)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    reason = CONV.why_illegal(convolution(size=(9, 10), k=128), replace(TILE, **changes), H200)
    assert reason is not None
    assert words in reason


def test_pairs_fill_the_grid_and_boxes_are_halves() -> None:
    problem = resnet(192, 14, n=3)  # 588 rows, 10 tiles; 3 of columns
    whole = CONV.launches(problem, TILE)[0]
    assert (whole.grid[1], whole.cluster) == (3, (1, 1, 1))
    rows, columns = (CONV.launches(problem, replace(TILE, share=s))[0] for s in (ROWS, COLUMNS))
    assert (rows.grid[1], rows.cluster) == (4, (1, 2, 1))
    assert (columns.grid[1], columns.cluster) == (3, (2, 1, 1))
    for batch in (1, 2, 3, 64):
        tiles = evaluate(whole.grid[0], {"n": batch})
        assert evaluate(columns.grid[0], {"n": batch}) == tiles + tiles % 2
        assert evaluate(rows.grid[0], {"n": batch}) == tiles
    boxes = [
        [argument.box for argument in launch.arguments if isinstance(argument, TensorMapArgument)]
        for launch in (whole, rows, columns)
    ]
    assert boxes == [
        [(64, 64), (64, 1, 64)],
        [(64, 32), (64, 1, 64)],
        [(64, 64), (64, 1, 32)],
    ]


def test_blocks_load_half_of_what_they_share() -> None:
    problem = resnet(n=32)  # 6272 rows, 49 tiles of 128; 2 of columns
    schedules = [WgmmaSchedule(128, 128, 64, 4, share=share) for share in (0, ROWS, COLUMNS)]
    columns = {
        name: np.concatenate([s.columns()[name] for s in schedules])
        for name, _ in TILE.parameters()
    }
    work = CONV.work(problem, columns, H200)
    np.testing.assert_allclose(
        work.block_transactions / work.block_transactions[0], [1, 0.75, 0.75]
    )
    assert work.blocks.tolist() == [98, 98, 100]  # a block without rows makes the last pair whole
    limit = bound(problem, H200)
    seconds = estimate(work, limit, H200)
    assert (seconds[1:] < seconds[0]).all()
    assert (seconds >= limit.seconds).all()


@pytest.mark.parametrize(
    ("name", "problem", "values"),
    [
        ("conv_wgmma", resnet(), (0, ROWS, COLUMNS)),
        ("conv_wgmma", resnet(64, 7), (0,)),
        ("conv_wgmma", resnet(n=32), (0, ROWS, COLUMNS)),
        ("gemm_wgmma", dense(), (0, ROWS, COLUMNS)),
        ("gemm_wgmma", dense(4096, 4096, 4096), (0, ROWS, COLUMNS)),
        ("gemm_wgmma", dense(4096, 4096, 64), (0,)),
    ],
)
def test_sharing_is_tried_where_tiles_and_parts_fill_the_gpu(
    name: str, problem: Any, values: tuple[int, ...]
) -> None:
    axes = TEMPLATE_OF[name].axes(problem, H200)
    assert axes["share"] == values
    few = len(axes["persistent"]) == 1
    assert axes["shared_by"] == ((PAIR, FOUR) if few and len(values) > 1 else (PAIR,))


@SHARE
@pytest.mark.parametrize(
    ("name", "precision"), each_value(["conv_wgmma", "gemm_wgmma"], PRECISIONS)
)
def test_machine_code_copies_what_is_shared_to_both_blocks(
    name: str, precision: Precision, share: int, tmp_path: Path
) -> None:
    """And waits for no other memory while it multiplies: the fence is the first barrier's alone."""
    problem: Any = resnet(n=32, precision=precision)
    if name == "gemm_wgmma":
        problem = dense(512, 512, 512, precision=precision)
    schedule = at(WgmmaSchedule(64, 128, 64, 4, early=1, share=share), precision)
    (source,) = TEMPLATE_OF[name].instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert "serialized" not in kernel.log
    text = listing(kernel.cubin, tmp_path)
    copies = Counter(word for word in text.split() if word.startswith("UTMALDG"))
    multicast = {word for word in copies if word.endswith("MULTICAST")}
    assert sum(copies[word] for word in multicast) * 2 == copies.total()
    if name == "conv_wgmma":
        assert any("IM2COL" in word for word in multicast) == (share == ROWS)
    assert text.count("MEMBAR.ALL.GPU") == 1
