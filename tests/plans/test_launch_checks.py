"""Clusters, attributes and tensor maps in a plan: what is refused, and by the name of which field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wpk.errors import PlanError
from wpk.launch import (
    EARLY_LAUNCH,
    Im2col,
    InputArgument,
    Launch,
    OutputArgument,
    TensorMapArgument,
)
from wpk.plans.plan import Plan, PlanBundle
from wpk.plans.plan_checks import check_plan

X = TensorMapArgument(0, (8, "n"), (32,), (8, 64), 32)
"""The whole of the input x: n rows of 8 floats, 2 for the tuned size."""


def plan_with(plan: Plan, **changes: Any) -> Plan:
    """The plan whose one launch is changed."""
    (step,) = plan.steps
    (launch,) = step.launches
    return replace(plan, steps=(replace(step, launches=(replace(launch, **changes),)),))


def reading(tensor: TensorMapArgument) -> dict[str, Any]:
    return {"arguments": (InputArgument(1), tensor, OutputArgument(0))}


@pytest.mark.parametrize(
    "changes",
    [
        {"attributes": (EARLY_LAUNCH,)},
        {"grid": ("n", 8, 4), "cluster": (2, 4, 2)},
        reading(X),
        reading(replace(X, index=1, shape=(8,), strides=(), box=(4,), swizzle=0)),
    ],
)
def test_takes_what_gpus_can_launch(bundle: PlanBundle, changes: dict[str, Any]) -> None:
    check_plan(plan_with(bundle.plan, **changes))


LAUNCH = r"plan.steps\[0\].launches\[0\]"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"attributes": ("cooperative",)}, r"attributes: 'cooperative' is none of"),
        ({"attributes": (EARLY_LAUNCH, EARLY_LAUNCH)}, "attributes: .* says one twice"),
        ({"cluster": (0, 1, 1)}, r"cluster: \(0, 1, 1\) is not 1 to 16 blocks"),
        ({"grid": (32, 1, 1), "cluster": (32, 1, 1)}, "cluster: .* is not 1 to 16 blocks"),
        ({"cluster": (4, 1, 1)}, r"cluster: \(4, 1, 1\) does not divide the grid \(2, 1, 1\)"),
        ({"cluster": (1, 2, 1)}, "cluster: .* does not divide"),
        (reading(replace(X, index=2)), r"arguments\[1\].index: 2 is not within 0 to 1"),
        (reading(replace(X, box=(8, 257))), r"arguments\[1\].box: 257 is not within 1 to 256"),
        (reading(replace(X, strides=(36,))), r"arguments\[1\].strides: 36 bytes"),
        (reading(replace(X, strides=(-32,))), r"arguments\[1\].strides: -32 bytes"),
        (reading(replace(X, box=(8, 2), swizzle=48)), r"arguments\[1\].swizzle: 48"),
        (reading(replace(X, shape=(8, 3))), r"arguments\[1\].shape: reaches 96 bytes far, 64 are"),
        (reading(replace(X, index=1)), r"arguments\[1\].shape: reaches 64 bytes far, 32 are there"),
        (
            reading(replace(X, im2col=Im2col((0,), (0,), (1,)))),
            r"arguments\[1\].shape: 2 dimensions, 3 to 5 are possible",
        ),
    ],
)
def test_names_the_field_that_is_wrong(
    bundle: PlanBundle, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlanError, match=f"{LAUNCH}.{field}"):
        check_plan(plan_with(bundle.plan, **changes))


def test_a_tensor_that_begins_between_aligned_places_is_refused(bundle: PlanBundle) -> None:
    plan = plan_with(bundle.plan, **reading(replace(X, shape=(8, 1), strides=(32,))))
    value, buffer = plan.values["x"], plan.buffers["bx"]
    inside = replace(value, offset=8)
    larger = replace(buffer, bytes=4096)
    plan = replace(
        plan, values={**plan.values, "x": inside}, buffers={**plan.buffers, "bx": larger}
    )
    with pytest.raises(PlanError, match=r"arguments\[1\].index: 0x8 is no multiple of 16 bytes"):
        check_plan(plan)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cluster": (2, 1, 1)}, "cluster"),
        ({"attributes": (EARLY_LAUNCH,)}, "attributes"),
        (reading(X), r"arguments\[1\]"),
    ],
)
def test_plans_for_older_architectures_have_none_of_it(
    bundle: PlanBundle, changes: dict[str, Any], field: str
) -> None:
    plan = replace(plan_with(bundle.plan, **changes), arch="sm_80")
    with pytest.raises(PlanError, match=f"{LAUNCH}.{field}: needs sm_90, the plan is for sm_80"):
        check_plan(plan)
    check_plan(replace(bundle.plan, arch="sm_80"))


def test_a_launch_with_an_argument_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="out of order"):
        Launch("d", "k", (1, 1, 1), (32, 1, 1), 0, (OutputArgument(0), X))
