"""Cases for the GPU: every template on odd shapes with several schedules, as plans of one network."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.plans.kernel_cases import Case, build_cases, drawn, images_of, picked

import wpk
from wpk.build import load_nvrtc
from wpk.device import CudaDevice
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.execution import Device
from wpk.libraries.cudnn import Cudnn
from wpk.plan.binding import (
    StepAddresses,
    bind_step,
    counter_bytes,
    element_bytes,
    workspace_bytes,
)
from wpk.plan.weights_file import array_bytes

BATCH = 3
"""A size of the free dimension that tiles do not divide."""

_POISON = 0xFF
_ALIGNMENT = 256


def run_step(case: Case, device: Device, seed: int = 0) -> NDArray[np.generic]:
    """Run a step on random memory, and give back the whole buffer that it wrote to."""
    plan, step = case.bundle.plan, case.step
    dims = dict.fromkeys(plan.free, BATCH)
    rng = np.random.default_rng(seed)
    addresses: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for name in dict.fromkeys((*step.inputs, *step.operator.outputs)):
        if name in plan.weights:
            key, data = name, np.frombuffer(array_bytes(case.bundle.weights[name]), np.uint8)
        else:
            value = plan.values[name]
            key = value.buffer
            data = _random(value.dtype, evaluate(plan.buffers[key].bytes, dims), rng)
        if key in addresses:  # a part of a concatenation that reads another part
            continue
        addresses[key], sizes[key] = device.allocate(max(data.size, _ALIGNMENT)), data.size
        device.write(
            addresses[key], np.full_like(data, _POISON) if name in step.operator.outputs else data
        )
    workspace = device.allocate(max(workspace_bytes(step, dims), _ALIGNMENT))
    zeros = np.zeros(max(counter_bytes(step, dims), _ALIGNMENT), np.uint8)
    counters = device.allocate(zeros.size)
    device.write(counters, zeros)

    def address(name: str) -> int:
        if name in plan.weights:
            return addresses[name]
        return addresses[plan.values[name].buffer] + plan.values[name].offset

    bound = StepAddresses(
        tuple(map(address, step.inputs)),
        element_bytes(plan, step),
        tuple(map(address, step.operator.outputs)),
        workspace,
        counters,
    )
    for launch in bind_step(step, bound, dims):
        device.launch(launch)
    assert not device.read(counters, zeros.size).any(), (
        f"{case}: counters are zero between launches"
    )
    output = plan.values[step.operator.outputs[0]]
    memory = device.read(addresses[output.buffer], sizes[output.buffer])
    for each in (*addresses.values(), workspace, counters):
        device.free(each)
    whole = memory[: memory.size // output.dtype.bytes * output.dtype.bytes]
    result: NDArray[np.generic] = whole.view(output.dtype.numpy)
    return result


def _random(dtype: DType, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    count = -(-size // dtype.bytes)
    values = rng.standard_normal(count) if dtype.is_float else rng.integers(0, 2, count)
    return np.frombuffer(values.astype(dtype.numpy).tobytes(), np.uint8)[:size].copy()


def load(case: Case, device: Device) -> None:
    """Load the kernels of a step."""
    for image in images_of(case):
        device.load(image)


@pytest.fixture(name="cuda", scope="session")
def fixture_cuda() -> Iterator[Device]:
    """The first GPU."""
    with CudaDevice() as device:
        yield device


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must launch kernels early."""
    if cuda.capability < (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


@pytest.fixture(name="library", scope="module")
def fixture_library(cuda: CudaDevice) -> Iterator[Cudnn]:
    """CuDNN on the first GPU."""
    with closing(Cudnn(cuda)) as library:
        yield library


@pytest.fixture(name="cases")
def fixture_cases(tmp_path: Path) -> Callable[[str, Precision, int], list[Case]]:
    """Cases by network, precision and number of schedules."""
    return lambda network, precision, count: build_cases(network, precision, drawn(count), tmp_path)


@pytest.fixture(name="splits")
def fixture_splits(tmp_path: Path) -> Callable[[str, Precision, int], set[str]]:
    """Templates of those cases whose blocks share a reduction."""

    def splits(network: str, precision: Precision, count: int) -> set[str]:
        _, finalists = picked(network, precision, drawn(count), tmp_path)
        return {
            each.template.name
            for all_of in finalists.values()
            for each in all_of
            if dict(each.prediction.schedule.parameters()).get("split", 1) > 1
        }

    return splits


@pytest.fixture(name="run_case")
def fixture_run_case() -> Callable[..., NDArray[np.generic]]:
    """`run_step`."""
    return run_step


@pytest.fixture(name="load_case")
def fixture_load_case() -> Callable[..., None]:
    """`load`."""
    return load


@pytest.fixture(name="record")
def fixture_record(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """Adds an entry to the JSON file given by ``--record``; several processes may."""
    path: Path | None = request.config.getoption("--record")

    def record(name: str, entry: object) -> None:
        if path is None:
            return
        with path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            entries = json.loads(file.read() or "{}")
            entries |= {"machine": _machine(request.config), name: entry}
            file.truncate(0)
            file.write(json.dumps(entries, indent=1, sort_keys=True) + "\n")

    return record


def _machine(config: pytest.Config) -> dict[str, str]:
    """What the figures were taken with."""
    with CudaDevice() as device:
        return {
            "gpu": device.name,
            "driver": device.facts.driver,
            "cuda_driver_api": device.facts.cuda_api,
            "nvrtc": ".".join(map(str, load_nvrtc().version)),
            "wpk": wpk.__version__,
            "commit": config.getoption("--commit") or "unknown",
            "command": "scripts/gpu_tests --processes N --record FILE --commit HASH",
        }
