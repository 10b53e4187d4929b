"""Faults planted into the kernels whose patches stay: the emulator, the numbers or the machine code show each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disassembly import listing
from planted import plant
from products_in_flight import products_from_registers, touched_in_flight
from warpgroup_layers import convolution, image

from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator.errors import EmulatorError
from wpk.problems import Convolution, Epilogue
from wpk.schedules.conv_halo import ConvHaloTemplate, HaloSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvHaloTemplate()
H200 = find_target("h200")
TILE = HaloSchedule(tile_p=8, tile_q=12, block_n=32, taps=3, stages=2, patches=2, early=1)


@dataclass(frozen=True)
class Fault:
    """What is wrong, and how the headers come to have it."""

    name: str
    old: str
    new: str = ""


FAULTS = [
    Fault(
        "a slot is filled again before all have left it",
        "waitBarrier(empty(place.slot), place.parity ^ 1);",
    ),
    Fault(
        "rows are loaded before their patch is there",
        "waitBarrier(rings.patches.full(patch.slot), patch.parity);",
    ),
    Fault(
        "products begin before their filters are there",
        "waitBarrier(rings.filters.full(place.slot), place.parity);",
    ),
    Fault(
        "filters are given back while their products are under way",
        "rings.filters.release(place.last());\n            loadRows",
        "rings.filters.release(place.slot);\n            loadRows",
    ),
    Fault("the last filters of a patch are not given back", "rings.filters.release(place.slot);"),
    Fault("a patch is not given back", "rings.patches.release(patch.slot);"),
    Fault(
        "a slot is given back by fewer warps than read it",
        "initBarrier(empty(slot), Warps * Fillers);",
        "initBarrier(empty(slot), Warps * Fillers - 1);",
    ),
    Fault(
        "fewer bytes are announced than arrive",
        "arriveExpectBytes(full(place.slot), bytes);",
        "arriveExpectBytes(full(place.slot), bytes - 16);",
    ),
    Fault("the sums are read while products are under way", "waitWgmma<0>(acc);"),
    Fault("products without their fence", "fenceWgmma();"),
    Fault(
        "the second warpgroup has the first one's pixels",
        "warpIndex() * 16 +",
        "warpIndex() % 4 * 16 +",
    ),
    Fault("patches begin in the image", "tile.q * Problem::stride_w - Problem::pad_w", "tile.q"),
    Fault(
        "taps are walked along the other side",
        "tap / Problem::filter_w * Problem::dilation_h",
        "tap % Problem::filter_w",
    ),
    Fault(
        "filters of a slot are those of its first tap",
        "slot * Shape::taps + tap,",
        "slot * Shape::taps,",
    ),
    Fault("all patches are of the first channels", "{asked * Shape::kBoxDepth,", "{0,"),
    Fault(
        "patches lie as close as their bytes", "ceilDivide(patchBytes, 1024) * 1024", "patchBytes"
    ),
    Fault(
        "patches are asked for too early",
        "if (Early && chunk == 0)\n                waitForPrevious();",
    ),
    Fault(
        "the epilogue takes the rings' place before all have left them",
        "__syncthreads(); // the rings are free; and the producer has waited for the kernels in front",
    ),
]


def layer() -> Convolution:
    """Three patches of channels, two tiles along each side of two images."""
    problem = convolution(c=136, k=32, size=(15, 22), n=2)
    y = image(DType.FP32, 32, 15, 22)
    return replace(problem, y=y, epilogue=Epilogue())


def test_without_a_fault_the_copied_headers_are_right(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    assert TEMPLATE.why_illegal(layer(), TILE, H200) is None
    same = plant(TEMPLATE, "kBoxRowBytes = 128", "kBoxRowBytes = 128")
    check_convolution(checking_execution, same, layer(), TILE, integers=True)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_seen(
    fault: Fault, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    faulty = plant(TEMPLATE, fault.old, fault.new)
    with pytest.raises((EmulatorError, AssertionError)) as seen:
        check_convolution(checking_execution, faulty, layer(), TILE, integers=True)
    assert "nowhere to plant" not in str(seen.value)


def compiled(template: Any, schedule: HaloSchedule, precision: Precision) -> CompiledKernel:
    problem = convolution(c=192, k=256, size=(56, 56), n=32, precision=precision)
    (source,) = template.instantiate(problem, schedule)
    return load_nvrtc().compile(source, "sm_90a")


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
@pytest.mark.parametrize("taps", [1, 3, 9])
@pytest.mark.parametrize("filters", [16, 64, 128])
def test_products_have_their_registers_to_themselves_and_run_beside_loads(
    precision: Precision, taps: int, filters: int, tmp_path: Path
) -> None:
    kernel = compiled(TEMPLATE, replace(TILE, block_n=filters, taps=taps), precision)
    text = listing(kernel.cubin, tmp_path)
    assert products_from_registers(text) == 9 * 4
    assert touched_in_flight(text) == []
    assert "serialized" not in kernel.log


def test_where_products_would_run_into_the_next_patch_the_compiler_lets_none_run() -> None:
    faulty = plant(TEMPLATE, "waitWgmma<0>(acc);", "waitWgmma<1>();")
    assert "serialized" in compiled(faulty, TILE, Precision.FP16).log


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32])
def test_legal_schedules_do_not_spill_and_wait_for_no_product_by_themselves(
    precision: Precision,
) -> None:
    problem = convolution(c=192, k=256, size=(56, 56), n=32, precision=precision)
    _, columns = TEMPLATE.space(problem, H200)
    wide = np.flatnonzero(columns["block_n"] == columns["block_n"].max())
    rng = np.random.default_rng(5)
    rows = {*map(int, wide[-3:]), *map(int, rng.permutation(len(columns["taps"]))[:25])}
    for schedule in (TEMPLATE.schedule(columns, row) for row in rows):
        (source,) = TEMPLATE.instantiate(problem, schedule)
        kernel = load_nvrtc().compile(source, "sm_90a")
        assert not kernel.resources.spills, schedule
        assert "serialized" not in kernel.log, schedule
