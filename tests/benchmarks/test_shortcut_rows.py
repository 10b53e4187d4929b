"""Chains of products with shortcuts: both sides are timed, and compute what float64 does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rows.networks import Median
from rows.shortcuts import BROUGHT, OF_A_KIND, READ, SIZES, Timed, candidates, judge
from subjects.shortcut_chain import PRODUCTS, ShortcutChain, Sizes

from wpk.emulator import GUARDED, Emulator
from wpk.execution import KernelImage
from wpk.problems import Convolution
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

H100 = find_target("h100")


@pytest.mark.parametrize("name", SIZES)
def test_both_sides_are_timed(name: str) -> None:
    sizes = SIZES[name]
    is_convolution = isinstance(sizes.problem(), Convolution)
    template = TEMPLATE_OF["conv_wgmma" if is_convolution else "gemm_wgmma"]
    asked = [dict(each.parameters()) for each in candidates(sizes, template, H100)]
    for brought in (False, True):
        of_side = [each for each in asked if (each["residual"] > 0) is brought]
        assert OF_A_KIND <= len(of_side) <= 3 * OF_A_KIND


@pytest.mark.parametrize("sizes", [Sizes(2, 5, 72, 64), Sizes(0, 70, 72, 64)], ids=str)
def test_a_chain_computes_what_float64_does(sizes: Sizes) -> None:
    device, problem = Emulator(GUARDED), sizes.problem()
    template = TEMPLATE_OF["conv_wgmma" if isinstance(problem, Convolution) else "gemm_wgmma"]
    schedule = WgmmaSchedule(64, 32, 64, 2, residual=1)
    (source,) = template.instantiate(problem, schedule)
    device.load(KernelImage(source.digest, source, b""))
    chain = ShortcutChain(device, sizes)
    packing = template.packing(problem, schedule)
    assert packing is not None
    launches = chain.launches(packing, template.launches(problem, schedule))
    assert len(launches) == PRODUCTS
    assert not chain.worst_error(sizes.rows) < 1e-2  # nothing is written yet
    for launch in launches:
        device.launch(launch)
    assert chain.worst_error(sizes.rows) < 1e-2
    chain.clear()
    assert not chain.worst_error(sizes.rows) < 1e-2


def test_a_wrong_schedule_is_named() -> None:
    time = Median(4e-5, 3.9e-5, 4.1e-5)
    right = Timed("a schedule", 3e-5, time, 1e-3)
    found = {READ: [right], BROUGHT: [replace(right, time=replace(time, median_seconds=2e-5))]}
    told = judge(Sizes(0, 1000, 64, 64), found, 1e12)
    assert told.passed
    assert "2.00 times as fast" in told.summary
    found[READ].append(replace(right, schedule="another", error=0.1))
    told = judge(Sizes(0, 1000, 64, 64), found, 1e12)
    assert not told.passed
    assert "WRONG: ['another']" in told.summary
