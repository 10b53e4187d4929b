"""A plan's spec as C++ reads it, beside the plan that Python reads."""

import random
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from support.plans.small_plans import small_model, small_plan_of_each_precision
from support.plugins import answers

from wpk.candidate import Kind
from wpk.dims import DimExpr, evaluate
from wpk.launch import Launch
from wpk.plan import Plan, Step, order_of, read_plan

__all__ = ["small_model", "small_plan_of_each_precision"]

HEADER_BYTES = 20
BATCH = 5


def size(expression: DimExpr) -> int:
    return evaluate(expression, {"batch": BATCH})


def place(named: dict[str, Any], name: str) -> int:
    return sorted(named).index(name)


def said_launch(plan: Plan, launch: Launch) -> list[Any]:
    """Without the arguments, whose fields tests of operators compare."""
    grid = [size(extent) for extent in launch.grid]
    sizes = [grid, list(launch.block), list(launch.cluster)]
    return [place(plan.kernels, launch.kernel), *sizes, launch.shared_bytes, len(launch.attributes)]


def said_step(plan: Plan, number: int, step: Step) -> list[Any]:
    assert step.candidate.maker.kind is not Kind.LIBRARY
    operands = [
        [1, place(plan.weights, name)] if name in plan.weights else [0, place(plan.values, name)]
        for name in step.inputs
    ]
    outputs = [place(plan.values, name) for name in step.operator.outputs]
    before = list(order_of(plan).predecessors[number])
    launches = [said_launch(plan, launch) for launch in step.launches]
    return [step.operator.name, operands, outputs, before, launches]


def test_a_plan_is_read_as_python_reads_it(print_specs: Path, small_plan: Path) -> None:
    plan = read_plan(small_plan).plan
    with zipfile.ZipFile(small_plan) as archive:
        (seen,) = answers(print_specs, [archive.read("plan.spec")], [BATCH])
        weights = archive.read("weights.safetensors")
    assert (seen["wpk"], seen["target"], seen["arch"]) == (plan.wpk, plan.target, plan.arch)
    assert seen["dimensions"] == [["batch", plan.free["batch"], *plan.sizes_of("batch")]]
    assert seen["kernels"] == [
        [digest, kernel.entry, plan.arch, 0] for digest, kernel in sorted(plan.kernels.items())
    ]
    assert seen["buffers"] == [size(buffer.bytes) for _, buffer in sorted(plan.buffers.items())]
    for value, (name, buffer, *_) in zip(
        [value for _, value in sorted(plan.values.items())],
        [(each[0], each[2]) for each in seen["values"]],
        strict=True,
    ):
        assert (name, buffer) == (value.name, place(plan.buffers, value.buffer))
    stored = read_plan(small_plan).weights
    for name, begin, count in seen["weights"]:
        assert weights[begin : begin + count] == stored[name].tobytes(), name
    for ports, said in ((plan.inputs, seen["inputs"]), (plan.outputs, seen["outputs"])):
        expected = [[place(plan.values, p.name), [size(e) for e in p.shape]] for p in ports]
        assert said == expected
    steps = [[*head, [launch[:-1] for launch in launches]] for *head, launches in seen["steps"]]
    assert steps == [said_step(plan, number, step) for number, step in enumerate(plan.steps)]


def test_values_lie_where_the_plan_says(print_specs: Path, small_plan: Path) -> None:
    plan = read_plan(small_plan).plan
    with zipfile.ZipFile(small_plan) as archive:
        (seen,) = answers(print_specs, [archive.read("plan.spec")], [BATCH])
    for name, _, _, offset, extents, strides, padding in seen["values"]:
        value = plan.values[name]
        assert (offset, padding) == (value.offset, value.padding)
        assert extents == [size(value.leading.expression), *value.shape[1:]]
        assert tuple(strides) == value.strides


def test_a_damaged_plan_is_never_fatal(print_specs: Path, small_plan: Path) -> None:
    with zipfile.ZipFile(small_plan) as archive:
        body = archive.read("plan.spec")[HEADER_BYTES:]
    draw = random.Random(1)
    damaged = []
    for _ in range(800):
        at = draw.randrange(len(body))
        value = draw.choice([0, 1, 0x7F, 0x80, 0xFF, body[at] ^ 1 << draw.randrange(8)])
        damaged.append(body[:at] + bytes([value]) + body[at + 1 :])
    damaged += [body[: draw.randrange(len(body))] for _ in range(200)]
    sealed = [
        struct.pack("<4sHHQI", b"WPKS", 3, 2, len(each), zlib.crc32(each)) + each
        for each in damaged
    ]
    seen = answers(print_specs, sealed, [BATCH])
    refused = [each for each in seen if "error" in each]
    assert len(refused) > 300
    assert all("; fix: " in each["error"] for each in refused)
