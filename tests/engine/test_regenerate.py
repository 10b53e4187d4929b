"""Kernels of a plan, generated again: only what a template carries, legally, and weights as it packs them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.plans.forged_plans import forged, with_weight

from wpk.engine.regenerate import regenerate
from wpk.errors import PlanError
from wpk.expression import Scalar
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan
from wpk.problems import Convolution, Matmul


@pytest.fixture(name="bundle")
def fixture_bundle(small_plan: Path) -> PlanBundle:
    """A convolution, a pooling, a reduction, a product, a softmax."""
    return read_plan(small_plan)


def chosen(bundle: PlanBundle, index: int, **schedule: int) -> PlanBundle:
    """The plan with other parameters in one step, and nothing else made new."""
    step = bundle.plan.steps[index]
    parameters = tuple({**dict(step.candidate.configuration), **schedule}.items())
    steps = list(bundle.plan.steps)
    steps[index] = replace(step, candidate=replace(step.candidate, configuration=parameters))
    return replace(bundle, plan=replace(bundle.plan, steps=tuple(steps)))


def with_problem(bundle: PlanBundle, index: int, problem: Any) -> PlanBundle:
    step = bundle.plan.steps[index]
    steps = list(bundle.plan.steps)
    steps[index] = replace(step, operator=replace(step.operator, problem=problem))
    return replace(bundle, plan=replace(bundle.plan, steps=tuple(steps)))


def step_of(bundle: PlanBundle, kind: type) -> int:
    problems = [step.operator.problem for step in bundle.plan.steps]
    return next(index for index, problem in enumerate(problems) if isinstance(problem, kind))


def test_an_honest_plan_is_what_it_says(bundle: PlanBundle) -> None:
    assert set(regenerate(bundle.plan)) == set(bundle.plan.kernels)


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ({"threads": 0}, r"steps\[1\].candidate.configuration: "),
        ({"vector": 0}, r"steps\[1\].candidate.configuration: "),
        ({"threads": -256}, "threads=-256 is out of range"),
        ({"threads": 2**31}, "threads=2147483648 is out of range"),
        ({"threads": 2048}, r"steps\[1\].candidate.configuration: "),
        ({"warp": 1}, r"steps\[1\].candidate.configuration: .*warp"),
    ],
)
def test_a_schedule_that_is_illegal_is_refused_before_it_is_compiled(
    bundle: PlanBundle, schedule: dict[str, int], reason: str
) -> None:
    with pytest.raises(PlanError, match=reason):
        regenerate(chosen(bundle, 1, **schedule).plan)


def test_an_illegal_schedule_is_refused_though_its_launches_were_made_to_fit(
    bundle: PlanBundle,
) -> None:
    index = step_of(bundle, Matmul)
    hungry = forged(bundle, index, stages=4096)
    with pytest.raises(PlanError, match=rf"steps\[{index}\].candidate.configuration: is illegal: "):
        regenerate(hungry.plan)


def test_a_problem_that_no_template_carries_is_refused(bundle: PlanBundle) -> None:
    index = step_of(bundle, Convolution)
    problem = bundle.plan.steps[index].operator.problem
    assert isinstance(problem, Convolution)
    wide = replace(problem, x=replace(problem.x, strides=(2**40, 2**40, 2**40, 2**40)))
    with pytest.raises(PlanError, match=r"does not carry it: an image has more elements"):
        regenerate(with_problem(bundle, index, wide).plan)


def test_a_number_that_no_kernel_holds_is_refused_in_words(bundle: PlanBundle) -> None:
    index = step_of(bundle, Convolution)
    problem = bundle.plan.steps[index].operator.problem
    assert isinstance(problem, Convolution)
    epilogue = replace(problem.epilogue, expression=Scalar(1e300))
    with pytest.raises(PlanError, match="gives no kernel: OverflowError"):
        regenerate(with_problem(bundle, index, replace(problem, epilogue=epilogue)).plan)


def test_channels_that_groups_do_not_divide_are_refused(bundle: PlanBundle) -> None:
    index = step_of(bundle, Convolution)
    problem = bundle.plan.steps[index].operator.problem
    assert isinstance(problem, Convolution)
    for groups, message in ((0, "groups: 0 is not within"), (4, "c: 3 in 4 groups")):
        other = with_problem(bundle, index, replace(problem, groups=groups))
        with pytest.raises(PlanError, match=message):
            check_plan(other.plan)


@pytest.mark.parametrize("shape", [(1,), (6, 27), (6, 29), (6, 28, 1)])
def test_a_weight_of_another_shape_than_its_packing_gives_is_refused(
    bundle: PlanBundle, shape: tuple[int, ...]
) -> None:
    index = step_of(bundle, Convolution)
    name = bundle.plan.steps[index].inputs[1]
    stored = bundle.weights[name]
    small = with_weight(bundle, name, np.zeros(shape, stored.dtype))
    check_plan(small.plan)
    if shape == stored.shape:
        return
    with pytest.raises(PlanError, match=rf"steps\[{index}\].inputs\[1\]: .*; the kernel reads"):
        regenerate(small.plan)


def test_a_kernel_that_no_step_launches_is_refused(bundle: PlanBundle) -> None:
    kernel = next(iter(bundle.plan.kernels.values()))
    extra = replace(kernel, digest="0" * 64)
    plan = replace(bundle.plan, kernels={**bundle.plan.kernels, "0" * 64: extra})
    with pytest.raises(PlanError, match="no step launches it"):
        regenerate(plan)
