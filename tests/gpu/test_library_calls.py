"""Library implementations as plans hold them: made again from numbers, called, timed, refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from support.launches import slow_copies
from support.launches.slow_copies import slow_copy
from support.problems.fused_convolutions import CONVOLUTIONS

import wpk.device.cuda
from wpk.backends import GpuProcess, open_gpu
from wpk.device import CudaDevice, MemoryRange, Patience
from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.execution import BoundCall, BoundLaunch, LibraryImage
from wpk.libraries import find_library, lay_out, random_case
from wpk.libraries.cudnn import Cudnn
from wpk.libraries.memory import places
from wpk.libraries.reference import worst_error
from wpk.performance.bound import bound
from wpk.problems import Convolution
from wpk.targets.registry import find_target
from wpk.trial import Regime

pytestmark = pytest.mark.gpu

MOST = 4
"""Implementations of each problem that are tried."""


@pytest.fixture(name="process", scope="module")
def fixture_process() -> Iterator[GpuProcess]:
    """A child that executes candidates."""
    with GpuProcess(limit_seconds=30.0) as process:
        yield process


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
@pytest.mark.parametrize("name", ["bare", "bias residual relu", "stride 2"])
def test_what_is_offered_can_be_made_again_is_right_and_takes_time(
    process: GpuProcess, name: str, precision: Precision
) -> None:
    problem = CONVOLUTIONS[name](precision)
    offer = process.offer("cuDNN", problem)
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
    process: GpuProcess, problem: Convolution, image: LibraryImage, scratch: int
) -> None:
    case = random_case(problem, seed=11)
    layout = find_library(image.library).constant_layout(problem, image.configuration)
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
        call = BoundCall(image.digest, tuple(addresses[:-1]), addresses[-1], scratch)
        process.launch(call)
        result = output.view(process.read(addresses[-2], output.bytes))
        assert worst_error(result, case) <= 1
        regions = [MemoryRange(a, m.nbytes) for a, m in zip(addresses, memories, strict=True)]
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
    with open_gpu() as device, closing(Cudnn(device)) as library:
        image = LibraryImage("cuDNN", library.version, problem, (("graph", 0), ("engine", 9999)))
        with pytest.raises(EngineError, match="9999"):
            device.load(image)
        knobs = replace(image, configuration=(("graph", 0), ("engine", 0), ("NO_SUCH_KNOB", 1)))
        with pytest.raises(EngineError, match="NO_SUCH_KNOB"):
            device.load(knobs)


def test_another_version_than_the_one_installed_is_refused_naming_both() -> None:
    problem = CONVOLUTIONS["bare"](Precision.FP16)
    with open_gpu() as device, closing(Cudnn(device)) as library:
        image = LibraryImage("cuDNN", "1.2.3", problem, (("graph", 0), ("engine", 0)))
        with pytest.raises(EngineError, match=rf"cuDNN 1\.2\.3, and cuDNN {library.version}"):
            device.load(image)


class Behind:
    """A library's convolution behind slow kernels that write what it reads, and let it begin before."""

    def __init__(self, device: CudaDevice, image: LibraryImage, branches: bool) -> None:
        """Capture; the slow kernels run at once, or each before the next."""
        problem = image.problem
        assert isinstance(problem, Convolution)
        self.device, self.case = device, random_case(problem, seed=5)
        device.load(slow_copies.image())
        device.load(image)
        layout = find_library(image.library).constant_layout(problem, image.configuration)
        *inputs, self.place = places(problem, layout)
        self.zeros: list[tuple[int, int]] = []
        works: list[BoundLaunch | BoundCall] = []
        pointers = []
        for index, (place, values) in enumerate(zip(inputs, self.case.operands, strict=True)):
            memory = np.zeros(-(-place.bytes // 4) * 4, np.uint8)
            if index == 1 and layout is not None:
                memory = lay_out(layout, values).reshape(-1).view(np.uint8)
            else:
                place.view(memory[: place.bytes])[...] = values
            pointers.append(device.allocate(memory.nbytes))
            device.write(pointers[-1], memory)
            if index in (0, len(inputs) - 1):  # the image and the residual
                source_address, pointers[-1] = pointers[-1], device.allocate(memory.nbytes)
                works.append(slow_copy(source_address, pointers[-1], memory.nbytes))
                self.zeros.append((pointers[-1], memory.nbytes))
        self.output = device.allocate(self.place.bytes)
        scratch = device.allocate(1 << 26)
        copies = range(len(works))
        works.append(BoundCall(image.digest, (*pointers, self.output), scratch, 1 << 26))
        at_once = [*(() for _ in copies), tuple(copies)]
        self.graph = device.capture(works, at_once if branches else None)

    def error(self) -> float:
        for address, size in self.zeros:
            self.device.write(address, np.zeros(size, np.uint8))
        self.graph.replay()
        return worst_error(
            self.place.view(self.device.read(self.output, self.place.bytes)), self.case
        )


@pytest.mark.parametrize("branches", [False, True])
def test_a_library_reads_what_the_kernels_in_front_wrote(
    record: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch, branches: bool
) -> None:
    problem = CONVOLUTIONS["bias residual relu"](Precision.FP16)
    overtaken = tried = 0
    with open_gpu() as device, closing(Cudnn(device)) as library:
        offered = dict.fromkeys(each.configuration for each in library.offer(problem).candidates)
        for configuration in list(offered)[:12]:
            image = LibraryImage("cuDNN", library.version, problem, configuration)
            try:
                behind = Behind(device, image, branches)
            except EngineError:
                continue
            assert max(behind.error() for _ in range(5)) <= 1
            tried += 1
            with monkeypatch.context() as patch:  # what would be without the node between them
                patch.setattr(wpk.device.cuda, "end_overlap", lambda _stream: None)
                overtaken += max(Behind(device, image, branches).error() for _ in range(5)) > 1
    assert tried
    record(f"libraries_that_overtake.{branches}", {"tried": tried, "overtaken": overtaken})
