"""Rows of the tensor cores' peak: what counts as a product, and what is held to the goal."""

from dataclasses import replace
from pathlib import Path

import pytest
from rows.catalogue import all_rows
from rows.product_peak import GOAL, NETWORKS, Products, judge, products_of
from subjects.problems import convolution, matmul

from wpk.plan.plan import Step
from wpk.plan.plan_file import read_plan
from wpk.problems import Problem


@pytest.fixture(name="step", scope="module")
def fixture_step(small_plan: Path) -> Step:
    return read_plan(small_plan).plan.steps[0]


def _of(step: Step, problem: Problem, seconds: float) -> Step:
    evidence = replace(step.evidence, measurement=None, estimate_seconds=seconds)
    return replace(step, operator=replace(step.operator, problem=problem), evidence=evidence)


def test_products_and_convolutions_count_with_all_they_take(step: Step) -> None:
    product = matmul(128, 64, 32)
    layer = convolution(16, 24, (5, 7))
    depthwise = convolution(16, 16, (5, 7), groups=16)
    steps = [_of(step, product, 2e-6), _of(step, layer, 3e-6), _of(step, depthwise, 50e-6)]
    found = products_of(steps)
    assert found.operators == 2
    assert found.seconds == pytest.approx(5e-6)
    assert found.operations == 2 * product.macs + layer.traffic().products
    assert found.operations > 2 * product.macs


def test_less_than_the_goal_does_not_pass() -> None:
    peak = 1e15
    for share, passed in ((GOAL.asked, True), (GOAL.asked - 0.01, False)):
        outcome = judge(Products(3, round(share * 1e12), 1e-3), peak)
        assert outcome.passed == passed
        assert outcome.figures["goals"][0]["value"] == pytest.approx(share)


def test_each_network_has_a_row() -> None:
    assert {f"peak.{name}.fp16.b32" for name in NETWORKS} <= set(all_rows())
