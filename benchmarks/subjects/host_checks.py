"""The checks that a tuning makes on its host, phase by phase, and what each takes."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wpk.candidate import Candidate, Maker
from wpk.checks import (
    Array,
    GraphReference,
    Reference,
    Scope,
    StepCase,
    StepRunner,
    interface_of,
    prove_passes,
)
from wpk.checks.operator_check import OperatorCheck
from wpk.checks.rounded import rounded
from wpk.engine import random_inputs, view
from wpk.execution import Bytes
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.program import Operator
from wpk.plan import Evidence, Step, Tensors
from wpk.progress import silent
from wpk.reused_memory import let_go
from wpk.trial_bench.first_operators import first_operators
from wpk.trial_bench.model_cases import compute_cases

SEED = 0

_FAULT = 2.0
"""How much more than it may one element of a planted fault differs by."""


@dataclass(frozen=True)
class Cost:
    """What work takes of this process.

    Attributes:
        user: CPU seconds of its own.
        system: CPU seconds of the system for it.
        wall: Seconds.
        faults: Pages that the system had to bring.
    """

    user: float = 0.0
    system: float = 0.0
    wall: float = 0.0
    faults: int = 0

    @property
    def cpu(self) -> float:
        """CPU seconds, user's and system's."""
        return self.user + self.system

    def __add__(self, other: Cost) -> Cost:
        """Both."""
        return Cost(
            self.user + other.user,
            self.system + other.system,
            self.wall + other.wall,
            self.faults + other.faults,
        )

    def __sub__(self, other: Cost) -> Cost:
        """What came since."""
        return self + Cost(-other.user, -other.system, -other.wall, -other.faults)


@dataclass(frozen=True)
class Row:
    """What one operator takes.

    Attributes:
        name: Its name.
        reference: What it should give, and what that may differ by.
        preparing: What a device is given.
        judging: Comparing what it left.
    """

    name: str
    reference: Cost
    preparing: Cost
    judging: Cost

    @property
    def cost(self) -> Cost:
        """All of it."""
        return self.reference + self.preparing + self.judging


@dataclass(frozen=True)
class Phase:
    """What a phase takes.

    Attributes:
        name: Of the phase.
        cost: In all.
        rows: Of each operator that was judged; none of a proof.
        peak_bytes: The largest memory of the process meanwhile.
        planted: Faults that were planted and reported.
    """

    name: str
    cost: Cost
    rows: tuple[Row, ...]
    peak_bytes: int
    planted: int

    @property
    def words(self) -> str:
        """In words."""
        return f"all; at most {self.peak_bytes / 2**20:.0f} MiB, {self.planted} planted faults reported"


def spent() -> Cost:
    """What this process has taken up to now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(used.ru_utime, used.ru_stime, time.monotonic(), used.ru_minflt)


def measured(name: str, lowered: LoweredModel, first: int | None = None) -> Phase:
    """Make the checks of a phase.

    Args:
        name: ``passes``, ``references`` or ``operators``.
        lowered: The model.
        first: Operators that are judged at most; None for all.

    Raises:
        SystemExit: A check does not accept its own reference, or does not report a planted fault.
    """
    let_go()
    Path("/proc/self/clear_refs").write_text(
        "5", encoding="utf-8"
    )  # the largest memory begins anew
    if name == "passes":
        begun = spent()
        failed = [each for each in prove_passes(lowered, Scope(), silent).checks if each.failed]
        if failed:
            raise SystemExit(f"{failed[0].name}: {failed[0].detail}")
        return Phase(name, spent() - begun, (), _peak_bytes(), 0)
    judged = _of_trials(lowered) if name == "references" else _of_operators(lowered)
    rows = list[Row]()
    for row in judged:
        rows.append(row)
        if len(rows) == first:
            break
    cost = sum((row.cost for row in rows), Cost())
    return Phase(name, cost, tuple(rows), _peak_bytes(), len(rows))


def _of_operators(lowered: LoweredModel) -> Iterator[Row]:
    """The check of operators: every reference, what is compared with it, and the thorough comparison."""
    program = lowered.program
    runner = AnsweringRunner(Tensors(program.values, program.buffers, {}, {}), program.free)
    by_call = {operator.call: operator for operator in program.operators if operator.call}
    reference, memory = GraphReference(lowered.graph, lowered.source.precision), dict[str, Array]()
    for node in reference.begin(random_inputs(interface_of(lowered), SEED), memory):
        operator = by_call.get(node.name)
        if operator is None:
            reference.evaluate(node, memory)
            continue
        begun = spent()
        result = reference.of(node, memory)
        yield runner.judged(operator, memory, result, spent() - begun, quick=False)


def _of_trials(lowered: LoweredModel) -> Iterator[Row]:
    """References of problems as trials have them, each with the quick check of a first trial."""
    program, first = lowered.program, first_operators(lowered.program)
    memory = dict[str, Array]()
    cases = compute_cases(lowered, interface_of(lowered), SEED, memory, None, silent)
    begun = spent()
    for each in cases:
        reference = spent() - begun
        tensors = Tensors(program.values, program.buffers, {}, {})
        runner, case = AnsweringRunner(tensors, program.free), each.case
        yield runner.judged(first[each.problem], case.memory, case.result, reference, quick=True)
        begun = spent()


class AnsweringRunner(StepRunner):
    """A runner of steps whose device is the reference: they leave what they should."""

    def __init__(self, tensors: Tensors, dims: Mapping[str, int]) -> None:
        """Describe where tensors lie."""
        nothing: Any = None
        super().__init__(tensors, dims, nothing)
        self._after: dict[str, Bytes] = {}

    def execute(self, step: Step, images: Mapping[str, Bytes]) -> tuple[dict[str, Bytes], int]:
        """What was put there, and no counter that is not zero."""
        del step, images
        return self._after, 0

    def judged(
        self,
        operator: Operator,
        memory: Mapping[str, Array],
        result: Reference | None,
        reference: Cost,
        *,
        quick: bool,
    ) -> Row:
        """What an operator takes in all, and whether it is judged rightly.

        Args:
            operator: The operator.
            memory: Its tensors.
            result: What it should give; None of a copy.
            reference: What that took.
            quick: Whether it is judged as trials are.

        Raises:
            SystemExit: It is not.
        """
        inputs = tuple(name for name in operator.inputs if name in self.tensors.values)
        maker = Candidate(Maker("reference", "1"), ())
        step = Step(operator, inputs, maker, (), 0, Evidence())
        preparing, case = timed(lambda: self.prepare(step, memory, result))
        self._after = right_answer(case)
        judging, found = timed(lambda: self.check(step, case, quick=quick))
        self._require(operator, found, failed=False)
        plant_fault(case, self._after)
        self._require(operator, self.check(step, case, quick=quick), failed=True)
        self._after = {}
        return Row(operator.name, reference, preparing, judging)

    def _require(self, operator: Operator, found: OperatorCheck, *, failed: bool) -> None:
        if found.check.failed is not failed:
            what = "a planted fault is not reported" if failed else "its own reference is refused"
            raise SystemExit(f"{operator.name}: {what}: {found.check.detail}")


def timed(work: Callable[[], Any]) -> tuple[Cost, Any]:
    """What work takes, and what it gives."""
    begun = spent()
    found = work()
    return spent() - begun, found


def right_answer(case: StepCase) -> dict[str, Bytes]:
    """The buffers of a step that is right: its outputs are the reference, rounded."""
    after = {name: image.copy() for name, image in case.images.items()}
    for each in (case, *case.beside):
        elements = _elements(each, after)
        dtype = each.output.value.dtype.numpy
        elements[...] = rounded(np.ascontiguousarray(each.expected), dtype).reshape(elements.shape)
        padding = replace(each.output, image=after[each.output.value.buffer]).padding()
        if padding is not None:
            padding[...] = 0
    return after


def plant_fault(case: StepCase, after: Mapping[str, Bytes]) -> None:
    """Move an element of the first output by `_FAULT` times what it may differ by; flip a bit of one that must be equal."""
    elements, expected = _elements(case, after), np.asarray(case.expected)
    middle = expected.size // 2
    place, at = (np.unravel_index(middle, each.shape) for each in (elements, expected))
    if case.tolerance is None or elements.dtype.kind in "biu":
        elements.view(f"u{elements.itemsize}")[place] ^= 1
        return
    elements[place] = expected[at] + _FAULT * case.tolerance.whole[at]


def _elements(case: StepCase, after: Mapping[str, Bytes]) -> Array:
    output = replace(case.output, image=after[case.output.value.buffer])
    if case.is_copy:
        return output.elements()
    return view(output.value, output.image[output.value.offset :], output.dims)


def _peak_bytes() -> int:
    """The largest memory of this process since that was reset."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
