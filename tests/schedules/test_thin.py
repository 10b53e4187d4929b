"""Products by a weight that stays: numbers in float64 under every check, refusals, machine code, planted faults."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.compiled_units import H200, NEAR, assert_legal_compiles_without_spilling
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import touched_in_flight
from support.problems.thin_products import broadcast, check, swin, thin

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.extent import Extent
from wpk.performance import bound, estimate
from wpk.problems import Matmul, NormKind
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.thin import ThinWgmmaSchedule, ThinWgmmaTemplate
from wpk.targets.registry import find_target

TEMPLATE = ThinWgmmaTemplate()
SCHEDULE = ThinWgmmaSchedule(warpgroups=2, block_n=32, early=1)
ALONE = replace(SCHEDULE, warpgroups=1)
KEPT = replace(ALONE, row_stages=2, persistent=2)
LAYER, RMS = NormKind.LAYER, NormKind.RMS

CASES: dict[str, tuple[Matmul, ThinWgmmaSchedule]] = {
    "a tile": (thin(64, 32, 16), replace(ALONE, early=0)),
    "odd everything": (thin(131, 72, 40, norm=RMS), SCHEDULE),
    "normed rows": (thin(197, 288, 96, norm=LAYER), replace(SCHEDULE, block_n=96)),
    "normed rows, several tiles": (thin(323, 96, 24, norm=LAYER), KEPT),
    "normed rows and a residual": (thin(197, 96, 160, norm=LAYER, residual=True), KEPT),
    "known moments": (
        thin(330, 288, 96, norm=LAYER, known=True),
        replace(KEPT, block_n=96, ahead=1),
    ),
    "known mean squares": (
        thin(150, 96, 160, norm=RMS, known=True, gelu=True),
        replace(SCHEDULE, ahead=1),
    ),
    "known moments and a residual": (
        thin(150, 96, 96, norm=LAYER, known=True, residual=True),
        replace(SCHEDULE, block_n=48, ahead=1),
    ),
    "a residual": (thin(450, 96, 96, residual=True), replace(KEPT, warpgroups=3, block_n=96)),
    "a GELU, three tiles of rows": (
        thin(450, 160, 40, gelu=True),
        replace(KEPT, row_stages=3, persistent=1, block_n=80, ahead=1),
    ),
    "six warpgroups": (
        thin(777, 64, 96, norm=LAYER),
        replace(SCHEDULE, warpgroups=6, persistent=1),
    ),
    "four steps ahead": (thin(197, 128, 96), replace(KEPT, ahead=1)),
    "odd columns": (thin(67, 37, 40, bias=DType.FP32), ALONE),
    "odd columns, ahead": (thin(67, 37, 96, norm=LAYER), replace(ALONE, block_n=16, ahead=1)),
    "rows with gaps": (thin(70, 24, 40, gap=8, residual=True), replace(ALONE, persistent=1)),
    "a padded output": (thin(70, 30, 40, padding=10, norm=RMS), ALONE),
    "the widest rows": (
        thin(70, 256, 256, norm=LAYER, gelu=True),
        replace(ALONE, block_n=256, early=0),
    ),
    "a row": (thin(1, 96, 64, norm=LAYER), ALONE),
    "moments are stored": (thin(197, 96, 96, stored=LAYER, residual=True), KEPT),
    "mean squares are stored": (
        thin(197, 128, 40, stored=RMS),
        replace(KEPT, block_n=64, ahead=1),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    problem, schedule = CASES[case]
    assert TEMPLATE.why_not(problem, H200) is None
    assert not list(problem.contradictions())
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    check(checking_execution, problem, schedule)


BRAIN = {
    "normed rows": thin(197, 288, 96, norm=LAYER, precision=Precision.BF16),
    "a residual": thin(450, 96, 96, residual=True, precision=Precision.BF16),
    "moments are stored": thin(197, 96, 96, stored=LAYER, precision=Precision.BF16),
}


@pytest.mark.parametrize("case", BRAIN)
def test_bf16_agrees_with_float64_under_every_check(case: str, checking_execution: Any) -> None:
    check(checking_execution, BRAIN[case], CASES[case][1])


def test_rows_may_be_free(checking_execution: Any) -> None:
    queries, projection = swin(200, free="n")
    check(checking_execution, queries, replace(SCHEDULE, block_n=96, ahead=1))
    check(checking_execution, projection, replace(KEPT, block_n=48))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (thin(64, 64, 264), "rows of 264, at most 256"),
        (thin(64, 64, 20), "a has a stride of 40 bytes; tensor copies need multiples"),
        (thin(64, 600, 256), "b of 256 x 600 with 64 rows takes"),
        (thin(64, 64, 64, precision=Precision.TF32), "have elements of 16 bits"),
        (broadcast(thin(64, 64, 64)), "a is broadcast along its rows"),
        (replace(thin(64, 64, 64), b_constant=False), "b is computed"),
        (replace(thin(64, 64, 64), batch=(Extent(1), 2)), "each matrix of a batch"),
    ],
)
def test_says_what_it_does_not_compute(problem: Matmul, words: str) -> None:
    assert words in str(TEMPLATE.why_not(problem, H200))


def test_only_hopper_has_warpgroups() -> None:
    reason = TEMPLATE.why_not(thin(64, 64, 64), find_target("sm_80"))
    assert "no products of warpgroups" in str(reason)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 7}, "a block has 1 to 6 warpgroups"),
        ({"block_n": 40}, "16 to 256 columns, a multiple of 16"),
        ({"block_n": 272}, "16 to 256 columns, a multiple of 16"),
        ({"row_stages": 2}, "a block with one tile has the rows of one"),
        ({"row_stages": 4, "persistent": 1}, "one to three tiles of rows"),
        ({"persistent": -1}, "persistent is a number of blocks, or 0"),
        ({"ahead": 2}, "ahead is 0 or 1"),
        ({"ahead": 1, "block_n": 96}, "products run ahead of two to 4 steps"),
        ({"ahead": 1, "block_n": 16}, "products run ahead of two to 4 steps"),
        ({"early": 2}, "early is 0 or 1"),
    ],
)
def test_what_is_illegal_is_said_and_does_not_compile(changes: dict[str, int], words: str) -> None:
    problem, schedule = thin(197, 96, 64), replace(SCHEDULE, **changes)
    assert words in str(TEMPLATE.why_illegal(problem, schedule, H200))
    (source,) = TEMPLATE.instantiate(problem, schedule)
    with pytest.raises(CompileError, match=words):
        load_nvrtc().compile(source, H200.arch)


def test_moments_are_of_whole_groups() -> None:
    reason = TEMPLATE.why_illegal(thin(197, 96, 64, stored=LAYER), replace(ALONE, block_n=48), H200)
    assert "moments are of 32 columns, which a warp has together" in str(reason)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 4, "block_n": 192}, "more would spill"),
        ({"warpgroups": 6, "block_n": 32, "row_stages": 3}, "bytes of shared memory"),
        ({"persistent": 528}, "hold all persistent blocks at once"),
        (
            {"persistent": 264, "warpgroups": 3, "row_stages": 3},
            "no more tiles of rows are there at once than a block computes",
        ),
    ],
)
def test_says_what_does_not_fit(changes: dict[str, int], words: str) -> None:
    problem = thin(100352, 288, 96, norm=LAYER)
    schedule = replace(SCHEDULE, **{"persistent": 132, **changes})
    assert words in str(TEMPLATE.why_illegal(problem, schedule, H200))


def test_no_warpgroup_is_without_rows() -> None:
    reason = TEMPLATE.why_illegal(thin(128, 64, 64), replace(SCHEDULE, warpgroups=3), H200)
    assert "each warpgroup has some of the 128 rows" in str(reason)


QUERIES, PROJECTION = swin(100352)
MACHINE_CODE = {
    "Swin, queries, ahead": (QUERIES, (3, 96, 2, 132, 1, 1)),
    "Swin, queries": (QUERIES, (4, 96, 2, 132, 1, 0)),
    "Swin, queries, wide steps": (QUERIES, (3, 144, 2, 132, 1, 0)),
    "Swin, projection": (PROJECTION, (4, 96, 2, 132, 1, 0)),
    "Swin, projection, ahead": (PROJECTION, (3, 48, 2, 132, 1, 1)),
    "moments of the rows": (thin(100352, 288, 96, norm=LAYER), (3, 96, 1, 132, 1, 1)),
    "moments are stored": (
        thin(100352, 96, 96, stored=LAYER, residual=True),
        (4, 96, 2, 132, 1, 0),
    ),
    "many steps, one after the other": (thin(25088, 384, 192, gelu=True), (1, 64, 1, 0, 1, 0)),
}


@pytest.mark.parametrize("case", MACHINE_CODE)
def test_machine_code_keeps_its_registers(case: str, tmp_path: Path) -> None:
    problem, numbers = MACHINE_CODE[case]
    schedule = ThinWgmmaSchedule(*numbers)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    (source,) = TEMPLATE.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    estimated = TEMPLATE.work(problem, schedule.columns(), H200).registers[0]
    assert abs(kernel.resources.registers - estimated) <= NEAR
    assert "hgmma.f16" in count_tensor_core_instructions(kernel.cubin)[source.entry]
    assert "serialized" not in kernel.log
    text = listing(kernel.cubin, tmp_path)
    assert touched_in_flight(text) == []
    steps = -(-problem.n // schedule.block_n)
    if schedule.ahead:
        vectors = (steps - 1) * schedule.block_n // 16
        assert stored_beside(text) >= 0.75 * vectors, "sums are stored beside products"


@pytest.mark.parametrize("case", ["Swin, queries", "Swin, projection"])
def test_what_is_added_to_rows_is_asked_for_with_them(case: str, tmp_path: Path) -> None:
    problem, numbers = MACHINE_CODE[case]
    schedule = ThinWgmmaSchedule(*numbers)
    (source,) = TEMPLATE.instantiate(problem, schedule)
    text = listing(load_nvrtc().compile(source, "sm_90a").cubin, tmp_path)
    places = schedule.row_stages + 1  # of the first tiles, and in the loop
    sectors = 64 * problem.n * 2 // 32 // 128 if len(problem.epilogue.operands) > 1 else 0
    of_columns = len(problem.reads()) - 2 - (sectors > 0) - (case == "Swin, queries")  # moments
    assert text.count("CCTL.E.PF2") == places * sectors + of_columns


def stored_beside(text: str) -> int:
    """Vectors of a warp that are stored between a wait that leaves products under way and the next wait."""
    parts = re.split(r"WARPGROUP\.DEPBAR\.LE gsb0, 0x([0-9a-f]+)", text)
    return sum(
        len(re.findall(r"STG\.E\.128", body))
        for left, body in zip(parts[1::2], parts[2::2], strict=True)
        if left == "1"
    )


SPACES = {
    "Swin, queries": QUERIES,
    "Swin, projection": PROJECTION,
    "a GELU of normed rows": thin(100352, 384, 96, norm=LAYER, gelu=True),
    "normed 192 with a residual": thin(100352, 192, 192, norm=LAYER, residual=True),
    "normed 256, bias fp32": thin(100352, 300, 256, norm=RMS, bias=DType.FP32),
    "moments are stored": thin(100352, 128, 96, stored=LAYER, residual=True),
    "odd columns": thin(100352, 37, 48),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("case", SPACES)
def test_what_is_legal_compiles_without_spilling(case: str, step: int) -> None:
    assert_legal_compiles_without_spilling(TEMPLATE, SPACES[case], step)


def _estimate(template: Any, problem: Matmul) -> float:
    _, columns = template.space(problem, H200)
    seconds = estimate(template.work(problem, columns, H200), bound(problem, H200), H200)
    return float(seconds.min())


def test_models_choose_it_for_many_rows_alone() -> None:
    """Of Swin-T: queries of stage 1 at batch 32, but not at batch 1, nor where a block has room for one warpgroup."""
    gemm = GemmWgmmaTemplate()
    assert 1.1 * _estimate(TEMPLATE, QUERIES) < _estimate(gemm, QUERIES)
    assert _estimate(TEMPLATE, PROJECTION) < 1.2 * _estimate(gemm, PROJECTION)
    for few in (*swin(3136), *swin(784), thin(100352, 256, 256, residual=True)):
        assert _estimate(gemm, few) < _estimate(TEMPLATE, few)


def test_estimates_lie_between_bytes_and_what_tiles_take() -> None:
    """Of memory that gives 4.4 TB/s, where all bytes come from there; gemm_wgmma takes 40 us on an H200."""
    assert 17e-6 < _estimate(TEMPLATE, QUERIES) < 30e-6
    assert 10e-6 < _estimate(TEMPLATE, PROJECTION) < 18e-6


FAULTY = {
    "known": thin(300, 96, 96, norm=LAYER, known=True),
    "look": thin(300, 96, 72, norm=LAYER),
    "residual": thin(300, 96, 96, norm=LAYER, known=True, residual=True),
}
"""Two warpgroups, several tiles of a block, several steps."""

FAULTS = [
    ("known", Fault("products begin before the weight is there", drop("weight_awaited"))),
    ("known", Fault("products begin before rows are there", drop("tiles_awaited"))),
    ("known", Fault("sums are read before they are there", drop("sums_awaited"))),
    ("known", Fault("rows are not released", drop("rows_released"))),
    ("known", Fault("rows come while others are read", drop("stage_acquired"))),
    ("known", Fault("barriers are used before they are there", drop("barriers_ready"))),
    ("known", Fault("rows come before the kernel in front has ended", drop("previous_awaited"))),
    ("known", Fault("steps have the first one's columns", change("weight_of_step", "step", "0"))),
    ("known", Fault("all columns are the first", change("columns_of_weight", "step *", "0 *"))),
    ("known", Fault("columns lie elsewhere", change("columns_placed", "step *", "0 *"))),
    ("known", Fault("a tile lies elsewhere", change("tile_placed", "tiles_.firstRow()", "0"))),
    ("known", Fault("warpgroups share rows", change("rows_of_group", "+ group)", "+ 0)"))),
    ("known", Fault("rows are another's", change("rows_brought", "group() * 64", "0 * 64"))),
    (
        "known",
        Fault("rows have the first's moments", change("moments_of_warp", "warpIndex()", "0")),
    ),
    ("known", Fault("a block skips tiles", change("next_tile", "gridDim.x", "gridDim.x + 1"))),
    (
        "known",
        Fault("the last tile is left out", change("tiles_counted", "(m, Shape", "(m - 64, Shape")),
    ),
    (
        "look",
        Fault("moments are of another's rows", change("rows_of_norm", ", tile)", ", tile + 4096)")),
    ),
    ("look", Fault("warps look at the same rows", change("rows_looked", "warpIndex() % 4", "0"))),
    ("residual", Fault("rows are not normalised", drop("sums_normalised"))),
]


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[fault.name for _, fault in FAULTS])
def test_a_planted_fault_is_seen(
    name: str, fault: Fault, ahead: int, checking_execution: Any
) -> None:
    schedule = replace(SCHEDULE, persistent=1, ahead=ahead)
    with pytest.raises((AssertionError, EmulatorError)):
        check(checking_execution, FAULTY[name], schedule, plant(TEMPLATE, fault))


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("name", FAULTY)
def test_without_a_fault_nothing_is_seen(name: str, ahead: int, checking_execution: Any) -> None:
    check(checking_execution, FAULTY[name], replace(SCHEDULE, persistent=1, ahead=ahead))


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    problem, _ = swin(100352, free="n")
    (source,) = TEMPLATE.instantiate(problem, ThinWgmmaSchedule(3, 96, 2, 132, 1, 1))
    assert_golden("schedules/thin_wgmma.cu", source.text)


@pytest.mark.parametrize("case", ["Swin, queries, ahead", "Swin, projection"])
def test_odd_siblings_are_right(case: str, checking_execution: Any) -> None:
    problem, numbers = MACHINE_CODE[case]
    schedule = replace(ThinWgmmaSchedule(*numbers), persistent=0, row_stages=1)
    legal = (
        each
        for each in problem.odd_siblings()
        if not TEMPLATE.why_not(each, H200) and not TEMPLATE.why_illegal(each, schedule, H200)
    )
    sibling = next(legal)
    assert isinstance(sibling, Matmul)
    assert sibling.m.value % schedule.rows
    check(checking_execution, sibling, schedule)


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("case", MACHINE_CODE)
def test_nearly_every_schedule_is_legal_for_an_odd_sibling(case: str, step: int) -> None:
    problem, _ = MACHINE_CODE[case]
    siblings = list(problem.odd_siblings())
    _, columns = TEMPLATE.space(problem, H200)
    schedules = [TEMPLATE.schedule(columns, row) for row in range(0, len(columns["ahead"]), step)]
    carried = [each for each in siblings if TEMPLATE.why_not(each, H200) is None]
    legal = {s for each in carried for s in TEMPLATE.legal_among(schedules, each, H200)}
    missed = [each for each in schedules if each not in legal]
    assert len(missed) <= 0.01 * len(schedules), missed
