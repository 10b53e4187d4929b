"""One step on a device: the memory that it is given, and what is said of what it leaves there."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.plans.candidates import library_call

from wpk.checks.compare import Comparison
from wpk.checks.operator_check import OperatorCheck, StepRunner
from wpk.errors import LaunchError
from wpk.execution import Bytes
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.plan_file import read_plan
from wpk.plan.tensors import tensors_of
from wpk.plan.weights_file import array_bytes

DIMS = {"batch": 1}


class Memory:
    """A device that executes nothing: its allocations by their addresses."""

    name, executes_source = "memory", False

    def __init__(self) -> None:
        self.held: dict[int, Bytes] = {}
        self.launched: list[object] = []
        self._next = 4096

    def allocate(self, size: int) -> int:
        address = self._next
        self._next += -(-size // 256) * 256 + 256
        self.held[address] = np.full(size, 0x55, np.uint8)
        return address

    def free(self, address: int) -> None:
        del self.held[address]

    def write(self, address: int, data: Bytes) -> None:
        self.held[address][: data.size] = data

    def fill(self, address: int, size: int, byte: int) -> None:
        self.held[address][:size] = byte

    def read(self, address: int, size: int) -> Bytes:
        return self.held[address][:size].copy()

    def launch(self, work: object) -> None:
        self.launched.append(work)


@pytest.fixture
def bundle(small_plan: Path) -> PlanBundle:
    return read_plan(small_plan)


@pytest.fixture
def step(bundle: PlanBundle) -> Step:
    """The first step with a weight."""
    return next(s for s in bundle.plan.steps if any(n in bundle.weights for n in s.inputs))


def images(bundle: PlanBundle, step: Step) -> dict[str, Bytes]:
    """Drawn bytes of the step's buffers."""
    rng = np.random.default_rng(0)
    names = [n for n in (*step.inputs, *step.operator.outputs) if n in bundle.plan.values]
    buffers = dict.fromkeys(bundle.plan.values[name].buffer for name in names)
    return {name: rng.integers(0, 256, 300 + i).astype(np.uint8) for i, name in enumerate(buffers)}


def runner(bundle: PlanBundle, device: Any) -> StepRunner:
    return StepRunner(tensors_of(bundle), DIMS, device)


def test_a_step_gets_copies_poisoned_scratch_memory_and_counters_of_zero(
    bundle: PlanBundle, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wpk.checks.operator_check.workspace_bytes", lambda *_: 1000)
    monkeypatch.setattr("wpk.checks.operator_check.counter_bytes", lambda *_: 12)
    device, given = Memory(), images(bundle, step)
    with runner(bundle, device).placed(step, given) as placed:
        assert placed.works
        assert placed.buffers.keys() == given.keys()
        sizes = {address: held.size for address, held in device.held.items()}
        assert placed.allocations == sizes
        contents = dict(device.held)
        for name, address in placed.buffers.items():
            held = contents.pop(address)
            assert held.size == max(given[name].size, 256)
            np.testing.assert_array_equal(held[: given[name].size], given[name])
        counters = contents.pop(placed.counters)
        assert counters.tolist() == [0] * 256
        (scratch,) = (held for held in contents.values() if held.size == 1000)
        assert set(scratch) == {0xFF}
        weights = [np.frombuffer(array_bytes(bundle.weights[n]), np.uint8)
                   for n in step.inputs if n in bundle.weights]  # fmt: skip
        rest = [held for held in contents.values() if held is not scratch]
        assert len(rest) == len(weights)
        for weight, held in zip(weights, rest, strict=True):
            np.testing.assert_array_equal(held[: weight.size], weight)
    assert not device.held


def test_values_lie_at_their_offsets(bundle: PlanBundle, step: Step) -> None:
    name = step.operator.outputs[0]
    value = bundle.plan.values[name]
    moved = replace(bundle.plan, values={**bundle.plan.values, name: replace(value, offset=64)})
    run = runner(replace(bundle, plan=moved), Memory())
    assert run.address(name, {value.buffer: 4096}) == 4096 + 64
    assert run.address(next(n for n in step.inputs if n in bundle.weights), {}) == 0


def test_what_is_left_is_read_before_memory_is_given_back(bundle: PlanBundle, step: Step) -> None:
    class Writes(Memory):
        def launch(self, work: object) -> None:
            super().launch(work)
            first, *_, counters = self.held
            self.held[first][0] ^= 1
            self.held[counters][4:12] = 1, 0, 0, 0, 2, 0, 0, 0

    device, given = Writes(), images(bundle, step)
    after, counting = runner(bundle, device).execute(step, given)
    assert len(device.launched) == len(step.launches)
    assert counting == 2
    (changed,) = (name for name in given if not np.array_equal(after[name], given[name]))
    assert changed == next(iter(given))
    assert {name: image.size for name, image in after.items()} == {
        name: image.size for name, image in given.items()
    }


def judged(
    bundle: PlanBundle, step: Step, *, quick: bool = False, counting: int = 0, **found: object
) -> OperatorCheck:
    """What is said of a step that leaves what ``found`` says."""
    right = Comparison(0, 8, 0.25, "")
    said = {"compare": right, "stray": 0, "dirty_padding": 0, "fits": True} | found
    prepared: Any = SimpleNamespace(images={})
    for name, value in said.items():
        setattr(prepared, name, lambda _, value=value: value)
    run = runner(bundle, Memory())

    def execute(step: Step, images: Mapping[str, Bytes]) -> tuple[dict[str, Bytes], int]:
        return {}, counting

    run.execute = execute  # type: ignore[method-assign]
    return run.check(step, prepared, quick=quick)


WRONG = Comparison(3, 8, 7.5, "[1] is 2, expected 1")


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        ({}, "worst error 0.250 of the tolerance"),
        ({"compare": WRONG}, "3 of 8 elements are wrong: [1] is 2, expected 1"),
        ({"stray": 5}, "5 bytes outside the output were written"),
        ({"dirty_padding": 2}, "2 elements of padding are not zero"),
        (
            {"stray": 1, "dirty_padding": 2},
            "1 bytes outside the output were written; 2 elements of padding are not zero",
        ),
        ({"counting": 4}, "4 counters were not left zero: the next launch would go wrong"),
    ],
)
def test_every_fault_is_said(
    bundle: PlanBundle, step: Step, found: dict[str, Any], detail: str
) -> None:
    quick = judged(bundle, step, quick=True, **found, fits=not found or "counting" in found)
    thorough = judged(bundle, step, **found)
    assert thorough.check.detail == detail
    assert thorough.check.failed is bool(found)
    assert thorough.worst == (7.5 if "compare" in found else 0.25)
    assert (quick.check.failed, quick.error) == (bool(found), None)
    if found:
        assert quick.check.detail == detail
    else:
        assert (quick.check.detail, quick.worst) == ("every element is within its tolerance", 1.0)


def test_a_step_that_cannot_be_executed_failed(bundle: PlanBundle, step: Step) -> None:
    class Broken(Memory):
        def launch(self, work: object) -> None:
            raise LaunchError("illegal address", fix="none")

    device = Broken()
    found = runner(bundle, device).check(step, SimpleNamespace(images=images(bundle, step)))  # type: ignore[arg-type]
    assert found.check.failed
    assert found.check.detail == "illegal address"
    assert found.worst == np.inf
    assert isinstance(found.error, LaunchError)
    assert not device.held


@pytest.mark.parametrize("on_cpu", [False, True])
def test_a_library_that_is_not_executed_is_said_to_be_so(
    bundle: PlanBundle, step: Step, on_cpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memory, "executes_source", on_cpu)
    library = replace(step, candidate=library_call((), version="9.19.0"))
    found = judged(bundle, library)
    assert not found.check.failed
    assert ("cuDNN 9.19.0 is not executed here" in found.check.detail) is on_cpu
    assert found.check.detail.endswith("worst error 0.250 of the tolerance")
