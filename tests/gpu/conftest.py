"""Cases for the GPU: every template on odd shapes with several schedules, as plans of one network."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.networks import handwritten

import wpk
from wpk.assembly.assemble import Setting, assemble
from wpk.assembly.implementation import generated
from wpk.build import CompilePool, KernelCache, load_nvrtc
from wpk.candidate import Candidate
from wpk.device import CudaDevice
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.execution import Device, KernelImage
from wpk.libraries.cudnn import Cudnn
from wpk.lowering.model import LoweredModel, lower_model
from wpk.plan.binding import (
    StepAddresses,
    bind_step,
    counter_bytes,
    element_bytes,
    workspace_bytes,
)
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.provenance import Provenance
from wpk.plan.weights_file import array_bytes
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.schedules.template import Schedule, ScheduleTemplate
from wpk.search.models.static_search import Finalist, Shortlists, finalist_of, shortlist_all
from wpk.targets.registry import find_target

BATCH = 3
"""A size of the free dimension that tiles do not divide."""

H200 = find_target("h200")

_POISON = 0xFF
_ALIGNMENT = 256


@dataclass(frozen=True)
class Case:
    """One step: a problem with one schedule.

    Attributes:
        bundle: The plan that it is a step of.
        step: The step.
    """

    bundle: PlanBundle
    step: Step

    @property
    def template(self) -> str:
        """Name of the schedule's template."""
        return self.step.candidate.maker.name

    def __str__(self) -> str:
        """``conv_mma of conv_relu_0 in grouped_dilated: block_m=64 ...``."""
        schedule = " ".join(f"{name}={value}" for name, value in self.step.candidate.configuration)
        model = self.bundle.plan.provenance.model
        return f"{self.template} of {self.step.operator.name} in {model}: {schedule}"


def picked(
    network: str, precision: Precision, count: int, folder: Path
) -> tuple[LoweredModel, dict[Problem, list[Finalist]]]:
    """A hand-written network, and ``count`` schedules of every template for each of its problems."""
    lowered = lower_model(handwritten.write(network, folder), {}, precision)
    problems = dict.fromkeys(operator.problem for operator in lowered.program.operators)
    return lowered, {p: _pick(shortlist_all(p, TEMPLATES, H200), count) for p in problems}


def build_cases(network: str, precision: Precision, count: int, folder: Path) -> list[Case]:
    """Every problem of a hand-written network with ``count`` schedules of every template."""
    lowered, finalists = picked(network, precision, count, folder)
    provenance = Provenance(network, "", lowered.opset, {}, ())
    sources = [s for all_of in finalists.values() for each in all_of for s in each.sources]
    with CompilePool(H200.arch, cache=KernelCache()) as pool:
        outcomes = {c.source.digest: c for c in pool.compile(sources)}
    failed = [f"{c.source.text}: {c.error}" for c in outcomes.values() if c.error]
    assert not failed, failed[0]
    kernels = {d: c.kernel for d, c in outcomes.items() if c.kernel is not None}
    cases: dict[tuple[Problem, Candidate], Case] = {}
    for turn in range(max(map(len, finalists.values()))):
        made = {p: generated(p, f[turn % len(f)]) for p, f in finalists.items()}
        bundle = assemble(lowered.program, made, kernels, Setting(H200, precision, provenance))
        for step in bundle.plan.steps:
            cases.setdefault((step.operator.problem, step.candidate), Case(bundle, step))
    return list(cases.values())


def _pick(shortlists: Shortlists, count: int) -> list[Finalist]:
    """Schedules of every template from all over its legal space, the same at every call.

    Where reductions can be split, one schedule splits, however the draw falls.
    """
    picked = []
    for each in shortlists.templates:
        template: ScheduleTemplate[Problem, Schedule] = each.template
        _, columns = template.space(shortlists.problem, shortlists.target)
        rows = len(next(iter(columns.values())))
        rng = np.random.default_rng(rows)
        drawn = {int(r) for r in rng.choice(rows, min(count, rows), replace=False)}
        split = np.flatnonzero(columns.get("split", np.ones(rows)) > 1)
        if split.size:
            drawn.add(int(rng.choice(split)))
        for row in sorted(drawn):
            parameters = template.schedule(columns, row).parameters()
            candidate = Candidate(template.maker, parameters)
            picked.append(finalist_of(shortlists.problem, candidate, H200))
    return picked


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
    template = TEMPLATE_OF[case.template]
    schedule = template.schedule_from(case.step.candidate.configuration)
    for source in template.instantiate(case.step.operator.problem, schedule):
        device.load(KernelImage(source.digest, source, case.bundle.cubins[source.digest]))


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
    return lambda network, precision, count: build_cases(network, precision, count, tmp_path)


@pytest.fixture(name="splits")
def fixture_splits(tmp_path: Path) -> Callable[[str, Precision, int], set[str]]:
    """Templates of those cases whose blocks share a reduction."""

    def splits(network: str, precision: Precision, count: int) -> set[str]:
        _, finalists = picked(network, precision, count, tmp_path)
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
