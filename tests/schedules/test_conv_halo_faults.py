"""Faults planted into the kernels whose patches stay: the emulator, the numbers or the machine code show each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.faults.planted import plant
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import products_from_registers, touched_in_flight
from support.problems.warpgroup_layers import convolution

from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator.errors import EmulatorError
from wpk.problems import Convolution, Epilogue
from wpk.schedules.conv_halo import ConvHaloTemplate, HaloSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvHaloTemplate()
H200 = find_target("h200")
TILE = HaloSchedule(8, 12, 32, teams=2, patches=2, persistent=2, early=1)
CARRYING = HaloSchedule(8, 8, 32, teams=3, patches=2, carry=1, persistent=2, early=1)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and how the headers come to have it."""

    name: str
    old: str
    new: str = ""
    tile: HaloSchedule = TILE


FAULTS = [
    Fault(
        "a slot is filled again before all have left it",
        "waitBarrier(empty(place.slot), place.parity ^ 1);",
    ),
    Fault(
        "rows are loaded before their patch is there",
        "waitBarrier(patches.full(place.slot), place.parity);",
    ),
    Fault(
        "products begin before their filters are there",
        "waitBarrier(memory.filters().full(chunk), 0);",
    ),
    Fault("a patch is not given back", "patches.release(place.slot);"),
    Fault(
        "a patch is given back before its rows are loaded",
        "patchRows.load(rows[0], rows[1], patch, 0);",
        "patches.release(place.slot);\n        patchRows.load(rows[0], rows[1], patch, 0);",
    ),
    Fault(
        "a slot is given back by fewer warps than read it",
        "initBarrier(empty(slot), Warps * Fillers);",
        "initBarrier(empty(slot), Warps * Fillers - 1);",
    ),
    Fault(
        "fewer bytes of a patch are announced than arrive",
        "arriveExpectBytes(full(place.slot), bytes);",
        "arriveExpectBytes(full(place.slot), bytes - 16);",
    ),
    Fault(
        "fewer bytes of filters are announced than arrive",
        "arriveExpectBytes(barrier, Shape::chunkBytes);",
        "arriveExpectBytes(barrier, Shape::chunkBytes - 16);",
    ),
    Fault("the sums are read while products are under way", "waitWgmma<0>(acc);"),
    Fault("products without their fence", "fenceWgmma();"),
    Fault(
        "the second warpgroup has the first one's pixels",
        "warpIndex() % Shape::warpsM * 16 +",
        "warpIndex() % 4 * 16 +",
    ),
    Fault("teams store as if they were one", "-team * Shape::warpsM * 16, Shape", "0, Shape"),
    Fault("teams compute the same tiles", "* Schedule::teams + team)", "* Schedule::teams)"),
    Fault(
        "blocks that stay leave tiles out",
        "static_cast<int>(gridDim.x) * Schedule::teams;",
        "static_cast<int>(gridDim.x) * Schedule::teams * 2;",
    ),
    Fault(
        "sums go on from tile to tile",
        "{\n        float acc[Shape::accumulators] = {};",
        "{\n        static thread_local float acc[Shape::accumulators] = {};",
    ),
    Fault(
        "rows are carried from the wrong half",
        "rows[slice + i][0] = previous[slice + i][1];",
        "rows[slice + i][0] = previous[slice + i][0];",
        CARRYING,
    ),
    Fault(
        "lower rows are those of the pixel row above",
        "laneIndex() / 8;\n        WPK_UNROLL",
        "laneIndex() / 8 % 2;\n        WPK_UNROLL",
        CARRYING,
    ),
    Fault("patches begin in the image", "tile.q * Problem::stride_w - Problem::pad_w", "tile.q"),
    Fault(
        "taps are walked along the other side",
        "return step % Problem::filter_h * Problem::filter_w + step / Problem::filter_h;",
        "return step;",
    ),
    Fault(
        "all filters are those of the first tap",
        "{chunk * Shape::kBoxDepth, tap, firstFilter}",
        "{chunk * Shape::kBoxDepth, 0, firstFilter}",
    ),
    Fault("all patches are of the first channels", "{chunk * Shape::kBoxDepth, w,", "{0, w,"),
    Fault(
        "patches lie as close as their bytes", "ceilDivide(patchBytes, 1024) * 1024", "patchBytes"
    ),
    Fault("patches are asked for too early", "if (kEarly)\n        waitForPrevious();"),
    Fault("barriers are used as memory happens to be", "memory.init();"),
    Fault(
        "barriers are used before they may be there",
        "__syncthreads(); // the barriers are there for everyone",
    ),
    Fault(
        "the epilogue stages where patches lie",
        "shared + memory.kStagingAt",
        "shared + memory.kPatchesAt",
    ),
]


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
    same = plant(TEMPLATE, "kBoxRowBytes = 128", "kBoxRowBytes = 128")
    check_convolution(checking_execution, same, layer(), tile, integers=True)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    faulty = plant(TEMPLATE, fault.old, fault.new)
    with pytest.raises((EmulatorError, AssertionError)) as seen:
        check_convolution(checking_execution, faulty, layer(), fault.tile, integers=True)
    assert "nowhere to plant" not in str(seen.value)


def compiled(template: Any, schedule: HaloSchedule, precision: Precision) -> CompiledKernel:
    problem = convolution(c=128, k=256, size=(56, 56), n=32, precision=precision)
    (source,) = template.instantiate(problem, schedule)
    return load_nvrtc().compile(source, "sm_90a")


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
@pytest.mark.parametrize("carry", [0, 1])
@pytest.mark.parametrize("teams", [1, 3])
@pytest.mark.parametrize("filters", [pytest.param(16, marks=pytest.mark.exhaustive), 32, 64])
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
    faulty = plant(TEMPLATE, "waitWgmma<0>(acc);", "waitWgmma<1>();")
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
