"""The floor of ResNet-50."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from rows.floor import LAUNCH_SECONDS, floor_seconds, goal_of, operators
from subjects import exported

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model


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
    onnx.save(exported.refill("tv_resnet50.dynamo"), path)
    program = lower_model(path, {}, Precision.FP16).program
    needs = [operator.problem.traffic() for operator in program.operators]
    floors = operators()
    assert sum(each.bytes + each.constant_bytes for each in floors) == pytest.approx(
        sum(each.bytes for each in needs), rel=0.01
    )
    # Products with padding are in the floor's operations, and not in the bound's.
    ratio = sum(each.operations for each in floors) / sum(each.products for each in needs)
    assert 1.0 <= ratio < 1.05
