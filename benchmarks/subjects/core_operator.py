"""Steps of a plan as operators that C++ executes (``plugins/core``), with what Python's engine made of the same bytes."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rows.base import RowError

from subjects.c_engine import built
from wpk.device import CudaDevice
from wpk.dtypes import DType
from wpk.engine import Engine
from wpk.engine.bindings import Binding
from wpk.engine.placement import footprint, to_memory
from wpk.execution import Bytes
from wpk.launch import (
    EARLY_LAUNCH,
    NO_CLUSTER,
    Argument,
    CounterArgument,
    InputArgument,
    OutputArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.binding import (
    StepAddresses,
    bind_step,
    counter_bytes,
    element_bytes,
    workspace_bytes,
)
from wpk.plan.plan import Plan, PlanBundle, Step
from wpk.plan.spec_of_plan import work_of
from wpk.spec import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
)

Arrays = Mapping[str, NDArray[np.generic]]

SANITIZER_VARIABLE = "WPK_SANITIZER"
"""Words in front of each execution, e.g. ``compute-sanitizer --error-exitcode 9``."""

PORTABLE_SHARED_BYTES = 48 << 10


@dataclass(frozen=True)
class CoreCase:
    """One step, executed by Python.

    Attributes:
        family: The template that computes it.
        name: Of the operator.
        features: What its launches need of the core.
        spec: For C++.
        dims: Values of the free dimensions, in the spec's order.
        inputs: Bytes of the inputs.
        outputs: Bytes that the outputs hold before.
        expected: Bytes of the outputs, whole: between rows what was there before.
    """

    family: str
    name: str
    features: frozenset[str]
    spec: OperatorSpec
    dims: tuple[int, ...]
    inputs: bytes
    outputs: bytes
    expected: bytes


def core_cases(
    bundle: PlanBundle, device: CudaDevice, arrays: Arrays, dims: Mapping[str, int]
) -> Iterator[CoreCase]:
    """Execute a plan step by step, and yield each step whose kernels or library's implementation is new.

    Args:
        bundle: The plan.
        device: Where.
        arrays: The model's inputs.
        dims: Values of the free dimensions.
    """
    plan = bundle.plan
    with Engine(bundle, device) as engine:
        binding = engine.bind(dims)
        for port in plan.inputs:
            memory = to_memory(plan.values[port.name], arrays[port.name], dims)
            device.write(binding.address(port.name), memory)
        seen: set[tuple[str, ...]] = set()
        for step, works in zip(plan.steps, binding.steps, strict=True):
            image = step.image
            parts = [launch.kernel for launch in step.launches] if image is None else [image.digest]
            operands = _Operands(bundle, device, binding, dims)
            inputs = [operands.bytes_of(name) for name in step.inputs]
            for work in works:
                device.launch(work)
            if tuple(parts) not in seen:
                outputs = [~operands.bytes_of(name) for name in step.operator.outputs]
                yield _case(bundle, step, inputs, outputs, device, dims)
            seen.add(tuple(parts))


@dataclass(frozen=True)
class _Operands:
    """What lies in the engine's memory."""

    bundle: PlanBundle
    device: CudaDevice
    binding: Binding
    dims: Mapping[str, int]

    def bytes_of(self, name: str) -> Bytes:
        weight = self.bundle.weights.get(name)
        if weight is not None:
            return np.ascontiguousarray(weight).reshape(-1).view(np.uint8)
        size = footprint(self.bundle.plan.values[name], self.dims)
        return self.device.read(self.binding.address(name), size)


def _case(
    bundle: PlanBundle,
    step: Step,
    inputs: Sequence[Bytes],
    outputs: Sequence[Bytes],
    device: CudaDevice,
    dims: Mapping[str, int],
) -> CoreCase:
    """The step, executed once more on memory of its own: outputs hold first what they should not."""
    expected = _executed(step, bundle.plan, inputs, outputs, device, dims)
    maker = step.candidate.maker.name
    return CoreCase(
        family=maker,
        name=step.operator.name,
        features=frozenset(features_of(step, dims)),
        spec=step_spec(bundle, step, inputs, outputs),
        dims=tuple(dims[name] for name in sorted(dims)),
        inputs=b"".join((*map(bytes, inputs), sizes_of(dims))),
        outputs=b"".join(map(bytes, outputs)),
        expected=expected,
    )


def in_sequence(first: CoreCase, second: CoreCase) -> CoreCase:
    """Two cases as one operator, whose kernels follow each other."""
    a, b = first.spec, second.spec
    moved = tuple(
        replace(launch, arguments=tuple(_moved(each, a) for each in launch.arguments))
        for launch in b.variants[0].launches
    )
    kernels = {kernel.digest: kernel for kernel in (*a.kernels, *b.kernels)}
    formats = (Format.LINEAR,) * (len(a.inputs) + len(b.inputs) + len(a.outputs) + len(b.outputs))
    return CoreCase(
        family=f"{first.family}, {second.family}",
        name=f"{first.name}.{second.name}",
        features=first.features | second.features | {"several kernels"},
        spec=OperatorSpec(
            name=f"{a.name}.{b.name}",
            dimensions=a.dimensions,
            inputs=(*a.inputs, *b.inputs),
            outputs=(*a.outputs, *b.outputs),
            kernels=tuple(kernels.values()),
            variants=(Variant("in sequence", formats, (*a.variants[0].launches, *moved)),),
        ),
        dims=first.dims,
        inputs=first.inputs + second.inputs,
        outputs=first.outputs + second.outputs,
        expected=first.expected + second.expected,
    )


def _moved(argument: Argument, behind: OperatorSpec) -> Argument:
    """An argument with the number that its operand has behind those of another operator."""
    match argument:
        case InputArgument() | TensorMapArgument():
            return replace(argument, index=argument.index + len(behind.inputs))
        case OutputArgument():
            return replace(argument, index=argument.index + len(behind.outputs))
    return argument


def _executed(
    step: Step,
    plan: Plan,
    inputs: Sequence[Bytes],
    outputs: Sequence[Bytes],
    device: CudaDevice,
    dims: Mapping[str, int],
) -> bytes:
    sizes = [workspace_bytes(step, dims), counter_bytes(step, dims)]
    held = [device.allocate(max(1, size)) for size in sizes]
    device.write(held[1], np.zeros(max(1, sizes[1]), np.uint8))
    for each in (*inputs, *outputs):
        held.append(device.allocate(max(1, each.size)))
        device.write(held[-1], each)
    places = held[2:]
    first = len(inputs)
    addresses = StepAddresses(
        tuple(places[:first]), element_bytes(plan, step), tuple(places[first:]), *held[:2]
    )
    for work in bind_step(step, addresses, dims):
        device.launch(work)
    found = b"".join(
        device.read(place, each.size).tobytes()
        for place, each in zip(places[first:], outputs, strict=True)
    )
    for address in held:
        device.free(address)
    return found


def sizes_of(dims: Mapping[str, int]) -> bytes:
    """The further inputs of a spec of `step_spec`."""
    return bytes(sum(dims.values()))


def step_spec(
    bundle: PlanBundle, step: Step, inputs: Sequence[Bytes], outputs: Sequence[Bytes]
) -> OperatorSpec:
    """A step over rows of elements: what shapes they have matters to nobody who has their addresses.

    Sizes of free dimensions are read off further inputs, which no kernel reads.
    """
    plan, free = bundle.plan, sorted(bundle.plan.free)
    dtypes = [(plan.weights.get(name) or plan.values[name]).dtype for name in step.inputs]
    dtypes += [plan.values[name].dtype for name in step.operator.outputs]
    tensors = [
        SpecTensor(dtype, (each.size // dtype.bytes,))
        for dtype, each in zip(dtypes, (*inputs, *outputs), strict=True)
    ]
    digests = dict.fromkeys(launch.kernel for launch in step.launches)
    return OperatorSpec(
        name=step.operator.name,
        dimensions=tuple(Dimension(name, len(inputs) + n, 0) for n, name in enumerate(free)),
        inputs=(*tensors[: len(inputs)], *(SpecTensor(DType.UINT8, (name,)) for name in free)),
        outputs=tuple(tensors[len(inputs) :]),
        kernels=tuple(
            SpecKernel(digest, plan.kernels[digest].entry, plan.arch, bundle.cubins[digest])
            for digest in digests
        ),
        variants=(
            Variant(
                step.candidate.maker.name,
                (Format.LINEAR,) * (len(tensors) + len(free)),
                work_of(step),
            ),
        ),
    )


def features_of(step: Step, dims: Mapping[str, int]) -> Iterator[str]:
    """What a step's launches need of the core."""
    launches = step.launches
    arguments: list[Argument] = [each for launch in launches for each in launch.arguments]
    held = {
        "tensor maps": any(isinstance(each, TensorMapArgument) for each in arguments),
        "workspace": any(isinstance(each, WorkspaceArgument) for each in arguments),
        "counters": any(isinstance(each, CounterArgument) for each in arguments),
        "split": dict(step.candidate.configuration).get("split", 1) != 1,
        "several kernels": len(launches) > 1,
        "clusters": any(launch.cluster != NO_CLUSTER for launch in launches),
        "early launch": any(EARLY_LAUNCH in launch.attributes for launch in launches),
        "> 48 KiB shared": any(each.shared_bytes > PORTABLE_SHARED_BYTES for each in launches),
        "free batch": bool(dims),
        "library": step.image is not None,
    }
    yield from (name for name, holds in held.items() if holds)


def execute(case: CoreCase, folder: Path, threads: int) -> str:
    """Execute a case with ``run_operator``, plainly and captured, in so many threads; what is wrong, in words."""
    paths = [folder / f"{case.name}.{end}" for end in ("spec", "data", "result")]
    paths[0].write_bytes(operator_bytes(case.spec))
    paths[1].write_bytes(case.inputs + case.outputs)
    words = [*shlex.split(os.environ.get(SANITIZER_VARIABLE, "")), built("tests", "run_operator")]
    numbers = [threads, *case.dims]
    done = subprocess.run(
        [*map(str, (*words, *paths, *numbers))], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()[-400:]}"
    found = paths[2].read_bytes()
    for path in paths:
        path.unlink()
    if not case.expected or len(found) != 2 * threads * len(case.expected):
        raise RowError(f"{case.name}: {len(found)} bytes of {threads} threads")
    wrong = sum(
        found[at : at + len(case.expected)] != case.expected
        for at in range(0, len(found), len(case.expected))
    )
    return f"{wrong} of {2 * threads} results differ" if wrong else ""
