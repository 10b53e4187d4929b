"""Multicast to four blocks, and beside split-K: numbers under every check, launches, machine code, planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, plant, whole
from support.machine_code.disassembly import listing
from support.problems.network_layers import dense, resnet
from support.problems.warpgroup_layers import across, at, convolution, matmul

from wpk.build import load_nvrtc
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.launch import TensorMapArgument, WorkspaceArgument
from wpk.problems import Epilogue
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import COLUMNS, FOUR, ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
HALF, SINGLE, STRICT = Precision.FP16, Precision.TF32, Precision.FP32
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=2, early=1)
FOURS = replace(TILE, share=COLUMNS, shared_by=FOUR)
EIGHT = replace(FOURS, split=2, cluster=1)
"""Four blocks share B, and two such groups split the reduction."""


PRODUCTS = [
    ((200, 72, 264), HALF, FOURS),
    ((70, 136, 264), HALF, replace(TILE, block_n=32, share=ROWS, shared_by=FOUR, stages=3)),
    ((200, 72, 520), HALF, EIGHT),
    ((130, 72, 520), HALF, replace(EIGHT, cluster=0)),
    ((70, 136, 1032), HALF, replace(TILE, share=ROWS, split=4, cluster=1)),
    ((130, 136, 520), SINGLE, replace(FOURS, block_n=128, split=2, cluster=0)),
    ((70, 136, 260), STRICT, replace(TILE, share=ROWS, split=2, cluster=1)),
    ((200, 72, 264), HALF, replace(FOURS, persistent=4)),
]
"""Of five tiles of rows, of two and of four; of one to three of columns, some of which no block has."""


@pytest.mark.parametrize(("sizes", "precision", "schedule"), PRODUCTS, ids=str)
def test_products_agree_with_float64_under_every_check(
    sizes: tuple[int, int, int],
    precision: Precision,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem, used = matmul(*sizes, precision=precision), at(schedule, precision)
    check_matmul(checking_execution, GEMM, problem, used)


@pytest.mark.parametrize(
    "schedule",
    [
        replace(FOURS, block_n=32),
        replace(FOURS, share=ROWS, block_n=32, split=2, cluster=1),
        replace(TILE, share=COLUMNS, split=4, cluster=1),
    ],
    ids=str,
)
def test_convolutions_are_exact_on_integers(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = convolution(c=64, k=72, size=(9, 10), n=2)
    y = channels_last(DType.FP32, 72, 9, 10)
    problem = replace(problem, y=y, epilogue=Epilogue())
    check_convolution(checking_execution, CONV, problem, schedule, integers=True)


@pytest.mark.parametrize("rows", [1, 65, 300])
def test_rows_are_decided_at_run_time(
    rows: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(200, 72, 264), m=Extent(200, "n"))
    check_matmul(checking_execution, GEMM, problem, EIGHT, leading=rows)


@pytest.mark.parametrize("share", [ROWS, COLUMNS])
def test_a_b_that_lies_across_is_shared_by_its_depth(
    share: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    schedule = replace(FOURS, share=share, split=2, cluster=share - 1)
    check_matmul(checking_execution, GEMM, across(130, 136, 264), schedule)


def test_clusters_fill_the_grid_and_boxes_are_quarters() -> None:
    problem = resnet(192, 14, n=3)  # 588 rows, 10 tiles; 3 of columns
    rows = CONV.launches(problem, replace(EIGHT, share=ROWS))[0]
    assert (rows.grid[1:], rows.cluster) == ((4, 2), (1, 4, 2))
    for cluster in (0, 1):
        (columns,) = CONV.launches(problem, replace(EIGHT, cluster=cluster))
        assert columns.cluster == (4, 1, 1 + cluster)
        blocks = [evaluate(columns.grid[0], {"n": batch}) for batch in (1, 3, 64)]
        assert blocks == [4, 12, 196]
        boxes = [each.box for each in columns.arguments if isinstance(each, TensorMapArgument)]
        assert boxes == [(64, 64), (64, 1, 16)]
    assert not any(isinstance(each, WorkspaceArgument) for each in columns.arguments)


def test_partial_sums_have_memory_for_blocks_without_rows() -> None:
    (launch,) = CONV.launches(resnet(192, 14, n=3), replace(EIGHT, cluster=0))
    (partial,) = (each for each in launch.arguments if isinstance(each, WorkspaceArgument))
    assert evaluate(partial.bytes, {"n": 3}) == 12 * 3 * 2 * 64 * 64 * 4


REFUSALS = [
    ({"shared_by": 3}, "two or four blocks (shared_by=3)"),
    ({"share": 0}, "shared_by is 2 where nothing is multicast"),
    ({"split": 4, "cluster": 1}, "a cluster of at most 8"),
    ({"block_n": 16}, "whole patterns of the swizzle"),
    ({"block_m": 128, "block_n": 128}, "to four blocks along one of three"),
    ({"block_n": 32, "split": 2}, "at least 64 columns"),
    ({"split": 8}, "at least 4 boxes"),
    ({"block_m": 128, "share": COLUMNS, "shared_by": 2, "split": 2}, "the larger operand"),
    ({"persistent": 6}, "whole clusters"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSALS)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    problem = dense(197, 384, 1536)
    legal = replace(FOURS, block_n=64)
    assert GEMM.why_illegal(problem, legal, H200) is None
    reason = GEMM.why_illegal(problem, replace(legal, **changes), H200)
    assert reason is not None
    assert words in reason


def test_blocks_load_their_part_of_what_they_share() -> None:
    """Tiles of 64 x 64 in steps of 64: 8 KB each of A and B, whoever splits the reduction."""
    schedules = [TILE, replace(FOURS, share=ROWS), FOURS, replace(EIGHT, split=2)]
    columns = {
        name: np.concatenate([each.columns()[name] for each in schedules])
        for name, _ in TILE.parameters()
    }
    problem = dense(197, 768, 3072)
    work = GEMM.work(problem, columns, H200)
    steps = np.array([48, 48, 48, 24])
    np.testing.assert_allclose(
        work.block_transactions * H200.transaction_bytes / steps, 1024 * np.array([16, 10, 10, 10])
    )
    assert work.blocks.tolist() == [48, 48, 48, 96]
    narrow = GEMM.work(dense(130, 768, 3072), FOURS.columns(), H200)
    assert narrow.blocks.tolist() == [48]  # three tiles of rows fill a cluster of four


def test_multicast_with_and_without_split_k_is_pruned_apart() -> None:
    _, columns = GEMM.space(dense(197, 768, 3072), H200)
    families = GEMM.families(columns)
    ways = 2 * columns["cluster"] + (columns["split"] > 1) + 4 * (columns["share"] > 0)
    assert len(np.unique(families)) == len(np.unique(ways)) == 6
    for family in np.unique(families):
        assert len(np.unique(ways[families == family])) == 1


@pytest.mark.parametrize("name", ["conv_wgmma", "gemm_wgmma"])
def test_machine_code_copies_quarters_to_four_blocks(name: str, tmp_path: Path) -> None:
    problem = resnet(512, 14) if name == "conv_wgmma" else dense(197, 768, 3072)
    schedule = replace(EIGHT, block_n=128, stages=4)
    assert TEMPLATE_OF[name].why_illegal(problem, schedule, H200) is None
    (source,) = TEMPLATE_OF[name].instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert "serialized" not in kernel.log
    copies = Counter(w for w in listing(kernel.cubin, tmp_path).split() if w.startswith("UTMALDG"))
    assert sum(n for word, n in copies.items() if word.endswith("MULTICAST")) * 2 == copies.total()


FAULTS = [
    Fault(
        "blocks that split the reduction count as consumers",
        change("consumers_counted", "Group::blocks", "clusterBlocks()"),
    ),
    Fault(
        "tiles come to the blocks of another part",
        change("targets_chosen", "Group::first()", "0"),
    ),
    Fault(
        "tiles come to two of four blocks",
        change("targets_chosen", "1 << Blocks", "1 << Blocks / 2"),
    ),
    Fault(
        "blocks ask for parts by their rank in the cluster",
        change("part_chosen", "Group::member()", "clusterRank()"),
    ),
    Fault(
        "stages are released to the blocks of another part",
        change("block_told", "firstBlock + laneIndex()", "laneIndex()"),
    ),
    Fault(
        "partial sums are those of the tile's neighbours",
        change("parts_added", "firstBlock", "0"),
    ),
    Fault(
        "all blocks are of the first part's group",
        change("group_chosen", "clusterRank() / Blocks * Blocks", "0"),
    ),
]


def _check(template: Any, execution: Any, check_convolution: Callable[..., None]) -> None:
    """Three tiles of rows, and five steps for each of two parts."""
    problem = convolution(c=64, k=64, size=(9, 10), n=2)
    problem = replace(problem, y=channels_last(DType.FP32, 64, 9, 10), epilogue=Epilogue())
    check_convolution(execution, template, problem, EIGHT, integers=True)


def test_without_a_fault_the_copied_headers_are_right(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    _check(plant(CONV, Fault("", whole)), checking_execution, check_convolution)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    with pytest.raises((EmulatorError, AssertionError)):
        _check(plant(CONV, fault), checking_execution, check_convolution)
