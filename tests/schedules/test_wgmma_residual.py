"""Residuals that tensor copies bring to shared memory: numbers on the emulator under every check, faults, legality."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planter import Fault, change, drop, plant
from support.problems.warpgroup_layers import at, convolution, limited, matmul

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import COLUMNS, ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

CONV, GEMM = TEMPLATE_OF["conv_wgmma"], TEMPLATE_OF["gemm_wgmma"]
H200 = find_target("h200")
TILE = WgmmaSchedule(64, 64, 64, 2, early=1, residual=1)
TURNS = replace(TILE, block_n=128, persistent=1, pingpong=1, residual=2)
WIDEST = replace(TILE, block_m=128, block_n=256)
LARGEST_IN_TURNS = replace(TURNS, block_m=128, share=ROWS, persistent=132)


def pointwise(**more: Any) -> Convolution:
    """Three images of 5 x 9 pixels, 1 x 1; 136 columns end inside of a tile."""
    sizes = {"size": (5, 9), "n": 3, "c": 72, "k": 136}
    return convolution(filter=(1, 1), pads=(0, 0, 0, 0), **{**sizes, **more})


SCHEDULES = [
    replace(TILE, block_m=128, block_n=128),
    replace(TILE, block_m=128, block_n=128, persistent=1),
    TURNS,
]
MORE_SCHEDULES = [
    TILE,
    replace(TILE, block_n=112),  # boxes of 16 columns
    replace(TILE, block_n=32, early=0),
    replace(TILE, block_m=128, block_n=256),
    replace(TILE, share=ROWS),
    replace(TILE, share=COLUMNS),
    replace(TILE, persistent=2),
    replace(TILE, share=COLUMNS, persistent=2),
    replace(TILE, block_n=128, persistent=2, residual=2),
    replace(TILE, block_n=32, stages=3, persistent=3, residual=2),
    replace(TURNS, block_m=128, block_n=64, share=COLUMNS, persistent=2),
]


@pytest.mark.parametrize(
    "schedule", [*SCHEDULES, *(pytest.param(s, marks=pytest.mark.slow) for s in MORE_SCHEDULES)]
)
def test_every_kind_of_schedule_agrees_with_float64_under_every_check(
    schedule: WgmmaSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = pointwise()
    assert CONV.why_illegal(problem, schedule, H200) is None
    check_convolution(checking_execution, CONV, problem, schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [TILE, replace(TILE, persistent=2)], ids=str)
@pytest.mark.parametrize("precision", [Precision.BF16, Precision.TF32, Precision.FP32])
def test_other_precisions_are_right(
    precision: Precision,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = pointwise(precision=precision)
    check_convolution(checking_execution, CONV, problem, at(schedule, precision))


@pytest.mark.slow
def test_inputs_between_limits_have_residuals_too(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    check_convolution(checking_execution, CONV, limited(pointwise()), TILE)


@pytest.mark.slow
def test_a_padded_output_and_a_group_end_where_they_end(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    y = channels_last(DType.FP16, 67, 5, 9, padding=5)
    padded = replace(pointwise(k=67), y=y)
    bias = Tensor(DType.FP32, (0, 1, 0, 0), alignment=4)
    padded = replace(padded, epilogue=replace(padded.epilogue, operands=(bias, y)))
    assert CONV.why_illegal(padded, TILE, H200) is None
    check_convolution(checking_execution, CONV, padded, TILE)
    grouped = convolution(c=128, k=144, groups=2)
    assert CONV.why_illegal(grouped, TILE, H200) is None
    check_convolution(checking_execution, CONV, grouped, TILE)


@pytest.mark.parametrize("batch", [2, 7])
def test_the_batch_is_decided_at_run_time(
    batch: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = replace(pointwise(), n=Extent(5, "n"))
    schedule = replace(TILE, block_n=128, persistent=2, residual=2)
    check_convolution(checking_execution, CONV, problem, schedule, batch=batch)


def batched(residual: tuple[int, int, int, int]) -> Matmul:
    """Two times three products of 70 x 40 x 136, with a residual of these strides."""
    m, n, k = 70, 136, 40
    a, b, y = (Tensor(DType.FP16, (3 * r * c, r * c, c, 1)) for r, c in ((m, k), (k, n), (m, n)))
    plain = matmul(m, n, k, constant=False)
    bias, _ = plain.epilogue.operands
    epilogue = replace(plain.epilogue, operands=(bias, Tensor(DType.FP16, residual)))
    return replace(plain, a=a, b=b, y=y, epilogue=epilogue, batch=(Extent(2), 3))


OWN, SHARED = (3 * 70 * 136, 70 * 136, 136, 1), (0, 70 * 136, 136, 1)


@pytest.mark.parametrize("residual", [pytest.param(OWN, marks=pytest.mark.slow), SHARED])
def test_matrices_of_a_batch_have_residuals_of_their_own_or_share_one(
    residual: tuple[int, int, int, int],
    checking_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    problem = batched(residual)
    assert GEMM.why_illegal(problem, TILE, H200) is None
    check_matmul(checking_execution, GEMM, problem, TILE)


CASES = [
    (
        Fault("the residual is read before it is there", drop("piece_awaited")),
        replace(TILE, block_n=256),
    ),
    (
        Fault(
            "a piece is overwritten before all have read it",
            change(
                "piece_acquired",
                "barriers.acquire(number, state.phase ^ 1, ",
                "arriveExpectBytes(barriers.full(number), ",
            ),
        ),
        TURNS,
    ),
]
MORE_CASES = [
    (fault, TURNS)
    for fault in (
        Fault("a piece is kept", drop("piece_released")),
        Fault(
            "rows are counted from the output's first",
            change("chunk_read", "row - firstRow", "row"),
        ),
        Fault("groups have one place", change("own_pieces", "(group, ", "(0, ")),
        Fault("rounds are not told apart", change("own_pieces", "turn ^ group", "0")),
        Fault(
            "all tiles have the first one's residual",
            change("next_residual", "tiles.advance()", ""),
        ),
    )
]


@pytest.mark.parametrize(
    ("fault", "schedule"),
    [
        *(pytest.param(*case, id=case[0].name) for case in CASES),
        *(pytest.param(*case, id=case[0].name, marks=pytest.mark.slow) for case in MORE_CASES),
    ],
)
def test_a_planted_fault_is_seen(
    fault: Fault,
    schedule: WgmmaSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    template = plant(CONV, fault)
    with pytest.raises((EmulatorError, AssertionError)):
        check_convolution(checking_execution, template, pointwise(), schedule)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"residual": 3}, "0 to 2"),
        ({"residual": 2}, "has the residual of one"),
        ({"split": 2, "cluster": 1}, "where reductions are whole"),
        ({"persistent": 2, "pingpong": 1}, "a tile of the residual each"),
        ({"block_m": 128, "block_n": 256, "stages": 4}, "bytes of shared memory"),
    ],
)
def test_refuses_in_words(changes: dict[str, int], words: str) -> None:
    problem = pointwise(n=64, c=512, k=512)
    assert CONV.why_illegal(problem, TILE, H200) is None
    reason = CONV.why_illegal(problem, replace(TILE, **changes), H200)
    assert reason is not None
    assert words in reason


@pytest.mark.parametrize(
    "residual",
    [
        Tensor(DType.FP16, (45 * 136, 1, 9 * 136, 136), alignment=8),
        Tensor(DType.FP16, (0, 1, 9 * 136, 136)),
        Tensor(DType.FP16, (45 * 136, 45, 9, 1)),
        Tensor(DType.INT8, (45 * 136, 1, 9 * 136, 136)),
    ],
    ids=["at 8 bytes", "of all images", "channels first", "of bytes"],
)
def test_what_tensor_copies_cannot_bring_the_epilogue_reads(residual: Tensor) -> None:
    problem = pointwise()
    bias, _ = problem.epilogue.operands
    problem = replace(problem, epilogue=replace(problem.epilogue, operands=(bias, residual)))
    assert CONV.axes(problem, H200)["residual"] == (0,)
    assert CONV.why_illegal(problem, replace(TILE, residual=0), H200) is None
    reason = CONV.why_illegal(problem, TILE, H200)
    assert reason is not None
    assert "no operand of the epilogue" in reason


def test_groups_have_residuals_where_their_columns_begin_at_whole_16_bytes() -> None:
    for filters, values in ((72, (0, 1)), (36, (0,))):
        problem = convolution(c=128, k=2 * filters, groups=2)
        assert CONV.axes(problem, H200)["residual"] == values


def test_it_is_tried_where_there_is_a_residual_and_models_prefer_it_where_memory_answers() -> None:
    problem = pointwise(n=32, c=128, k=512, size=(28, 28))
    assert CONV.axes(replace(problem, epilogue=Epilogue()), H200)["residual"] == (0,)
    assert CONV.axes(problem, H200)["residual"] == (0, 1, 2)
    _, columns = CONV.space(problem, H200)
    seconds = estimate(CONV.work(problem, columns, H200), bound(problem, H200), H200)
    brought = columns["residual"] > 0
    assert seconds[brought].min() < seconds[~brought].min()
    assert np.isfinite(seconds).all()


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(WIDEST, id="widest", marks=pytest.mark.slow),
        pytest.param(LARGEST_IN_TURNS, id="in turns"),
    ],
)
def test_machine_code_keeps_its_registers(schedule: WgmmaSchedule) -> None:
    problem = pointwise(n=32, c=256, k=1024, size=(14, 14))
    assert CONV.why_illegal(problem, schedule, H200) is None
    (source,) = CONV.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    assert "serialized" not in kernel.log
