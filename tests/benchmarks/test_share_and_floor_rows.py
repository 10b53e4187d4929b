"""Shares of generated kernels, and the floor of ResNet-50."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import refill
from rows.base import RowError
from rows.floor import LAUNCH_SECONDS, floor_seconds, goal_of, operators
from rows.share import Share, judge, share_of

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.performance.traffic import traffic
from wpk.plans.measurement import Contestant, Measurement
from wpk.plans.plan import Choice, Evidence, LibraryChoice, Step
from wpk.plans.plan_file import read_plan

LIBRARY = LibraryChoice("cuDNN", "9.19", (), None, 0)
GENERATED = Choice("conv_mma", 1, ())


def contestant(*, is_library: bool) -> Contestant:
    maker = "cuDNN" if is_library else "conv_mma"
    return Contestant(maker, "1", (), is_library, 2e-6, 1e-6, 3e-6, 11, side_by_side=True)


OURS, THEIRS = contestant(is_library=False), contestant(is_library=True)


@pytest.fixture(name="step", scope="module")
def fixture_step(small_plan: Path) -> Step:
    return read_plan(small_plan).plan.steps[0]


def measured(
    step: Step, *, ours: bool, alone: bool = False, in_engine: float | None = None
) -> Step:
    """The step, chosen between a kernel and a library, or alone."""
    chosen, other = (OURS, THEIRS) if ours else (THEIRS, OURS)
    others = () if alone else (other,)
    found = Measurement(chosen, others, "warm", (), 0, "", in_engine_seconds=in_engine)
    evidence = Evidence(1e-6, "L2", 1e-6, 0.5, measurement=found)
    return replace(step, choice=GENERATED if ours else LIBRARY, evidence=evidence)


def test_only_operators_that_the_library_computes_correctly_count(step: Step) -> None:
    steps = [
        measured(step, ours=True, in_engine=6e-6),
        measured(step, ours=False),
        measured(step, ours=True, alone=True, in_engine=1.0),
        replace(step, evidence=Evidence(1e-6, "L2", 1e-6, 0.5)),
    ]
    share = share_of(steps)
    assert (share.operators, share.generated) == (2, 1)
    assert share.figures()["by_number"] == 0.5
    assert share.figures()["by_time"] == pytest.approx(6 / 8)


def test_all_plans_together_are_held_to_the_goals() -> None:
    most = Share(90, 75, 1.0, 0.7)
    assert judge({"a": most, "b": Share(10, 5, 0.1, 0.0)}).passed
    few = judge({"a": most, "b": Share(10, 0, 0.1, 0.0)})
    assert few.passed  # 75 of 100, 64 % of the time
    assert not judge({"a": most, "b": Share(11, 0, 0.1, 0.0)}).passed
    slow = judge({"a": most, "b": Share(10, 5, 0.2, 0.0)})
    assert [goal["reached"] for goal in slow.figures["goals"]] == [True, False]


def test_without_a_library_there_is_no_share(step: Step) -> None:
    alone = share_of([measured(step, ours=True, alone=True)])
    assert alone.figures()["by_number"] is None
    with pytest.raises(RowError, match="no operator that cuDNN could compute"):
        judge({"a": alone})


def test_resnet50_has_56_operators_and_8_2_billion_operations() -> None:
    found = operators()
    assert len(found) == 56
    assert sum("conv" in each.name or each.name == "shortcut" for each in found) == 53
    assert sum(each.operations for each in found) == pytest.approx(8.18e9, rel=0.005)


def test_the_floor_is_more_than_its_launches() -> None:
    launches = 56 * LAUNCH_SECONDS
    assert launches < floor_seconds(1, "h200") < 95e-6
    assert floor_seconds(32, "h200") > 32 * 8.18e9 / 989.5e12 + launches


@pytest.mark.parametrize(("batch", "most"), [(1, 2.1), (32, 2.2)])
def test_the_engine_may_take_twice_its_floor(batch: int, most: float) -> None:
    assert goal_of(batch).judged(most).reached
    assert not goal_of(batch).judged(most + 0.01).reached


@pytest.mark.slow
def test_the_56_operators_touch_and_compute_what_the_networks_own_do(tmp_path: Path) -> None:
    path = tmp_path / "resnet50.onnx"
    onnx.save(refill.refill("tv_resnet50.dynamo"), path)
    program = lower_model(path, {}, Precision.FP16).program
    needs = [traffic(operator.problem) for operator in program.operators]
    floors = operators()
    assert sum(each.bytes + each.constant_bytes for each in floors) == pytest.approx(
        sum(each.bytes for each in needs), rel=0.01
    )
    # Products with padding are in the floor's operations, and not in the bound's.
    ratio = sum(each.operations for each in floors) / sum(each.products for each in needs)
    assert 1.0 <= ratio < 1.05
