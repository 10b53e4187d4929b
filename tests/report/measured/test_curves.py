"""Pictures of searches."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from support.plans.candidates import kernel, library_call

from wpk.plan.measurement import GENERATED, Contestant, Curve, Measurement, Tally
from wpk.report.plans.measured import curve_words
from wpk.report.plans.page.curves import search_curves

CHOSEN = Contestant(kernel("conv_mma", ()), 2e-6, 2e-6, 2e-6, 5, True)
CURVES = (
    Curve("conv_mma", "genetic", ((1, 20e-6), (5, 4e-6))),
    Curve("conv_mma", "ppo", ((2, 10e-6), (9, 2e-6))),
)
MEASURED = Measurement(
    CHOSEN, (), "warm", (Tally(GENERATED, {"ok": 15, "timed_out": 1}),), 0, "spent", curves=CURVES
)


def paths(picture: str, style: str) -> list[list[float]]:
    """Numbers of every path in a group or path of a style."""
    found = re.findall(rf'class="{style}"><title>[^<]*</title><path d="([^"]*)"', picture)
    found += re.findall(rf'd="([^"]*)" class="{style}"', picture)
    return [[float(number) for number in re.findall(r"[\d.]+", each)] for each in found]


def test_each_searcher_has_a_curve_that_falls_in_steps() -> None:
    picture = search_curves(MEASURED, 1.0, 0)
    ((x0, y0, x1, y1, end),) = paths(picture, "curve-0")
    ((u0, v0, u1, v1, other),) = paths(picture, "curve-1")
    assert x0 < u0 < x1 < u1 < end == other  # both last to the end of the search
    assert y0 < v0 < y1 < v1  # down is faster
    assert v1 - v0 == pytest.approx(y1 - y0, abs=0.2)  # both five times: the axis is logarithmic
    assert "conv_mma, genetic" in picture
    assert "conv_mma, ppo" in picture


def test_bound_and_library_are_lines() -> None:
    library = replace(CHOSEN, candidate=library_call(), median_seconds=3e-6)
    picture = search_curves(replace(MEASURED, others=(library,)), 1.0, 0)
    ((_, bound, _),) = paths(picture, "level-bound")
    ((_, best, _),) = paths(picture, "level-library")
    assert best < bound
    assert "cuDNN&#x27;s best 3.00 µs" in picture


def test_times_close_together_have_a_linear_axis_with_round_marks() -> None:
    curves = (Curve("a", "", ((1, 2.4e-6), (2, 2.2e-6), (3, 2.0e-6))),)
    picture = search_curves(replace(MEASURED, curves=curves), 1.9, 0)
    ((_, first, _, second, _, third, _),) = paths(picture, "curve-0")
    assert second - first == pytest.approx(third - second, abs=0.2)
    assert {"2", "2.2", "2.4"} <= set(re.findall(r">([\d.]+)</text>", picture))


@pytest.mark.parametrize("points", [((1, 1e-6),), ((1, 5e-324),)], ids=["one", "hardly any time"])
def test_a_search_of_one_trial_is_drawn(points: tuple[tuple[int, float], ...]) -> None:
    tallies = (Tally(GENERATED, {"ok": 1}),)
    measured = replace(MEASURED, curves=(Curve("a", "", points),), tallies=tallies)
    assert "<svg" in search_curves(measured, 0.0, 0)


def test_without_a_curve_there_is_no_picture_but_the_facts() -> None:
    measured = replace(MEASURED, curves=(), refusals=("odd strides",), lookups=("miss: new",))
    part = search_curves(measured, 1.0, 0)
    assert "<svg" not in part
    for words in ("generated 15 ok, 1 timed out; stopped: spent.", "odd strides", "miss: new"):
        assert words in part


def test_a_curve_in_words_keeps_both_ends() -> None:
    points = tuple((trial, (20 - trial) * 1e-6) for trial in range(1, 10))
    assert curve_words(Curve("a", "", points)) == (
        "19.00 @1 → 18.00 @2 → 17.00 @3 → … → 13.00 @7 → 12.00 @8 → 11.00 @9"
    )
