"""Faults planted into the kernels whose patches stay: the emulator, the numbers or the machine code show each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.each_value import each_value
from support.faults.planter import Fault, before, change, drop, plant, put, whole
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import products_from_registers, touched_in_flight
from support.problems.warpgroup_layers import convolution

from wpk.build import CompiledKernel, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.problems import Convolution, Epilogue
from wpk.schedules.conv_halo import ConvHaloTemplate, HaloSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvHaloTemplate()
H200 = find_target("h200")
TILE = HaloSchedule(8, 12, 32, teams=2, patches=2, persistent=2, early=1)
CARRYING = HaloSchedule(8, 8, 32, teams=3, patches=2, carry=1, persistent=2, early=1)


FAULTS = [
    Fault("a slot is filled again before all have left it", drop("stage_acquired")),
    Fault("rows are loaded before their patch is there", drop("patch_awaited")),
    Fault("products begin before their filters are there", drop("filters_awaited")),
    Fault("a patch is not given back", drop("patch_released")),
    Fault(
        "a patch is given back before its rows are loaded",
        before("first_rows_loaded", "patches.release(state.stage);"),
    ),
    Fault(
        "a slot is given back by fewer warps than read it",
        change("consumers_counted", "Warps * Group::blocks", "Warps * Group::blocks - 1"),
    ),
    Fault(
        "fewer bytes of a patch are announced than arrive",
        change("bytes_expected", "bytes", "bytes - 16"),
    ),
    Fault(
        "fewer bytes of filters are announced than arrive",
        change("filter_bytes", "Shape::chunkBytes", "Shape::chunkBytes - 16"),
    ),
    Fault("the sums are read while products are under way", drop("products_done")),
    Fault("products without their fence", drop("products_fenced")),
    Fault(
        "the second warpgroup has the first one's pixels",
        change("pixel_of_warp", "% Shape::warpsM", "% 4"),
    ),
    Fault(
        "teams store as if they were one",
        change("rows_of_team", "-team * Shape::warpsM * 16", "0"),
    ),
    Fault(
        "teams compute the same tiles",
        change("first_of_team", "* Schedule::teams + team", "* Schedule::teams"),
    ),
    Fault(
        "blocks that stay leave tiles out",
        change("next_of_team", "Schedule::teams", "Schedule::teams * 2"),
    ),
    Fault(
        "sums go on from tile to tile", change("sums_begun", "float", "static thread_local float")
    ),
    Fault(
        "patches begin in the image",
        change("patch_corner", "tile.q * Problem::stride_w - Problem::pad_w", "tile.q"),
    ),
    Fault("taps are walked along the other side", put("order_of_taps", "return step;")),
    Fault(
        "all filters are those of the first tap",
        change("filters_copied", "tap, firstFilter", "0, firstFilter"),
    ),
    Fault(
        "all patches are of the first channels",
        change("patch_copied", "chunk * Shape::kBoxDepth", "0"),
    ),
    Fault(
        "patches lie as close as their bytes",
        change("patch_pitch", "ceilDivide(patchBytes, 1024) * 1024", "patchBytes"),
    ),
    Fault("patches are asked for too early", drop("previous_awaited")),
    Fault("barriers are used as memory happens to be", drop("barriers_begun")),
    Fault("barriers are used before they may be there", drop("barriers_there")),
    Fault(
        "the epilogue stages where patches lie",
        change("sums_staged", "memory.kStagingAt", "memory.kPatchesAt"),
    ),
]
OF_CARRIED_ROWS = [
    Fault(
        "rows are carried from the wrong half",
        change("row_carried", "previous[slice + i][1]", "previous[slice + i][0]"),
    ),
    Fault(
        "lower rows are those of the pixel row above",
        change("lower_row", "part = laneIndex() / 8", "part = laneIndex() / 8 % 2"),
    ),
]
CASES = [*((fault, TILE) for fault in FAULTS), *((fault, CARRYING) for fault in OF_CARRIED_ROWS)]


def layer() -> Convolution:
    """Two patches of channels, two tiles along each side of two images: two for each team."""
    problem = convolution(c=72, k=32, size=(20, 15), n=2)
    y = channels_last(DType.FP32, 32, 20, 15)
    return replace(problem, y=y, epilogue=Epilogue())


@pytest.mark.parametrize("tile", [TILE, CARRYING], ids=str)
def test_without_a_fault_the_copied_headers_are_right(
    tile: HaloSchedule, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    assert TEMPLATE.why_illegal(layer(), tile, H200) is None
    same = plant(TEMPLATE, Fault("", whole))
    check_convolution(checking_execution, same, layer(), tile, integers=True)


@pytest.mark.parametrize(("fault", "tile"), CASES, ids=[fault.name for fault, _ in CASES])
def test_a_planted_fault_is_seen(
    fault: Fault,
    tile: HaloSchedule,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    faulty = plant(TEMPLATE, fault)
    with pytest.raises((EmulatorError, AssertionError, CompileError)):
        check_convolution(checking_execution, faulty, layer(), tile, integers=True)


def compiled(template: Any, schedule: HaloSchedule, precision: Precision) -> CompiledKernel:
    problem = convolution(c=128, k=256, size=(56, 56), n=32, precision=precision)
    (source,) = template.instantiate(problem, schedule)
    return load_nvrtc().compile(source, "sm_90a")


FEW = [
    pytest.param(precision, 16, marks=pytest.mark.exhaustive)
    for precision in (Precision.FP16, Precision.TF32)
]


@pytest.mark.parametrize("carry", [0, 1])
@pytest.mark.parametrize("teams", [1, 3])
@pytest.mark.parametrize(
    ("precision", "filters"), [*each_value([Precision.FP16, Precision.TF32], [32, 64]), *FEW]
)
def test_products_have_their_registers_to_themselves_and_run_beside_loads(
    precision: Precision, teams: int, carry: int, filters: int, tmp_path: Path
) -> None:
    kernel = compiled(
        TEMPLATE, replace(CARRYING, block_n=filters, teams=teams, carry=carry), precision
    )
    text = listing(kernel.cubin, tmp_path)
    assert products_from_registers(text) == 9 * 4
    assert touched_in_flight(text) == []
    assert "serialized" not in kernel.log


def test_where_products_would_run_into_the_next_patch_the_compiler_lets_none_run() -> None:
    faulty = plant(TEMPLATE, Fault("", put("products_done", "waitWgmma<1>();")))
    assert "serialized" in compiled(faulty, TILE, Precision.FP16).log


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
def test_legal_schedules_hardly_ever_spill_and_wait_for_no_product_by_themselves(
    precision: Precision,
) -> None:
    problem = convolution(c=128, k=256, size=(56, 56), n=32, precision=precision)
    _, columns = TEMPLATE.space(problem, H200)
    wide = np.flatnonzero(columns["block_n"] == columns["block_n"].max())
    rng = np.random.default_rng(5)
    rows = {*map(int, wide[-3:]), *map(int, rng.permutation(len(columns["teams"]))[:25])}
    spilling = []
    for schedule in (TEMPLATE.schedule(columns, row) for row in rows):
        (source,) = TEMPLATE.instantiate(problem, schedule)
        kernel = load_nvrtc().compile(source, "sm_90a")
        spilling += [schedule] * kernel.resources.spills
        assert "serialized" not in kernel.log, schedule
    assert len(spilling) <= 2, spilling
