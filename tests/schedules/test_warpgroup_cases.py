"""What the GPU's tests hold templates of warpgroups to is right: their operands fit every kernel, and the emulator gives what they expect."""

from dataclasses import replace

import numpy as np
import pytest
from support.launches.warpgroup_cases import H200, PROBLEMS, SCHEDULES, legal_schedules
from support.launches.warpgroup_steps import Operands, Step, Tile, operands, template

from wpk.emulator import Emulator
from wpk.problems import Convolution


@pytest.mark.parametrize("name", ["64 of 56x56", "fp32, 1x1", "rows with known moments"])
def test_those_that_are_legal_together_are_so_one_by_one(name: str) -> None:
    problem = PROBLEMS[name]
    given = [each for each in SCHEDULES if template(problem, each).why_not(problem, H200) is None]
    used = template(problem, given[0])
    legal = [each for each in given if used.why_illegal(problem, each, H200) is None]
    assert used.legal_among(given, problem, H200) == legal
    assert 0 < len(legal) < len(given)


def first_legal(name: str) -> list[Tile]:
    """Of each template that takes a problem, the first schedule."""
    found: dict[str, Tile] = {}
    for schedule in legal_schedules(name):
        found.setdefault(template(PROBLEMS[name], schedule).name, schedule)
    return list(found.values())


@pytest.mark.parametrize("name", PROBLEMS)
def test_operands_fit_every_kernel(name: str) -> None:
    problem = PROBLEMS[name]
    schedules = first_legal(name)
    assert schedules
    for schedule in schedules:
        memory = operands(problem, schedule, seed=1)
        assert np.isfinite(memory.expected).all()
        assert (memory.allowed > 0).all()


def worst(problem: Convolution, schedule: Tile, memory: Operands) -> float:
    """The largest error of the emulator beside what is allowed."""
    result = Step(Emulator(), problem, schedule, memory).run().astype(np.float64)
    return float((np.abs(result - memory.expected) / memory.allowed).max())


@pytest.mark.parametrize("name", ["two groups of 64", "three groups of 32, stride 2"])
def test_groups_read_their_own_channels(name: str) -> None:
    problem = PROBLEMS[name]
    assert isinstance(problem, Convolution)
    for schedule in first_legal(name):
        memory = operands(problem, schedule, seed=2)
        assert worst(problem, schedule, memory) <= 1
        turned = replace(memory, inputs=(np.roll(memory.inputs[0], 1, -1), *memory.inputs[1:]))
        assert worst(problem, schedule, turned) > 10, "another channel would be noticed"
