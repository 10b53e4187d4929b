"""Rows of the tensor cores' peak: what counts as a product, and what is held to the goal."""

from dataclasses import replace
from pathlib import Path

import pytest
from rows.base import RowError
from rows.catalogue import all_rows
from rows.networks import OURS
from rows.plan_products import product_figures, products_of
from rows.product_peak import BATCH, GOAL, NETWORKS, judge
from rows.result_file import Record
from rows.zoo import ZooCase
from subjects.problems import convolution, matmul
from support.problems.feed_forwards import feed_forward

from wpk.dtypes import Precision
from wpk.plan.plan import Step
from wpk.plan.plan_file import read_plan
from wpk.problems import Problem


@pytest.fixture(name="step", scope="module")
def fixture_step(small_plan: Path) -> Step:
    return read_plan(small_plan).plan.steps[0]


def _of(step: Step, problem: Problem, seconds: float) -> Step:
    evidence = replace(
        step.evidence, measurement=None, estimate_seconds=seconds, bound_seconds=seconds / 2
    )
    return replace(step, operator=replace(step.operator, problem=problem), evidence=evidence)


def test_products_and_convolutions_count_with_all_they_take(step: Step) -> None:
    product = matmul(128, 64, 32)
    layer = convolution(16, 24, (5, 7))
    depthwise = convolution(16, 16, (5, 7), groups=16)
    block = feed_forward(200, 48, 96)
    steps = [_of(step, product, 2e-6), _of(step, layer, 3e-6), _of(step, depthwise, 50e-6)]
    found = products_of([*steps, _of(step, block, 4e-6)])
    assert found.operators == 3
    assert found.seconds == pytest.approx(9e-6)
    assert found.bound_seconds == pytest.approx(4.5e-6)
    both = 2 * 2 * 200 * 48 * 96
    assert found.operations == 2 * product.macs + layer.traffic().products + both
    assert found.operations > 2 * product.macs


def test_a_plan_says_what_part_of_the_peak_its_products_reach(small_plan: Path) -> None:
    plan = replace(read_plan(small_plan).plan, precision=Precision.FP16)
    found = product_figures(plan)["products"]
    assert found["share"] == pytest.approx(
        found["operations"] / found["seconds"] / found["peak"], rel=1e-12
    )
    assert product_figures(replace(plan, steps=())) == {}
    assert product_figures(replace(plan, precision=Precision.FP32)) == {}


def _measured(share: float, profile: float, side_by_side: float) -> Record:
    """A row's record: half of the profile's seconds are its products'."""
    products = {"operators": 3, "operations": 10**12, "seconds": profile / 2, "share": share}
    figures = {
        "products": products,
        "plan": {"operators_seconds": profile, "engine_seconds": profile},
        "times": {OURS: {"median_seconds": side_by_side}, "torch.compile": {"median_seconds": 1.0}},
    }
    return {"figures": figures}


def test_less_than_the_goal_does_not_pass() -> None:
    case = ZooCase("vit", Precision.FP16, BATCH)
    for share, passed in ((GOAL.asked, True), (GOAL.asked - 0.01, False)):
        outcome = judge(case, {f"zoo.{case}": _measured(share, 2e-3, 2e-3)})
        assert outcome.passed == passed
        assert outcome.figures["goals"][0]["value"] == pytest.approx(share)
    with pytest.raises(RowError, match="measure it first"):
        judge(case, {})


@pytest.mark.parametrize("slower", [0.9, 1.1])
def test_products_take_their_part_of_the_time_side_by_side(slower: float) -> None:
    case = ZooCase("vit", Precision.FP16, BATCH)
    outcome = judge(case, {f"zoo.{case}": _measured(GOAL.asked, 2e-3, slower * 2e-3)})
    assert outcome.passed == (slower < 1)
    figures = outcome.figures
    assert figures["share"] == pytest.approx(GOAL.asked / slower)
    assert figures["profiled_share"] == GOAL.asked
    assert figures["seconds"] == pytest.approx(slower * 1e-3)


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_operators_that_do_not_add_up_to_the_engine_were_not_all_timed(part: float) -> None:
    case = ZooCase("vit", Precision.FP16, BATCH)
    record = _measured(GOAL.asked, 2e-3, 2e-3)
    record["figures"]["plan"]["engine_seconds"] /= part
    with pytest.raises(RowError, match="not all were timed; measure it again"):
        judge(case, {f"zoo.{case}": record})


def test_each_network_has_a_row_and_its_figure_comes_from_one_of_the_zoo() -> None:
    rows = set(all_rows())
    for name in NETWORKS:
        assert {f"peak.{name}.fp16.b{BATCH}", f"zoo.{name}.fp16.b{BATCH}"} <= rows
