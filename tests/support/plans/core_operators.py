"""Kernels of every template as operators that C++ executes, on drawn operands; Python executes them beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from subjects.core_operator import CoreCase, data_of, features_of, step_spec

from support.plans.kernel_cases import Case, build_cases, telling
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.engine.placement import footprint
from wpk.execution import BoundLaunch, Bytes, Device
from wpk.launch import (
    Argument,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.plan.weights_file import array_bytes
from wpk.spec import OperatorSpec, Variant, operator_bytes

NETWORKS = (
    "channels_58",
    "attention_with_mask",
    "dense_concat",
    "movement",
    "embedding",
    "channel_shuffle",
)
"""Hand-written networks (`support.networks.handwritten.TEXTS`) that all templates are needed for."""

SIZE = 3
"""Of the free dimension: tiles do not divide it."""

_POISON = 0xFF


@dataclass(frozen=True)
class CoreOperator:
    """An operator with what it reads.

    Attributes:
        name: Network, operator and schedule.
        family: The template.
        features: What its launches need of the core.
        spec: For C++.
        inputs: Bytes of the inputs, but for those that only tell sizes.
        outputs: What the outputs hold before.
    """

    name: str
    family: str
    features: frozenset[str]
    spec: OperatorSpec
    inputs: tuple[Bytes, ...]
    outputs: tuple[Bytes, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Those of the only variant."""
        return self.spec.variants[0].launches

    @property
    def dims(self) -> dict[str, int]:
        """Sizes of the free dimensions."""
        return {dimension.name: SIZE for dimension in self.spec.dimensions}

    def case(self, number: int, expected: bytes) -> CoreCase:
        """What `subjects.core_operator.execute` takes."""
        return CoreCase(
            self.family,
            str(number),
            self.features,
            operator_bytes(self.spec),
            tuple(self.dims.values()),
            data_of(self.inputs, self.outputs, self.dims),
            expected,
        )

    def asked(self, kind: type[WorkspaceArgument | CounterArgument]) -> int:
        """The most bytes of scratch memory, or of counters, that a launch asks for."""
        arguments = [each for launch in self.launches for each in launch.arguments]
        sizes = [
            evaluate(each.bytes, self.dims)
            if isinstance(each, WorkspaceArgument)
            else evaluate(each.count, self.dims) * DType.INT32.bytes
            for each in arguments
            if isinstance(each, WorkspaceArgument | CounterArgument) and isinstance(each, kind)
        ]
        return max(sizes, default=0)

    def bound(
        self, inputs: Sequence[int], outputs: Sequence[int], workspace: int, counters: int
    ) -> list[BoundLaunch]:
        """Its launches at addresses."""
        element_bytes = tuple(each.dtype.bytes for each in self.spec.inputs)
        addresses = StepAddresses(tuple(inputs), element_bytes, tuple(outputs), workspace, counters)
        return [bind_launch(launch, addresses, self.dims) for launch in self.launches]


def core_operators(
    network: str, precision: Precision, folder: Path, load: Callable[[Case], None] | None = None
) -> Iterator[CoreOperator]:
    """The operators of a network, alone; and each with the one that follows, as one operator of two kernels.

    Args:
        network: Out of `NETWORKS`.
        precision: Of its arithmetic.
        folder: Where its model is written.
        load: Is given each case before it is an operator.
    """
    alone = []
    for seed, case in enumerate(build_cases(network, precision, telling, folder)):
        if load is not None:
            load(case)
        alone.append(_operator_of(case, seed))
    yield from alone
    for first, second in pairwise(alone):
        if "counters" in first.features and "counters" in second.features:
            yield in_sequence(first, second)


def _operator_of(case: Case, seed: int) -> CoreOperator:
    plan, step = case.bundle.plan, case.step
    dims = dict.fromkeys(plan.free, SIZE)
    rng = np.random.default_rng(seed)

    def operand(name: str) -> Bytes:
        weight = case.bundle.weights.get(name)
        if weight is not None:
            return np.frombuffer(array_bytes(weight), np.uint8)
        value = plan.values[name]
        return _drawn(value.dtype, footprint(value, dims), rng)

    inputs = tuple(map(operand, step.inputs))
    outputs = tuple(
        np.full(footprint(plan.values[name], dims), _POISON, np.uint8)
        for name in step.operator.outputs
    )
    return CoreOperator(
        str(case),
        case.template,
        frozenset(features_of(step, dims)),
        step_spec(case.bundle, step, inputs, outputs),
        inputs,
        outputs,
    )


def _drawn(dtype: DType, size: int, rng: np.random.Generator) -> Bytes:
    count = size // dtype.bytes
    values = rng.standard_normal(count) if dtype.is_float else rng.integers(0, 2, count)
    return np.frombuffer(values.astype(dtype.numpy).tobytes(), np.uint8)


def in_sequence(first: CoreOperator, second: CoreOperator) -> CoreOperator:
    """One operator that computes two: kernels one behind the other, with one workspace and the same counters."""
    a, b = first.spec, second.spec
    read = len(first.inputs)

    def argument(each: Argument) -> Argument:
        if isinstance(each, InputArgument | TensorMapArgument):
            return replace(each, index=each.index + read)
        if isinstance(each, OutputArgument):
            return OutputArgument(each.index + len(a.outputs))
        return each

    behind = tuple(
        replace(each, arguments=tuple(map(argument, each.arguments))) for each in second.launches
    )
    inputs = (*a.inputs[:read], *b.inputs)
    kernels = {each.digest: each for each in (*a.kernels, *b.kernels)}
    formats = (a.variants[0].formats[0],) * (len(inputs) + len(a.outputs) + len(b.outputs))
    spec = replace(
        a,
        dimensions=tuple(replace(each, input=each.input + read) for each in b.dimensions),
        inputs=inputs,
        outputs=(*a.outputs, *b.outputs),
        kernels=tuple(kernels.values()),
        variants=(Variant("both", formats, (*first.launches, *behind)),),
    )
    return CoreOperator(
        f"{first.name}, then {second.name}",
        f"{first.family}, {second.family}",
        first.features | second.features | {"several kernels"},
        spec,
        (*first.inputs, *second.inputs),
        (*first.outputs, *second.outputs),
    )


def executed(operator: CoreOperator, device: Device) -> bytes:
    """The outputs, as Python's device gives them; its kernels are loaded."""
    workspace = device.allocate(max(1, operator.asked(WorkspaceArgument)))
    zeros = np.zeros(max(1, operator.asked(CounterArgument)), np.uint8)
    counters = device.allocate(zeros.size)
    device.write(counters, zeros)
    places = [device.allocate(max(1, each.size)) for each in (*operator.inputs, *operator.outputs)]
    for place, each in zip(places, (*operator.inputs, *operator.outputs), strict=True):
        device.write(place, each)
    inputs, outputs = places[: len(operator.inputs)], places[len(operator.inputs) :]
    for launch in operator.bound(inputs, outputs, workspace, counters):
        device.launch(launch)
    found = [
        device.read(place, each.size).tobytes()
        for place, each in zip(outputs, operator.outputs, strict=True)
    ]
    for place in (workspace, counters, *places):
        device.free(place)
    return b"".join(found)


def features(operators: Sequence[CoreOperator]) -> Mapping[str, int]:
    """How many operators need what of the core."""
    names = sorted({name for each in operators for name in each.features})
    return {name: sum(name in each.features for each in operators) for name in names}
