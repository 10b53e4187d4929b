"""The candidates of each problem are checked and timed on a case: an operator with the reference's values."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from wpk.assembly import Implementation, PackedConstants, WeightStore, step_of
from wpk.beside import Beside, awaited
from wpk.checks import Array, GraphReference, Reference, interface_of
from wpk.dtypes import Precision
from wpk.engine import TakesInputs, random_inputs
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.program import Operator, Program
from wpk.plan import Step, Tensors
from wpk.problems import Problem
from wpk.progress import Progress, silent

STAGE = "computing references"


class HasInterface(TakesInputs, Protocol):
    """A plan, or the interface of a model (`wpk.checks.Interface`)."""

    @property
    def precision(self) -> Precision:
        """What multiplications may use."""


@dataclass(frozen=True)
class Case:
    """A case is one operator of a problem, with operands and the result that it should give.

    Attributes:
        program: The model's program with this operator alone.
        memory: Tensors in the buffers that the operator works on, as they lie in memory.
        result: What it should give; None for a copy, which should give its input's bytes.
    """

    program: Program
    memory: dict[str, Array]
    result: Reference | None

    def step(self, implementation: Implementation) -> tuple[Step, Tensors]:
        """Return the operator's step by an implementation, and what it works on."""
        program, store = self.program, WeightStore(self._constants)
        (operator,) = program.operators
        step = step_of(operator, implementation, store)
        return step, Tensors(program.values, program.buffers, store.weights, store.arrays)

    @cached_property
    def _constants(self) -> PackedConstants:
        """What the candidates tried so far have packed."""
        return PackedConstants(self.program.constants)


class Cases(Mapping[Problem, Case]):
    """The cases of a model at one seed are computed when the first of them is asked for, or beside other work before.

    Attributes:
        seconds: How long that took; 0 before.
    """

    def __init__(self, make: Callable[[Progress], dict[Problem, Case]], tell: Progress) -> None:
        """Take what makes them, and who is told meanwhile where that is waited for."""
        self._make, self._tell = make, tell
        self._beside: Future[dict[Problem, Case]] | None = None
        self.seconds = 0.0

    def begin(self, beside: Beside) -> None:
        """Compute them beside other work."""
        self._beside = beside.submit(self._timed)

    def _timed(self, tell: Progress) -> dict[Problem, Case]:
        begun = time.monotonic()
        made = self._make(tell)
        self.seconds = time.monotonic() - begun
        return made

    @cached_property
    def _made(self) -> dict[Problem, Case]:
        if self._beside is None:
            return self._timed(self._tell)
        return awaited(self._beside, STAGE, self._tell)

    def __getitem__(self, problem: Problem) -> Case:
        """The case of a problem."""
        return self._made[problem]

    def __iter__(self) -> Iterator[Problem]:
        """All problems."""
        return iter(self._made)

    def __len__(self) -> int:
        """Number of problems."""
        return len(self._made)


def first_operators(program: Program) -> dict[Problem, Operator]:
    """Return the operator that stands for each distinct problem: its first."""
    first: dict[Problem, Operator] = {}
    for operator in program.operators:
        first.setdefault(operator.problem, operator)
    return first


class ModelCases(Cases):
    """The cases of a model's own problems.

    Attributes:
        memory: Every tensor as it lies in memory, once the cases are computed.
        interface: What the model asks of its caller.
    """

    def __init__(self, lowered: LoweredModel, seed: int, tell: Progress = silent) -> None:
        """Describe them; see `make_cases`."""
        self.memory: dict[str, Array] = {}
        self.interface = interface_of(lowered)

        def make(tell: Progress) -> dict[Problem, Case]:
            return make_cases(lowered, self.interface, seed, self.memory, tell=tell)

        super().__init__(make, tell)


def make_cases(
    lowered: LoweredModel,
    plan: HasInterface,
    seed: int,
    memory: dict[str, Array] | None = None,
    problems: Collection[Problem] | None = None,
    tell: Progress = silent,
) -> dict[Problem, Case]:
    """Return a case for each distinct problem, by the first operator that is of it.

    The reference is the engine's own, float64 on the CPU, computed once for the whole model: every
    candidate then sees the values that the operator sees inside the model, and what a schedule is
    measured against depends on no other schedule.

    Args:
        lowered: The model.
        plan: Any plan of it, or its interface.
        seed: Of the model's random inputs.
        memory: Tensors that are known, of another form of the model; filled with all that are computed.
        problems: Those that are asked for; all by default.
        tell: Told of every node.
    """
    first = first_operators(lowered.program)
    if problems is not None:
        first = {problem: first[problem] for problem in problems}
    by_call = {operator.call: operator for operator in first.values() if operator.call}
    cases: dict[Problem, Case] = {}
    memory = {} if memory is None else memory
    reference = GraphReference(lowered.graph, plan.precision)
    wanted = None if problems is None else {*by_call, *_read_without_call(first.values())}
    for node in reference.begin(random_inputs(plan, seed), memory, wanted):
        tell(STAGE, min(len(cases), len(first) - 1), len(first))
        known = by_call.get(node.name)
        if known is None:
            reference.evaluate(node, memory)
        else:
            result = reference.of(node, memory)
            cases[known.problem] = _case(lowered.program, known, memory, result)
    for operator in first.values():
        if not operator.call:
            cases[operator.problem] = _case(lowered.program, operator, memory, None)
    tell(STAGE, len(first), len(first))
    return cases


def _read_without_call(operators: Iterable[Operator]) -> Iterator[str]:
    """Values that copies read which no node of the graph stands for."""
    for operator in operators:
        if not operator.call:
            yield from operator.inputs


def _case(
    program: Program,
    operator: Operator,
    memory: Mapping[str, Array],
    result: Reference | None,
) -> Case:
    touched = {
        program.values[name].buffer
        for name in (*operator.inputs, *operator.outputs)
        if name in program.values
    }
    held = {
        name: memory[name]
        for name, value in program.values.items()
        if value.buffer in touched and name in memory
    }
    return Case(replace(program, operators=(operator,)), held, result)
