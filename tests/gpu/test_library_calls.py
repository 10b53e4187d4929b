"""Library implementations as plans hold them: made again from numbers, called, timed, refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from fused_convolutions import CONVOLUTIONS

from wpk.device.rotation import Region
from wpk.device.timing import Patience
from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.execution import BoundCall, LibraryImage
from wpk.libraries.constant_layouts import lay_out
from wpk.libraries.cudnn import Cudnn
from wpk.libraries.gpu import GpuDevice
from wpk.libraries.memory import places
from wpk.libraries.offer import constant_layout
from wpk.libraries.process import TrialProcess
from wpk.libraries.reference import random_case, worst_error
from wpk.performance.bound import bound
from wpk.problems import Convolution
from wpk.targets.registry import find_target
from wpk.trial import Regime

pytestmark = pytest.mark.gpu

MOST = 4
"""Implementations of each problem that are tried."""


@pytest.fixture(name="process", scope="module")
def fixture_process() -> Iterator[TrialProcess]:
    """A child that executes candidates."""
    with TrialProcess(limit_seconds=30.0) as process:
        yield process


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
@pytest.mark.parametrize("name", ["bare", "bias residual relu", "stride 2"])
def test_what_is_offered_can_be_made_again_is_right_and_takes_time(
    process: TrialProcess, name: str, precision: Precision
) -> None:
    problem = CONVOLUTIONS[name](precision)
    offer = process.offer(problem)
    assert offer.configurations, offer.refusals
    assert len(set(offer.configurations)) == len(offer.configurations)
    right = 0
    for configuration in offer.configurations:
        image = LibraryImage(offer.library, offer.version, problem, configuration)
        try:
            scratch = process.prepare(image)
        except EngineError:
            continue  # it is not compiled for this GPU, or not precise enough
        _check_and_time(process, problem, image, scratch)
        right += 1
        if right == MOST:
            break
    assert right


def _check_and_time(
    process: TrialProcess, problem: Convolution, image: LibraryImage, scratch: int
) -> None:
    case = random_case(problem, seed=11)
    layout = constant_layout(problem, image.configuration)
    *inputs, output = places(problem, layout)
    memories = []
    for index, (place, values) in enumerate(zip(inputs, case.operands, strict=True)):
        memory = np.zeros(place.bytes, np.uint8)
        if index == 1 and layout is not None:
            memory = lay_out(layout, values).reshape(-1).view(np.uint8)
        else:
            place.view(memory)[...] = values
        memories.append(memory)
    memories += [np.full(output.bytes, 0xFF, np.uint8), np.zeros(max(1, scratch), np.uint8)]
    addresses = [process.allocate(memory.nbytes) for memory in memories]
    try:
        for address, memory in zip(addresses, memories, strict=True):
            process.write(address, memory)
        call = BoundCall(image.digest, tuple(addresses[:-1]), addresses[-1])
        process.launch(call)
        result = output.view(process.read(addresses[-2], output.bytes))
        assert worst_error(result, case) <= 1
        regions = [Region(a, m.nbytes) for a, m in zip(addresses, memories, strict=True)]
        least = bound(problem, find_target("h200")).seconds
        for regime in Regime:
            timing = process.measure([call], regions, regime, Patience(3, 5, 0.05, 0.1))
            assert timing.median > least
        (alone,) = process.step_seconds([[call]])
        assert alone > least
    finally:
        for address in addresses:
            process.free(address)  # and nothing around them was written to


def test_numbers_that_name_no_implementation_are_refused() -> None:
    problem = CONVOLUTIONS["bare"](Precision.FP16)
    with GpuDevice() as device, Cudnn(device) as library:
        image = LibraryImage("cuDNN", library.version, problem, (("graph", 0), ("engine", 9999)))
        with pytest.raises(EngineError, match="9999"):
            device.load(image)
        knobs = replace(image, configuration=(("graph", 0), ("engine", 0), ("NO_SUCH_KNOB", 1)))
        with pytest.raises(EngineError, match="NO_SUCH_KNOB"):
            device.load(knobs)


def test_another_version_than_the_one_installed_is_refused_naming_both() -> None:
    problem = CONVOLUTIONS["bare"](Precision.FP16)
    with GpuDevice() as device, Cudnn(device) as library:
        image = LibraryImage("cuDNN", "1.2.3", problem, (("graph", 0), ("engine", 0)))
        with pytest.raises(EngineError, match=rf"cuDNN 1\.2\.3, and cuDNN {library.version}"):
            device.load(image)
