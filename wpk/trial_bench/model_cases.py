"""The cases of a model's own problems, computed as its nodes follow each other."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Protocol

from wpk.checks import Array, GraphReference, Reference, interface_of
from wpk.dtypes import Precision
from wpk.engine import TakesInputs, random_inputs
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.program import Operator, Program
from wpk.phases import Phases
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.trial_bench.cases import STAGE, Case, Cases, ComputedCase
from wpk.trial_bench.first_operators import first_operators
from wpk.trial_bench.host_memory import reference_bytes


class HasInterface(TakesInputs, Protocol):
    """A plan, or the interface of a model (`wpk.checks.Interface`)."""

    @property
    def precision(self) -> Precision:
        """What multiplications may use."""


class ModelCases(Cases):
    """The cases of a model's own problems.

    Attributes:
        interface: What the model asks of its caller.
    """

    def __init__(self, lowered: LoweredModel, seed: int, phases: Phases) -> None:
        """Describe them; see `compute_cases`."""
        self._program, self._memory = lowered.program, dict[str, Array]()
        self.interface = interface_of(lowered)
        first = first_operators(lowered.program)
        compute = partial(compute_cases, lowered, self.interface, seed, self._memory, None)
        super().__init__(first, compute, reference_bytes(lowered.program), phases)

    def memory(self) -> dict[str, Array]:
        """Every tensor as it lies in memory; wait for all."""
        self.finish()
        return self._memory

    def expected_seconds(self) -> float:
        """What the references of all operators take, not only of those that stand for a problem; wait for one.

        An operator takes what the first of its problem took; where that is not known yet, what the others take in the
        mean.
        """
        known = self.known_seconds()
        if not known:
            _ = self[next(iter(self))]
            known = self.known_seconds()
        usual = mean(known.values())
        return sum(known.get(operator.problem, usual) for operator in self._program.operators)


def compute_cases(
    lowered: LoweredModel,
    plan: HasInterface,
    seed: int,
    memory: dict[str, Array],
    problems: Collection[Problem] | None,
    tell: Progress,
) -> Iterator[ComputedCase]:
    """Yield a case for each distinct problem, by the first operator that is of it, as soon as it is known.

    The reference is the engine's own, float64 on the CPU, computed once for the whole model: every
    candidate then sees the values that the operator sees inside the model, and what a schedule is
    measured against depends on no other schedule. Of all other operators only what lies in memory is computed.

    Args:
        lowered: The model.
        plan: Any plan of it, or its interface.
        seed: Of the model's random inputs.
        memory: Tensors that are known, of another form of the model; filled with all that are computed.
        problems: Those that are asked for; None for all, and for every tensor.
        tell: Told before every node.
    """
    program, first = lowered.program, first_operators(lowered.program)
    asked = [first[problem] for problem in (first if problems is None else problems)]
    by_call = {operator.call: operator for operator in asked if operator.call}
    wanted = None if problems is None else {*by_call, *_read_without_call(asked)}
    reference = GraphReference(lowered.graph, plan.precision)
    nodes = reference.begin(random_inputs(plan, seed), memory, wanted)
    copies = _Copies(program, asked, {name for node in nodes for name in node.output})
    ready, done = copies.after(()), 0
    for node in nodes:
        yield from _copied(program, ready, memory)
        done += len(ready)
        tell(STAGE, done, len(asked))
        known, begun = by_call.get(node.name), time.monotonic()
        if known is None:
            reference.evaluate(node, memory)
        else:
            case = _case(program, known, memory, reference.of(node, memory))
            yield ComputedCase(known.problem, case, time.monotonic() - begun)
            done += 1
        ready = copies.after(node.output)
    yield from _copied(program, ready, memory)
    tell(STAGE, len(asked), len(asked))


class _Copies:
    """The operators that no node stands for: one can be judged when all that it touches is known."""

    def __init__(
        self, program: Program, asked: Iterable[Operator], coming: Collection[str]
    ) -> None:
        """Begin.

        Args:
            program: The model.
            asked: Operators.
            coming: Names of all tensors that are still to be computed.
        """
        copies = (operator for operator in asked if not operator.call)
        self._waiting = [(each, {*coming}.intersection(_touched(program, each))) for each in copies]

    def after(self, names: Collection[str]) -> list[Operator]:
        """Return those for which nothing is missing any more when these tensors are known; each once."""
        left = [(operator, missing.difference(names)) for operator, missing in self._waiting]
        self._waiting = [each for each in left if each[1]]
        return [operator for operator, missing in left if not missing]


def _read_without_call(operators: Iterable[Operator]) -> Iterator[str]:
    """Values that copies read which no node of the graph stands for."""
    for operator in operators:
        if not operator.call:
            yield from operator.inputs


def _touched(program: Program, operator: Operator) -> list[str]:
    """The values that lie in the buffers of an operator's own."""
    own = (program.values.get(name) for name in (*operator.inputs, *operator.outputs))
    buffers = {value.buffer for value in own if value is not None}
    return [name for name, value in program.values.items() if value.buffer in buffers]


def _copied(
    program: Program, copies: Iterable[Operator], memory: Mapping[str, Array]
) -> Iterator[ComputedCase]:
    for each in copies:
        yield ComputedCase(each.problem, _case(program, each, memory, None), 0.0)


def _case(
    program: Program, operator: Operator, memory: Mapping[str, Array], result: Reference | None
) -> Case:
    held = {name: memory[name] for name in _touched(program, operator) if name in memory}
    return Case(replace(program, operators=(operator,)), held, result)
