"""Feed-forward blocks by warpgroups: numbers in float64 under every check, refusals, machine code, planted faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.beside_products import asked_for_ahead, computed_beside
from support.machine_code.compiled_units import H200, NEAR, assert_legal_compiles_without_spilling
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import touched_in_flight
from support.problems.feed_forwards import check, feed_forward

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.libraries.reference import random_case
from wpk.performance import bound, estimate
from wpk.problems import FeedForward, NormKind
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.wgmma.boxed_rows import tight_swizzle
from wpk.schedules.wgmma.feed_forward import FeedForwardWgmmaSchedule, FeedForwardWgmmaTemplate
from wpk.search.models import WAVES, least_seconds
from wpk.targets.registry import find_target

TEMPLATE = FeedForwardWgmmaTemplate()
SCHEDULE = FeedForwardWgmmaSchedule(warpgroups=2, block_n=32, stages=2, early=1)
ALONE = replace(SCHEDULE, warpgroups=1)
KEPT = replace(ALONE, block_n=64, stages=6, row_stages=2, persistent=2)
WIDE = FeedForwardWgmmaSchedule(
    warpgroups=3, block_n=64, stages=6, row_stages=1, persistent=2, early=1
)
LAYER, RMS = NormKind.LAYER, NormKind.RMS

CASES: dict[str, tuple[FeedForward, FeedForwardWgmmaSchedule]] = {
    "a tile": (feed_forward(64, 16, 32), replace(ALONE, stages=1, early=0)),
    "odd everything": (feed_forward(131, 48, 200, n=96, norm=RMS), SCHEDULE),
    "normed rows of Swin": (feed_forward(197, 96, 384, norm=LAYER), SCHEDULE),
    "weights that stay": (feed_forward(197, 96, 384, norm=LAYER), KEPT),
    "weights of one step": (
        feed_forward(197, 24, 40, norm=LAYER),
        replace(ALONE, block_n=48, stages=1, persistent=2),
    ),
    "persistent, weights come again": (
        feed_forward(323, 96, 288, norm=LAYER, scaled=True),
        replace(KEPT, stages=2),
    ),
    "three warpgroups": (
        feed_forward(161, 192, 320, norm=LAYER),
        replace(SCHEDULE, warpgroups=3, stages=3),
    ),
    "turns": (
        feed_forward(197, 96, 384, norm=LAYER),
        replace(SCHEDULE, stages=12, persistent=1, pingpong=1),
    ),
    "turns of three": (
        feed_forward(450, 72, 200, norm=LAYER),
        replace(SCHEDULE, warpgroups=3, stages=3, persistent=2, row_stages=2, pingpong=1),
    ),
    "turns of one step": (
        feed_forward(300, 40, 32),
        replace(SCHEDULE, stages=1, persistent=1, pingpong=1),
    ),
    "rows with gaps": (feed_forward(70, 40, 72, n=24, gap=8), replace(ALONE, persistent=1)),
    "stored by columns": (feed_forward(131, 160, 96, residual=False), SCHEDULE),
    "stored by columns, persistent": (
        feed_forward(197, 64, 96, n=72, residual=False, norm=LAYER),
        replace(ALONE, persistent=3),
    ),
    "odd columns": (feed_forward(67, 40, 48, n=37, bias=DType.FP32), ALONE),
    "hidden columns of no activation": (feed_forward(67, 33, 50, n=20, activation="none"), ALONE),
    "numbers of nothing that are not zero": (
        feed_forward(67, 32, 40, activation="sigmoid"),
        ALONE,
    ),
    "the widest rows": (
        feed_forward(70, 256, 80, norm=LAYER),
        replace(ALONE, block_n=16, early=0),
    ),
    "a row": (feed_forward(1, 96, 64, norm=LAYER), ALONE),
    "registers handed over": (
        feed_forward(140, 256, 192, norm=LAYER),
        replace(SCHEDULE, block_n=64),
    ),
    "a producer of four warps, weights that stay": (feed_forward(450, 96, 384, norm=LAYER), WIDE),
    "a producer of four warps, a ring of weights": (
        feed_forward(450, 96, 384, norm=LAYER),
        replace(WIDE, stages=2),
    ),
}
PADDED = "hidden columns of no activation"
"""x has rows of whole runs, of which the last elements are zeros."""


def _padded(problem: FeedForward) -> FeedForward:
    """Rows of x of whole pieces of 16 bytes."""
    x = replace(problem.x, strides=(40, 1), padding=7, alignment=16)
    return replace(problem, x=x)


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    problem, schedule = CASES[case]
    problem = _padded(problem) if case == PADDED else problem
    assert TEMPLATE.why_not(problem, H200) is None
    check(checking_execution, problem, schedule)


@pytest.mark.parametrize("case", ["odd everything", "weights that stay", "stored by columns"])
def test_bf16_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    sizes = {
        "odd everything": {"m": 131, "k": 48, "hidden": 200, "n": 96, "norm": RMS},
        "weights that stay": {"m": 197, "k": 96, "hidden": 384, "norm": LAYER},
        "stored by columns": {"m": 131, "k": 160, "hidden": 96, "residual": False},
    }[case]
    given: dict[str, Any] = {**sizes, "precision": Precision.BF16}
    check(checking_execution, feed_forward(**given), CASES[case][1])


def test_rows_may_be_free(checking_execution: Any) -> None:
    problem = feed_forward(150, 96, 128, norm=LAYER, free="n")
    assert TEMPLATE.why_illegal(problem, KEPT, H200) is not None, "of fewer steps than stages"
    for schedule in (SCHEDULE, replace(KEPT, stages=2)):
        check(checking_execution, problem, schedule)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (feed_forward(64, 264, 64), "rows of 264 and 264, at most 256"),
        (feed_forward(64, 20, 64), "x has a stride of 40 bytes; tensor copies need multiples"),
        (
            replace(
                feed_forward(64, 64, 64), x=replace(feed_forward(64, 64, 64).x, strides=(0, 1))
            ),
            "x is broadcast along its rows",
        ),
        (
            replace(
                feed_forward(64, 64, 64),
                hidden=replace(
                    feed_forward(64, 64, 64).hidden, operands=(feed_forward(64, 64, 64).y,)
                ),
            ),
            "an operand of the hidden rows differs from row to row",
        ),
    ],
)
def test_says_what_it_does_not_compute(problem: FeedForward, words: str) -> None:
    assert words in str(TEMPLATE.why_not(problem, H200))


def test_only_hopper_has_warpgroups() -> None:
    problem = feed_forward(64, 64, 64)
    assert "no products of warpgroups" in str(TEMPLATE.why_not(problem, find_target("sm_80")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 4}, "a block has 1 to 3 consumers"),
        ({"block_n": 40}, "whole slices of 16 hidden columns"),
        ({"stages": 5}, "no more stages than there are steps"),
        ({"pingpong": 2}, "pingpong is 0 or 1"),
        ({"warpgroups": 1, "pingpong": 1}, "one warpgroup takes no turns"),
        ({"row_stages": 2}, "a block with one tile has the rows of one"),
        ({"row_stages": 3}, "one or two tiles of rows"),
        ({"early": 2}, "early is 0 or 1"),
    ],
)
def test_what_is_illegal_is_said_and_does_not_compile(changes: dict[str, int], words: str) -> None:
    problem, schedule = feed_forward(197, 96, 128), replace(SCHEDULE, **changes)
    assert words in str(TEMPLATE.why_illegal(problem, schedule, H200))
    (source,) = TEMPLATE.instantiate(problem, schedule)
    with pytest.raises(CompileError, match=words):
        load_nvrtc().compile(source, H200.arch)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 3, "block_n": 64}, "at most 160 registers: more would spill"),
        ({"stages": 24}, "bytes of shared memory"),
        ({"stages": 5}, "weights of all steps stay, or those of a few steps come in turns"),
        ({"persistent": 528}, "hold all persistent blocks at once"),
    ],
)
def test_says_what_does_not_fit(changes: dict[str, int], words: str) -> None:
    problem = feed_forward(100352, 192, 768, norm=LAYER)
    assert words in str(TEMPLATE.why_illegal(problem, replace(SCHEDULE, **changes), H200))


@pytest.mark.parametrize("columns", [16, 24, 32, 48, 72, 80, 96, 128, 144, 160, 192, 256])
def test_boxes_end_with_the_fewest_zeros(columns: int) -> None:
    def zeros(swizzle: int) -> int:
        return -columns * 2 % swizzle

    chosen = tight_swizzle(columns)
    fewest = min(map(zeros, (32, 64, 128)))
    assert zeros(chosen) == fewest
    assert all(zeros(wider) > fewest for wider in (64, 128) if wider > chosen)


MACHINE_CODE = {
    "Swin, stage 1": (feed_forward(100352, 96, 384, norm=LAYER), (3, 64, 6, 1, 132, 1)),
    "Swin, stage 1, two warpgroups": (
        feed_forward(100352, 96, 384, norm=LAYER),
        (2, 64, 6, 2, 132, 1),
    ),
    "ConvNeXt, stage 2": (feed_forward(25088, 192, 768, norm=LAYER), (3, 32, 4, 1, 0, 1)),
    "Swin, stage 1, in turns": (
        feed_forward(100352, 96, 384, norm=LAYER),
        (3, 64, 6, 1, 132, 1, 1),
    ),
    "rows as they are": (feed_forward(25088, 192, 768, scaled=True), (2, 32, 4, 1, 0, 1)),
    "by columns": (feed_forward(25088, 128, 512, residual=False, norm=LAYER), (1, 64, 2, 1, 0, 1)),
}


@pytest.mark.parametrize("case", MACHINE_CODE)
def test_machine_code_keeps_its_registers(case: str, tmp_path: Path) -> None:
    problem, numbers = MACHINE_CODE[case]
    schedule = FeedForwardWgmmaSchedule(*numbers)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    (source,) = TEMPLATE.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    estimated = TEMPLATE.work(problem, schedule.columns(), H200).registers[0]
    assert abs(kernel.resources.registers - estimated) <= NEAR
    counted = count_tensor_core_instructions(kernel.cubin)[source.entry]
    assert "hgmma.f16" in counted
    assert "serialized" not in kernel.log
    assert "setmaxnreg" not in kernel.log
    text = listing(kernel.cubin, tmp_path)
    assert touched_in_flight(text) == []
    hidden = 64 * schedule.block_n // 128
    assert computed_beside(text, "MUFU.EX2") == hidden, "a step's GELUs are beside the products"


AHEAD = {"Swin, stage 1": 9, "ConvNeXt, stage 2": 6, "rows as they are": 4}
"""Loads of 16 bytes: of three pieces a bias and two rows; of two pieces; of one, with a scale besides."""


@pytest.mark.parametrize("case", AHEAD)
def test_what_the_output_needs_is_asked_for_ahead(case: str, tmp_path: Path) -> None:
    """In front of the wait for the last products, and nothing waits for it in front of that."""
    problem, numbers = MACHINE_CODE[case]
    (source,) = TEMPLATE.instantiate(problem, FeedForwardWgmmaSchedule(*numbers))
    text = listing(load_nvrtc().compile(source, "sm_90a").cubin, tmp_path)
    assert asked_for_ahead(text, "LDG.E.128") == AHEAD[case]


SPACES = {
    "normed 96": feed_forward(25088, 96, 384, norm=LAYER),
    "192": feed_forward(25088, 192, 768, scaled=True),
    "normed 192": feed_forward(25088, 192, 768, norm=LAYER),
    "normed 256": feed_forward(25088, 256, 1024, norm=LAYER),
    "by columns": feed_forward(25088, 160, 640, n=256, norm=RMS, residual=False, scaled=True),
    "bias fp32": feed_forward(25088, 48, 300, n=192, norm=LAYER, bias=DType.FP32),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("case", SPACES)
def test_what_is_legal_compiles_without_spilling(case: str, step: int) -> None:
    assert_legal_compiles_without_spilling(TEMPLATE, SPACES[case], step)


def _separate(problem: FeedForward) -> float:
    asked = TEMPLATES, H200, (), WAVES
    return sum(least_seconds(each, *asked) for each in (problem.first, problem.second))


def _joined(problem: FeedForward) -> float:
    _, columns = TEMPLATE.space(problem, H200)
    seconds = estimate(TEMPLATE.work(problem, columns, H200), bound(problem, H200), H200)
    return float(seconds.min())


def test_models_tell_joined_from_separate() -> None:
    """Of Swin-T and ConvNeXt-T: joined at batch 32, separate where rows are few."""
    for rows, columns, gain in ((100352, 96, 1.2), (25088, 192, 1.0)):
        problem = feed_forward(rows, columns, 4 * columns, norm=LAYER)
        assert gain * _joined(problem) < _separate(problem)
    for rows, columns in ((3136, 96), (784, 192)):
        problem = feed_forward(rows, columns, 4 * columns, norm=LAYER)
        assert _separate(problem) < _joined(problem)


def test_bound_counts_no_hidden_rows() -> None:
    problem = feed_forward(1000, 96, 384, norm=LAYER)
    rows, weights = 1000 * 96 * 2, 2 * 96 * 384 * 2
    beside = 384 * (2 + 4) + 96 * 2
    assert problem.traffic().bytes == 2 * rows + weights + beside, "x is read once, and is added"
    other = replace(problem, x=replace(problem.x, strides=(104, 1)))
    assert other.traffic().bytes == 3 * rows + weights + beside


FAULTS = [
    Fault("tiles are multiplied before they are there", drop("tiles_awaited")),
    Fault("first sums are read before they are there", drop("first_sums_awaited")),
    Fault("sums are read before they are there", drop("sums_awaited")),
    Fault("hidden numbers are written while products read them", drop("outputs_added")),
    Fault("the output is read before it is added", drop("last_outputs_added")),
    Fault("a stage of the first weight is not released", drop("up_released")),
    Fault("a stage of the second weight is not released", drop("down_released")),
    Fault("rows are not released", drop("rows_released")),
    Fault("a stage is filled while others read it", drop("stage_acquired")),
    Fault("barriers are used before they are there", drop("barriers_ready")),
    Fault("rows are read before the kernel in front has ended", drop("previous_awaited")),
    Fault("a group does not pass its turn on", drop("turn_passed_on")),
    Fault(
        "a tile's sums begin with those of the last",
        change("outputs_begun", "step > 1 ? 1 : 0", "1"),
    ),
    Fault("weights are multiplied before they are there", drop("weights_awaited")),
    Fault("weights do not come again", change("weights_again", ": 0", ": Shape::steps")),
    Fault("a block skips tiles", change("next_tile", "gridDim.x", "gridDim.x + 1")),
    Fault(
        "the last tile is left out",
        change("tiles_counted", "end(ceilDivide(m", "end(ceilDivide(m - 64"),
    ),
    Fault("a tile lies elsewhere", change("tile_placed", "tiles.firstRow()", "0")),
    Fault("consumers share a tile of rows", change("rows_of_group", "+ group)", "+ 0)")),
    Fault("a consumer has another's rows", change("group_placed", "group * 64", "0 * 64")),
    Fault("a consumer looks at another's rows", change("rows_of_norm", "(group_, ", "(0, ")),
    Fault("warps look at the same rows", change("rows_looked", "warpIndex() % 4 *", "0 *")),
    Fault("columns have what belongs to others", change("columns_of_step", "step *", "0 *")),
    Fault("a slice has another's sums", change("hidden_packed", "sums[slice]", "sums[0]")),
    Fault("slices lie elsewhere", change("slice_across", "slice *", "2 * slice *")),
    Fault(
        "the second box of a row is the first",
        change("slice_along", "slice * 32 / swizzle", "0 * slice"),
    ),
    Fault(
        "what is no hidden column counts",
        change("padding_zero", "exists ? number : Number(0)", "Number(1)"),
    ),
    Fault(
        "a pair is exchanged",
        change("pair_given", "numbers[0], numbers[1]", "numbers[1], numbers[0]"),
    ),
    Fault("a warp stores another's rows", change("fetched_rows_of_warp", "warpIndex()", "0")),
    Fault("pieces have the first one's columns", change("fetched_columns", "piece *", "0 *")),
    Fault(
        "operands of rows behind the last one are read",
        change("existing_rows_fetched", "window.rowEnd", "(window.rowEnd + 64)"),
    ),
    Fault(
        "rows behind the last one are stored",
        change("existing_rows_stored", "window.rowEnd", "(window.rowEnd + 64)"),
    ),
    Fault("sums are staged over others that are read", drop("staging_read")),
    Fault("sums are read before they are staged", drop("fetched_sums_staged")),
    Fault("the mean stays", change("mean_taken", "part == 0", "part == 1")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_is_seen(fault: Fault, checking_execution: Any) -> None:
    """Two consumers, several tiles of a block, a last step of few columns, more steps than stages."""
    problem = feed_forward(300, 72, 168, norm=LAYER)
    schedule = replace(SCHEDULE, persistent=2, pingpong=1)
    with pytest.raises((AssertionError, EmulatorError)):
        check(checking_execution, problem, schedule, plant(TEMPLATE, fault))


FAULTS_OF_PRODUCERS = [
    Fault(
        "warps bring the same rows",
        change("producers_told", "handsRegisters ? warp", "handsRegisters ? 0"),
    ),
    Fault(
        "nobody brings more weights",
        change("more_weights", "bringsWeights &&", "!bringsWeights &&"),
    ),
]


@pytest.mark.parametrize("fault", FAULTS_OF_PRODUCERS, ids=lambda fault: fault.name)
def test_a_fault_of_several_producers_is_seen(fault: Fault, checking_execution: Any) -> None:
    problem, schedule = CASES["a producer of four warps, a ring of weights"]
    with pytest.raises((AssertionError, EmulatorError)):
        check(checking_execution, problem, schedule, plant(TEMPLATE, fault))


def test_turns_of_odd_steps_go_on_from_tile_to_tile(checking_execution: Any) -> None:
    problem, schedule = CASES["turns of three"]
    fault = Fault("they begin anew", change("turns_counted", "? oddTiles_", "? 0"))
    with pytest.raises((AssertionError, EmulatorError)):
        check(checking_execution, problem, schedule, plant(TEMPLATE, fault))


def test_without_a_fault_nothing_is_seen(checking_execution: Any) -> None:
    problem = feed_forward(300, 72, 168, norm=LAYER)
    check(checking_execution, problem, replace(SCHEDULE, persistent=2, pingpong=1))


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    problem = feed_forward(100352, 96, 384, norm=LAYER, free="n")
    schedule = FeedForwardWgmmaSchedule(3, 64, 6, 1, 132, 1)
    (source,) = TEMPLATE.instantiate(problem, schedule)
    assert_golden("schedules/feed_forward_wgmma.cu", source.text)


SIBLINGS = {
    "a ring": (MACHINE_CODE["ConvNeXt, stage 2"], False),
    "weights that stay": (MACHINE_CODE["Swin, stage 1, two warpgroups"], True),
}
"""Problems and schedules that measuring may choose, and whether persistent blocks ask for many rows."""


@pytest.mark.parametrize("name", SIBLINGS)
def test_odd_siblings_are_right(name: str, checking_execution: Any, fast_execution: Any) -> None:
    (problem, numbers), has_many = SIBLINGS[name]
    schedule = FeedForwardWgmmaSchedule(*numbers)
    legal = (
        each
        for each in problem.odd_siblings()
        if not TEMPLATE.why_not(each, H200) and not TEMPLATE.why_illegal(each, schedule, H200)
    )
    sibling = next(legal)
    assert isinstance(sibling, FeedForward)
    assert sibling.hidden_size % schedule.block_n
    assert sibling.m.value % schedule.rows
    check(fast_execution if has_many else checking_execution, sibling, schedule)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("case", MACHINE_CODE)
def test_nearly_every_schedule_is_legal_for_an_odd_sibling(case: str, step: int) -> None:
    problem, _ = MACHINE_CODE[case]
    siblings = list(problem.odd_siblings())
    _, columns = TEMPLATE.space(problem, H200)
    schedules = [TEMPLATE.schedule(columns, row) for row in range(0, len(columns["stages"]), step)]
    carried = [each for each in siblings if TEMPLATE.why_not(each, H200) is None]
    legal = {s for each in carried for s in TEMPLATE.legal_among(schedules, each, H200)}
    missed = [each for each in schedules if each not in legal]
    assert len(missed) <= 0.01 * len(schedules), missed


def test_errors_of_hidden_numbers_are_allowed_once() -> None:
    """The bound grows with what the second product makes of one rounding, not with more."""
    case = random_case(feed_forward(256, 96, 384, norm=LAYER), 0)
    size = np.sqrt((case.output**2).mean())
    assert float(np.median(case.allowed)) < 0.02 * size
