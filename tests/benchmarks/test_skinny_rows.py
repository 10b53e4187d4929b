"""Chains of products of few rows: what each side times is its own, and computes the same as float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rows.networks import Median
from rows.skinny import BASELINE, DOZEN, OTHERS, SIZES, SKINNY, judge, side
from subjects.product_chain import ProductChain, Sizes, in_float64

from wpk.emulator import GUARDED, Emulator
from wpk.execution import KernelImage
from wpk.targets.registry import find_target

H100 = find_target("h100")
SMALL = Sizes(2, 64, 48, 2)


def test_chains_are_longer_than_l2_where_matrices_are_large() -> None:
    large = [each for each in SIZES if each.k >= 4096]
    assert len(large) == 5
    assert all(each.bytes > 3 * H100.l2_bytes for each in large)
    assert all(each.products <= 32 for each in SIZES)


@pytest.mark.parametrize("is_skinny", [True, False])
def test_a_side_is_a_dozen_schedules_of_its_templates(is_skinny: bool) -> None:
    for kernels in side(SIZES[1], H100, is_skinny).values():
        assert len({each.candidate for each in kernels}) == DOZEN
        assert {each.template.name == SKINNY for each in kernels} == {is_skinny}


def test_a_chain_computes_what_float64_does() -> None:
    device, weights = Emulator(GUARDED), SMALL.weights()
    chain = ProductChain(device, SMALL, weights)
    kernels = {way: each[0] for way, each in side(SMALL, H100, True).items()}
    for kernel in kernels.values():
        for source in kernel.sources:
            device.load(KernelImage(source.digest, source, b""))
    assert len(chain.launches({1: kernels[1]})) == SMALL.pairs
    for launch in chain.launches(kernels):
        device.launch(launch)
    right = in_float64(SMALL.input(), weights)
    size = np.sqrt(np.mean(right**2))
    assert 0.1 < size < 10
    np.testing.assert_allclose(chain.output(), right, atol=5e-3 * size)


def test_a_wrong_side_is_named() -> None:
    right = np.ones((2, 3))
    names = (SKINNY, OTHERS, BASELINE)
    outputs = {name: np.ones((2, 3), np.float16) for name in names}
    times = {name: Median(2e-5, 1.9e-5, 2.1e-5) for name in names}
    times[BASELINE] = replace(times[BASELINE], median_seconds=4e-5)
    told = judge(SMALL, right, outputs, times, 1e9, {})
    assert told.passed
    assert "2.00 times as fast" in told.summary
    share = SMALL.bytes / 2e-5 / 1e9
    assert told.figures["share_of_bandwidth"][SKINNY] == pytest.approx(share)
    outputs[OTHERS][1, 2] = 1.1
    told = judge(SMALL, right, outputs, times, 1e9, {})
    assert not told.passed
    assert f"WRONG: ['{OTHERS}']" in told.summary
