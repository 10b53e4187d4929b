"""Kernels of every template as operators that C++ executes, on drawn operands; Python executes them beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from subjects.core_operator import CoreCase, features_of, in_sequence, sizes_of, step_spec

from support.plans.kernel_cases import Case, build_cases, images_of, telling
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.engine.placement import footprint
from wpk.execution import BoundLaunch, Bytes, Device, KernelImage
from wpk.launch import CounterArgument, WorkspaceArgument
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.plan.weights_file import array_bytes
from wpk.spec import OperatorSpec

NETWORKS = (
    "channels_58",
    "attention_with_mask",
    "dense_concat",
    "movement",
    "embedding",
    "channel_shuffle",
    "ranking",
    "recurrent",
    "positions",
    "regions",
    "determinants",
    "squeeze_excite",
    "group_norm",
    "across",
    "pre_norm",
    "feed_forward",
)
"""Hand-written networks (`support.networks.handwritten`) that all templates but `box_selection` are needed for."""

SIZE = 3
"""Of the free dimension: tiles do not divide it."""

_POISON = 0xFF


@dataclass(frozen=True)
class CoreOperator:
    """An operator with what it reads.

    Attributes:
        family: The template.
        features: What its launches need of the core.
        spec: For C++.
        inputs: Bytes of the inputs, but for those that only tell sizes.
        outputs: What the outputs hold before.
        images: Of its kernels, for Python.
    """

    family: str
    features: frozenset[str]
    spec: OperatorSpec
    inputs: tuple[Bytes, ...]
    outputs: tuple[Bytes, ...]
    images: tuple[KernelImage, ...]

    def case(self, number: int, expected: bytes) -> CoreCase:
        """What `subjects.core_operator.execute` takes."""
        dims = dims_of(self.spec)
        return CoreCase(
            family=self.family,
            name=str(number),
            features=self.features,
            spec=self.spec,
            dims=tuple(dims.values()),
            inputs=b"".join((*map(bytes, self.inputs), sizes_of(dims))),
            outputs=b"".join(map(bytes, self.outputs)),
            expected=expected,
        )


def dims_of(spec: OperatorSpec) -> dict[str, int]:
    """Sizes of the free dimensions."""
    return {dimension.name: SIZE for dimension in spec.dimensions}


def workspace_of(spec: OperatorSpec) -> int:
    """Bytes of scratch memory: the most that a launch asks for."""
    return max(_evaluated(spec, WorkspaceArgument), default=0)


def counters_of(spec: OperatorSpec) -> int:
    """Bytes of counters: the most that a launch asks for."""
    return max(_evaluated(spec, CounterArgument), default=0) * DType.INT32.bytes


def _evaluated(
    spec: OperatorSpec, kind: type[WorkspaceArgument] | type[CounterArgument]
) -> Iterator[int]:
    for launch in spec.variants[0].launches:
        for each in launch.arguments:
            if isinstance(each, kind):
                size = each.bytes if isinstance(each, WorkspaceArgument) else each.count
                yield evaluate(size, dims_of(spec))


def bound(
    spec: OperatorSpec,
    inputs: Sequence[int],
    outputs: Sequence[int],
    workspace: int,
    counters: int,
) -> list[BoundLaunch]:
    """The launches of the only variant, at addresses."""
    element_bytes = tuple(each.dtype.bytes for each in spec.inputs)
    addresses = StepAddresses(tuple(inputs), element_bytes, tuple(outputs), workspace, counters)
    launches = spec.variants[0].launches
    return [bind_launch(launch, addresses, dims_of(spec)) for launch in launches]


def core_operators(network: str, precision: Precision, folder: Path) -> list[CoreOperator]:
    """The operators of a network, each problem with several schedules of every template that carries it.

    Args:
        network: Out of `NETWORKS`.
        precision: Of its arithmetic.
        folder: Where its model is written.
    """
    cases = build_cases(network, precision, telling, folder)
    return [_operator_of(case, seed) for seed, case in enumerate(cases)]


def core_cases(operators: Sequence[CoreOperator], expected: Sequence[bytes]) -> list[CoreCase]:
    """Operators with what they give: each alone, and those that share counters with the next one, in sequence."""
    pairs = zip(operators, expected, strict=True)
    alone = [operator.case(number, outputs) for number, (operator, outputs) in enumerate(pairs)]
    followed = [
        in_sequence(first, second)
        for first, second in pairwise(alone)
        if "counters" in first.features and "counters" in second.features
    ]
    return [*alone, *followed]


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
    spec = step_spec(case.bundle, step, inputs, outputs)
    return CoreOperator(
        family=case.template,
        features=frozenset(features_of(step, dims)),
        spec=replace(spec, name=str(case)),
        inputs=inputs,
        outputs=outputs,
        images=images_of(case),
    )


def _drawn(dtype: DType, size: int, rng: np.random.Generator) -> Bytes:
    count = size // dtype.bytes
    values = rng.standard_normal(count) if dtype.is_float else rng.integers(0, 2, count)
    return np.frombuffer(values.astype(dtype.numpy).tobytes(), np.uint8)


def executed(operator: CoreOperator, device: Device) -> bytes:
    """The outputs, as Python's device gives them."""
    spec = operator.spec
    for image in operator.images:
        device.load(image)
    workspace = device.allocate(max(1, workspace_of(spec)))
    zeros = np.zeros(max(1, counters_of(spec)), np.uint8)
    counters = device.allocate(zeros.size)
    device.write(counters, zeros)
    operands = (*operator.inputs, *operator.outputs)
    places = [device.allocate(max(1, each.size)) for each in operands]
    for place, each in zip(places, operands, strict=True):
        device.write(place, each)
    inputs, outputs = places[: len(operator.inputs)], places[len(operator.inputs) :]
    for launch in bound(spec, inputs, outputs, workspace, counters):
        device.launch(launch)
    found = [
        device.read(place, each.size).tobytes()
        for place, each in zip(outputs, operator.outputs, strict=True)
    ]
    for place in (workspace, counters, *places):
        device.free(place)
    return b"".join(found)
