"""First layers from patches on the GPU: schedules against float64, and what the likeliest ones take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.operands import Operands
from subjects.problems import channels_last
from support.problems.first_layers import CASES, first_layer

from wpk.build import load_nvrtc
from wpk.device import CudaDevice
from wpk.dtypes import ASKED, DType, Precision
from wpk.execution import BoundLaunch, KernelImage
from wpk.expression import Acc, Operand, apply
from wpk.libraries import random_case
from wpk.libraries.reference import RandomCase, worst_error
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules import packings
from wpk.schedules.conv_patch import ConvPatchTemplate, PatchSchedule
from wpk.search.models.static_search import shortlist_all
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

SPREAD, LIKELIEST = 10, 24
"""Schedules from all over a space; those of the least estimates."""

REPETITIONS, CHAIN, SAMPLES = 5, 16, 9

TEMPLATE, H200 = ConvPatchTemplate(), find_target("h200")
_BIAS = Epilogue(
    apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(DType.FP32, (0, 1, 0, 0)),)
)
_SAME = {"filter": (3, 3), "stride": (1, 1), "pads": (1, 1, 1, 1)}
LAYERS: dict[str, dict[str, Any]] = {
    "ResNet": {"k": 64, "size": (224, 224), "n": 1},
    "ResNet, 32 images": {"k": 64, "size": (224, 224), "n": 32},
    "VGG": {"k": 64, "size": (224, 224), "n": 1, **_SAME},
    "MobileNetV2": {"k": 32, "size": (224, 224), "n": 1, **_SAME, "stride": (2, 2)},
    "small images": {"k": 16, "size": (32, 32), "n": 1, **_SAME},
}


def drawn(problem: Convolution, seed: int) -> RandomCase:
    """Random operands that no conversion rounds, and what they give."""
    stored = problem.precision.storage
    case = random_case(replace(problem, x=replace(problem.x, dtype=stored)), seed)
    x, *others = case.operands
    return replace(case, operands=(x.astype(problem.x.dtype.numpy), *others))


class Layer:
    """One problem with its memory on a device."""

    def __init__(self, device: CudaDevice, problem: Convolution, operands: Operands) -> None:
        self.device, self.problem, self.operands = device, problem, operands
        any_schedule = PatchSchedule(1, 16, 16, 1, 1)
        packing = TEMPLATE.packing(problem, any_schedule)
        packed = packings.pack(packing, operands.case.operands[1], problem)
        *self._inputs, self._output = operands.with_constant(packed)

    def bound(self, schedule: Any) -> BoundLaunch:
        """A launch of a schedule, compiled and loaded."""
        (source,) = TEMPLATE.instantiate(self.problem, schedule)
        (launch,) = TEMPLATE.launches(self.problem, schedule)
        cubin = load_nvrtc().compile(source, H200.arch).cubin
        self.device.load(KernelImage(source.digest, source, cubin))
        addresses = StepAddresses(
            tuple(self._inputs), (4,) * len(self._inputs), (self._output,), 0, 0
        )
        return bind_launch(launch, addresses, {})

    def worst(self, launch: BoundLaunch) -> float:
        """The largest error after a launch, in units of what is allowed."""
        self.operands.poison()
        self.device.launch(launch)
        return worst_error(self.operands.result(), self.operands.case)


@contextmanager
def placed(device: CudaDevice, problem: Convolution) -> Iterator[Layer]:
    """The layer, as long as it is measured."""
    with Operands(device, problem, drawn(problem, seed=3)) as operands:
        yield Layer(device, problem, operands)


def all_over(problem: Convolution) -> Iterator[Any]:
    """Legal schedules, evenly from the whole space."""
    _, legal = TEMPLATE.space(problem, H200)
    rows = len(legal["early"])
    for row in np.unique(np.linspace(0, rows - 1, SPREAD).astype(int)):
        yield TEMPLATE.schedule(legal, int(row))


def launches(
    device: CudaDevice, name: str, precision: Precision
) -> Iterator[tuple[Layer, Any, BoundLaunch]]:
    """A case's layer with one schedule after another, ready to be launched."""
    problem = replace(first_layer(precision=precision, **CASES[name]), epilogue=_BIAS)
    with placed(device, problem) as layer:
        for schedule in all_over(problem):
            yield layer, schedule, layer.bound(schedule)


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("name", CASES)
def test_schedules_agree_with_float64(cuda: CudaDevice, name: str, precision: Precision) -> None:
    for layer, schedule, launch in launches(cuda, name, precision):
        worst = layer.worst(launch)
        assert worst <= 1, f"{schedule}: {worst} times too far"


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("name", CASES)
def test_schedules_repeat_themselves(cuda: CudaDevice, name: str, precision: Precision) -> None:
    for layer, _, launch in launches(cuda, name, precision):
        cuda.launch(launch)
        first = layer.operands.result()
        for _ in range(REPETITIONS):
            cuda.launch(launch)
            np.testing.assert_array_equal(layer.operands.result(), first)


@pytest.mark.timed
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.TF32, Precision.FP32])
@pytest.mark.parametrize("form", ["as given", "half, channels last"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_likeliest_schedules_are_right_and_what_they_take(
    cuda: CudaDevice,
    record: Callable[[str, object], None],
    name: str,
    form: str,
    precision: Precision,
) -> None:
    problem = replace(first_layer(precision=precision, **LAYERS[name]), epilogue=_BIAS)
    if form != "as given":
        if precision is not Precision.FP16:
            pytest.skip("images with 16 bits belong to products of 16 bits")
        problem = replace(problem, x=channels_last(DType.FP16, 3, problem.h, problem.w, 5))
    (shortlist,) = shortlist_all(problem, (TEMPLATE,), H200).templates
    rows = []
    with placed(cuda, problem) as layer:
        for scored in shortlist.ranked[:LIKELIEST]:
            launch = layer.bound(scored.schedule)
            worst = layer.worst(launch)
            assert worst <= 1, f"{scored.schedule}: {worst} times too far"
            rows.append(
                {
                    "us": _microseconds(cuda, launch),
                    "estimate_us": scored.estimate * 1e6,
                    "schedule": dict(scored.schedule.parameters()),
                }
            )
    rows.sort(key=lambda row: row["us"])
    record(f"first layer: {name}, {form}, {precision.value}", rows)


def _microseconds(cuda: CudaDevice, launch: BoundLaunch) -> float:
    """Of a launch in a chain of itself, as an engine has it; the median."""
    if cuda.capability < (9, 0):
        launch = replace(launch, attributes=())
    graph = cuda.capture([launch] * CHAIN)
    samples = sorted(cuda.seconds(graph) / CHAIN * 1e6 for _ in range(SAMPLES))
    return samples[SAMPLES // 2]
