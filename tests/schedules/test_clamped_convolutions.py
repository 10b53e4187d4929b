"""Convolutions of clamped inputs: numbers on the emulator, in every way of loading."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from subjects.problems import channels_last, convolution

from wpk.build import load_nvrtc
from wpk.dtypes import ASKED, DType, Precision
from wpk.problems import ClampedConvolution, Convolution, Tensor
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

MMA, SIMT, WGMMA = ConvMmaTemplate(), ConvSimtTemplate(), ConvWgmmaTemplate()
SCHEDULE = MmaSchedule(block_m=64, block_n=32, block_k=32, warps_m=2, warps_n=1, stages=3)
SIMT_SCHEDULE = SimtSchedule(
    block_m=32, block_n=32, block_k=8, thread_m=4, thread_n=4, row_major=0, padding=4, prefetch=1
)


def clamped(
    precision: Precision = Precision.FP16,
    c: int = 24,
    k: int = 40,
    window: int = 1,
    *,
    upper: bool = True,
    n: int = 3,
) -> ClampedConvolution:
    """A window that tiles an image of 8 x 6, of an input whose channels have limits."""
    plain = convolution(c, k, (8, 6), window, stride=window, pads=0, n=n, precision=precision)
    limit = Tensor(precision.storage, (0, 1, 0, 0))
    return ClampedConvolution(**vars(plain), lower=limit, upper=limit if upper else None)


CASES: dict[str, dict[str, Any]] = {
    "1x1": {},
    "only from below": {"upper": False},
    "whole tiles of the reduction": {"c": 64},
    "the last tile is not whole": {"c": 40},
    "2x2, taps end within tiles": {"window": 2, "c": 40},
    "taps are padded": {"window": 2, "c": 22, "k": 7},
    "odd channels": {"c": 5, "k": 3},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", list(ASKED))
def test_tensor_cores_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    schedule = replace(SCHEDULE, block_k=64 // precision.storage.bytes)
    check_convolution(fast_execution, MMA, clamped(precision, **CASES[case]), schedule)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("precision", "row_major"), [(Precision.FP32, 0), (Precision.FP16, 1)])
def test_ordinary_cores_agree_with_float64(
    case: str,
    precision: Precision,
    row_major: int,
    fast_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    schedule = replace(SIMT_SCHEDULE, row_major=row_major, prefetch=1 - row_major)
    check_convolution(fast_execution, SIMT, clamped(precision, **CASES[case]), schedule)


WARPGROUPS: dict[str, tuple[dict[str, Any], WgmmaSchedule]] = {
    "1x1": ({"c": 64, "k": 40}, WgmmaSchedule(64, 64, 64, 2)),
    "a box is not whole": ({"c": 40, "upper": False}, WgmmaSchedule(64, 32, 64, 2)),
    "two groups, two boxes": ({"c": 136, "n": 5}, WgmmaSchedule(128, 32, 128, 2, early=1)),
    "taps of two boxes": ({"window": 2, "c": 72}, WgmmaSchedule(64, 64, 128, 3)),
    "a cluster": ({"c": 256, "k": 32}, WgmmaSchedule(64, 32, 64, 2, split=2, cluster=1)),
    "parts": ({"c": 256, "k": 32}, WgmmaSchedule(64, 32, 64, 2, split=2, early=1)),
}


@pytest.mark.parametrize("case", WARPGROUPS)
@pytest.mark.parametrize("precision", list(ASKED))
def test_warpgroups_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    form, schedule = WARPGROUPS[case]
    wide = precision.storage.bytes == 4
    chosen = replace(schedule, block_k=schedule.block_k // 2) if wide else schedule
    problem = clamped(precision, **form)
    assert WGMMA.why_illegal(problem, chosen, find_target("h200")) is None
    check_convolution(fast_execution, WGMMA, problem, chosen)


def test_warpgroups_are_exact_under_every_check(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = clamped(c=72, n=2, window=2)
    problem = replace(problem, y=channels_last(DType.FP32, problem.k, problem.p, problem.q))
    schedule = WgmmaSchedule(64, 32, 64, 3, split=2, early=1)
    check_convolution(checking_execution, WGMMA, problem, schedule, integers=True)


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize(("template", "schedule"), [(MMA, SCHEDULE), (SIMT, SIMT_SCHEDULE)])
def test_integers_are_exact_under_every_check(
    template: Any,
    schedule: Any,
    split: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = clamped(window=2, c=40, n=2)
    problem = replace(problem, y=channels_last(DType.FP32, problem.k, problem.p, problem.q))
    chosen = replace(schedule, split=split, early=1)
    check_convolution(checking_execution, template, problem, chosen, integers=True)


def test_limits_of_another_type_than_the_input(
    fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = clamped()
    limit = Tensor(DType.FP32, (0, 1, 0, 0))
    check_convolution(fast_execution, MMA, replace(problem, lower=limit, upper=limit), SCHEDULE)


@pytest.mark.parametrize("channels", [1, 3, 64])
def test_templates_that_do_not_limit_what_they_read_refuse(channels: int) -> None:
    target, problem = find_target("h200"), clamped(c=channels, k=64)
    values = {f.name: getattr(problem, f.name) for f in fields(Convolution)}
    plain = Convolution(**values)
    able = [t for t in TEMPLATES if isinstance(problem, t.problem_type)]
    assert sum(t.why_not(plain, target) is None for t in able) >= 2
    taken = {t.name for t in able if t.why_not(problem, target) is None}
    assert taken - {"conv_wgmma"} == {"conv_mma", "conv_simt"}
    assert ("conv_wgmma" in taken) == (channels == 64)


@pytest.mark.parametrize(
    ("template", "schedule"),
    [
        (MMA, replace(SCHEDULE, early=1)),
        (SIMT, SIMT_SCHEDULE),
        (WGMMA, WgmmaSchedule(64, 64, 64, 4, early=1)),
        (WGMMA, WgmmaSchedule(64, 32, 128, 3, split=2, cluster=1, early=1)),
    ],
)
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.FP32])
def test_machine_code_keeps_limits_in_registers(
    template: Any, schedule: Any, precision: Precision
) -> None:
    (source,) = template.instantiate(clamped(precision, c=1024, k=128), schedule)
    resources = load_nvrtc().compile(source, "sm_90a").resources
    assert resources.spill_store_bytes == resources.stack_bytes == 0
