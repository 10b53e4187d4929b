"""A model's cases are what its whole reference says, however they are asked for, and no more is judged than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.networks.handwritten import write

from wpk.beside import Beside
from wpk.checks import GraphReference, interface_of
from wpk.checks.operator_reference import Reference
from wpk.dtypes import Precision
from wpk.engine import random_inputs
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.phases import Phases
from wpk.problems import Problem
from wpk.trial_bench.cases import Case
from wpk.trial_bench.first_operators import first_operators
from wpk.trial_bench.model_cases import ModelCases

SEED = 3


NETWORKS = ["channels_58", "ranking", "vision_transformer"]
"""With copies, with operators that are alike, and with nodes that no operator stands for."""


@pytest.fixture(params=NETWORKS)
def lowered(request: pytest.FixtureRequest, tmp_path: Path) -> LoweredModel:
    return ModelForms(Source(write(request.param, tmp_path), {}, Precision.FP16, ())).lowered()


class Counted:
    """Nodes by what is computed of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[str] = []
        self.evaluated: list[str] = []
        for name, nodes in (("of", self.judged), ("evaluate", self.evaluated)):
            real = getattr(GraphReference, name)
            counted = self._counted(real, nodes)
            monkeypatch.setattr(GraphReference, name, counted)

    def _counted(self, real: Any, nodes: list[str]) -> Any:
        def counted(reference: GraphReference, node: Any, memory: Any) -> Any:
            nodes.append(node.name)
            return real(reference, node, memory)

        return counted


def of_the_whole(lowered: LoweredModel) -> dict[Problem, tuple[dict[str, Any], Reference | None]]:
    """What each case should hold: all nodes are judged, and what copies touch is read at the end."""
    program, memory = lowered.program, dict[str, Any]()
    first = first_operators(program).values()
    by_call = {operator.call: operator for operator in first if operator.call}
    expected: dict[Problem, tuple[dict[str, Any], Reference | None]] = {}

    def held(operator: Any) -> dict[str, Any]:
        names = (*operator.inputs, *operator.outputs)
        buffers = {program.values[name].buffer for name in names if name in program.values}
        values = program.values.items()
        return {n: memory[n] for n, v in values if v.buffer in buffers and n in memory}

    interface = interface_of(lowered)
    reference = GraphReference(lowered.graph, interface.precision)
    for result in reference.run(random_inputs(interface, SEED), memory):
        if result.node in by_call:
            operator = by_call[result.node]
            expected[operator.problem] = held(operator), result
    copies = (operator for operator in first if not operator.call)
    return expected | {each.problem: (held(each), None) for each in copies}


def require_same(case: Case, held: dict[str, Any], result: Reference | None) -> None:
    assert list(case.memory) == list(held)
    for name, array in held.items():
        np.testing.assert_array_equal(case.memory[name], array, strict=True)
    assert (case.result is None) == (result is None)
    if case.result is not None and result is not None:
        assert case.result.node == result.node
        for own, right in (
            (case.result.outputs, result.outputs),
            (_wholes(case.result), _wholes(result)),
        ):
            assert own.keys() == right.keys()
            for name, array in right.items():
                np.testing.assert_array_equal(own[name], array, strict=True)


def _wholes(result: Reference) -> dict[str, Any]:
    return {name: each.whole for name, each in result.tolerances.items()}


@pytest.mark.parametrize("asked", ["beside", "in order", "last first"])
def test_they_are_those_of_the_whole_reference_to_the_bit_whenever_they_are_asked_for(
    lowered: LoweredModel, asked: str
) -> None:
    cases = ModelCases(lowered, SEED, Phases())
    expected = of_the_whole(lowered)
    assert expected.keys() == cases.keys()
    with Beside("test") as beside:
        if asked == "beside":
            cases.begin(beside)
        for problem in list(cases)[:: -1 if asked == "last first" else 1]:
            require_same(cases[problem], *expected[problem])
        memory = cases.memory()
    for held, _ in expected.values():
        for name, array in held.items():
            np.testing.assert_array_equal(memory[name], array, strict=True)


def test_only_what_stands_for_a_problem_is_judged(
    lowered: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, cases = Counted(monkeypatch), ModelCases(lowered, SEED, Phases())
    calls = [each.call for each in first_operators(lowered.program).values() if each.call]
    cases.finish()
    assert sorted(counted.judged) == sorted(calls)
    assert len(counted.judged) + len(counted.evaluated) == len(lowered.graph.nodes)


def test_a_case_is_there_before_what_lies_behind_it_is_computed(
    lowered: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, cases = Counted(monkeypatch), ModelCases(lowered, SEED, Phases())
    order = [node.name for node in lowered.graph.nodes]
    for operator in first_operators(lowered.program).values():
        _ = cases[operator.problem]
        computed = [*counted.judged, *counted.evaluated]
        if operator.call:
            assert set(computed) <= set(order[: order.index(operator.call) + 1])
        else:
            assert len(computed) < len(order)  # a copy does not wait for the end


def test_what_the_check_takes_counts_operators_that_are_alike(lowered: LoweredModel) -> None:
    cases = ModelCases(lowered, SEED, Phases())
    cases.finish()
    known = cases.known_seconds()
    every = [known[operator.problem] for operator in lowered.program.operators]
    assert cases.expected_seconds() == pytest.approx(sum(every))
    early = ModelCases(lowered, SEED, Phases())
    _ = early.expected_seconds()
    assert len(early.known_seconds()) < len(early)
