"""Faults planted in squeeze and excitation: checking mode or the comparison with float64 sees each of them."""

from dataclasses import replace
from typing import Any

import pytest
from support.faults.planter import Fault, change, drop, plant, together
from support.problems.squeezes import error_of, squeeze

from wpk.emulator import EmulatorError
from wpk.schedules.squeeze import SqueezeSchedule, SqueezeTemplate

CHANNELS = SqueezeSchedule(blocks=2, threads=64, staged=1, by_pixels=0, early=1)
SMALL, LARGE = squeeze(21, 19, 9), squeeze(83, 19, 41)
PIXELS, ALONE = replace(CHANNELS, by_pixels=1), replace(CHANNELS, blocks=1)
KEPT = replace(CHANNELS, kept=1)
ROWS = squeeze(83, 19, 41, padded=True)
OF_FEW_CHANNELS = [Fault("the mean is of sums that are not there", drop("pooled_by_all"))]
"""Where several threads add the lanes of a channel."""

FAULTS = [
    (Fault("lanes are added before all have pooled", drop("lanes_pooled")), CHANNELS),
    *((fault, CHANNELS) for fault in OF_FEW_CHANNELS),
    (Fault("the mean is of another block's sums of before", drop("sums_there")), PIXELS),
    (Fault("weights are multiplied before they are there", drop("weights_there")), CHANNELS),
    (Fault("means are multiplied before they are there", drop("means_there")), CHANNELS),
    (Fault("parts are added before other blocks have them", drop("parts_there")), CHANNELS),
    (Fault("hidden sums are read before they are there", drop("part_there")), ALONE),
    (Fault("the hidden row is multiplied before it is there", drop("hidden_there")), CHANNELS),
    (Fault("gates are made before their sums are there", drop("products_there")), CHANNELS),
    (Fault("gates of other blocks are read before they are there", drop("gates_of_all")), PIXELS),
    (Fault("gates scale before they are there", drop("gates_there")), CHANNELS),
    (Fault("pixels behind the last count", change("pooled", "p + j * lanes", "p")), CHANNELS),
    (
        Fault("the first pixels are left out", change("first_pixel", "+ lane", "+ lane + 1")),
        CHANNELS,
    ),
    (Fault("all gates come to one place", change("gates_placed", "block.rank", "0")), PIXELS),
    (Fault("all sums come to one place", change("sums_placed", "block.rank", "0")), PIXELS),
    (Fault("all parts come to one place", change("parts_placed", "block.rank", "0")), CHANNELS),
    (
        Fault("fewer bytes are announced than come", change("bytes_announced", "* 4", "* 2")),
        CHANNELS,
    ),
    (
        Fault(
            "blocks send before others have barriers",
            together(drop("meetings_told"), drop("meetings_prepared")),
        ),
        CHANNELS,
    ),
    (Fault("images are pooled before they are there", drop("images_there")), KEPT),
    (
        Fault("another pixel is scaled", change("kept_pixel", "place - first", "place")),
        replace(KEPT, by_pixels=1),
    ),
]


_IN_EVERY_RUN = (3, 5)
"""Faults that are planted in every run: a kernel is compiled for each."""


@pytest.mark.parametrize(
    ("fault", "schedule"),
    [
        pytest.param(
            *each, id=each[0].name, marks=() if place in _IN_EVERY_RUN else pytest.mark.slow
        )
        for place, each in enumerate(FAULTS)
    ],
)
def test_a_planted_fault_is_seen(
    fault: Fault, schedule: SqueezeSchedule, checking_execution: Any
) -> None:
    template = plant(SqueezeTemplate(), fault)
    problem = SMALL if fault in OF_FEW_CHANNELS else ROWS if schedule.kept else LARGE
    try:
        error = error_of(
            checking_execution, problem, schedule, template, scales_itself=schedule.kept == 1
        )
    except (EmulatorError, AssertionError):
        return
    assert error > 1, "nobody noticed"


@pytest.mark.slow
def test_without_a_fault_nothing_is_seen(checking_execution: Any) -> None:
    for schedule in (CHANNELS, PIXELS, ALONE):
        assert error_of(checking_execution, LARGE, schedule) <= 1
    for schedule in (KEPT, replace(KEPT, by_pixels=1)):
        assert error_of(checking_execution, ROWS, schedule, scales_itself=True) <= 1
