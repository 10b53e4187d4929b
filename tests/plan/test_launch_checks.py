"""Clusters, attributes and tensor maps in a plan: what is refused, and by the name of which field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wpk.errors import PlanError
from wpk.launch import (
    COOPERATIVE,
    EARLY_LAUNCH,
    CounterArgument,
    Im2col,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.plan import Plan, PlanBundle
from wpk.problems import Elementwise

X = TensorMapArgument(0, (8, "n"), (32,), (8, 64), 32)
"""The whole of the input x: n rows of 8 floats, 2 for the tuned size."""


def plan_with(plan: Plan, **changes: Any) -> Plan:
    """The plan whose one launch is changed."""
    (step,) = plan.steps
    (launch,) = step.launches
    return replace(plan, steps=(replace(step, launches=(replace(launch, **changes),)),))


def reading(tensor: TensorMapArgument) -> dict[str, Any]:
    return {"arguments": (InputArgument(1), tensor, OutputArgument(0))}


def with_size(size: SizeArgument) -> dict[str, Any]:
    return {"arguments": (InputArgument(0), InputArgument(1), size, OutputArgument(0))}


def behind(memory: WorkspaceArgument | CounterArgument) -> dict[str, Any]:
    return {"arguments": (InputArgument(0), InputArgument(1), OutputArgument(0), memory)}


@pytest.mark.parametrize(
    "changes",
    [
        {"attributes": (EARLY_LAUNCH,)},
        {"grid": ("n", 8, 4), "cluster": (2, 4, 2)},
        reading(X),
        reading(replace(X, index=1, shape=(8,), strides=(), box=(4,), swizzle=0)),
        reading(replace(X, box=(8, 256))),
        {"grid": (2**31 - 1, 65535, 65535)},
        {"block": (1024, 1, 1)},
        {"block": (1, 1024, 1)},
        {"block": (16, 1, 64)},
        {"shared_bytes": 227 * 1024},
        with_size(SizeArgument(2**31 - 1)),
        with_size(SizeArgument(-(2**31))),
        behind(WorkspaceArgument(2**40)),
        behind(WorkspaceArgument(0)),
        behind(CounterArgument(2**31 - 1)),
    ],
)
def test_takes_what_gpus_can_launch(bundle: PlanBundle, changes: dict[str, Any]) -> None:
    check_plan(plan_with(bundle.plan, **changes))


LAUNCH = r"plan.steps\[0\].launches\[0\]"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"attributes": ("persisting",)}, r"attributes: 'persisting' is none of"),
        ({"attributes": (EARLY_LAUNCH, EARLY_LAUNCH)}, "attributes: .* says one twice"),
        ({"cluster": (0, 1, 1)}, r"cluster: \(0, 1, 1\) is not 1 to 16 blocks"),
        ({"grid": (32, 1, 1), "cluster": (32, 1, 1)}, "cluster: .* is not 1 to 16 blocks"),
        ({"grid": (2**31, 1, 1)}, "grid: 2147483648 is not within 1"),
        ({"grid": (1, 65536, 1)}, "grid: 65536 is not within 1"),
        ({"grid": (1, 1, 65536)}, "grid: 65536 is not within 1"),
        ({"grid": (0, 1, 1)}, "grid: 0 is not within 1"),
        ({"block": (1025, 1, 1)}, "block: 1025 is not within 1"),
        ({"block": (1, 1025, 1)}, "block: 1025 is not within 1"),
        ({"block": (1, 1, 65)}, "block: 65 is not within 1"),
        ({"block": (1, 0, 1)}, "block: 0 is not within 1"),
        ({"block": (33, 32, 1)}, "block: 1056 is not within 1"),
        ({"shared_bytes": 227 * 1024 + 1}, "shared_bytes: 232449 is not within 0"),
        ({"shared_bytes": -1}, "shared_bytes: -1 is not within 0"),
        ({"kernel": "0" * 64}, "kernel: no kernel"),
        ({"entry": "another"}, "kernel: no kernel 'another'"),
        (with_size(SizeArgument(2**31)), r"arguments\[2\].expression: 2147483648 is not"),
        (with_size(SizeArgument(-(2**31) - 1)), r"arguments\[2\].expression: -2147483649 is not"),
        (behind(WorkspaceArgument(2**40 + 1)), r"arguments\[3\].bytes: 1099511627777 is not"),
        (behind(WorkspaceArgument(-1)), r"arguments\[3\].bytes: -1 is not"),
        (behind(CounterArgument(2**31)), r"arguments\[3\].count: 2147483648 is not"),
        ({"arguments": (InputArgument(2), OutputArgument(0))}, r"arguments\[0\].index: 2 is not"),
        ({"arguments": (InputArgument(-1), OutputArgument(0))}, r"arguments\[0\].index: -1 is"),
        ({"arguments": (InputArgument(0), OutputArgument(1))}, r"arguments\[1\].index: 1 is not"),
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
    (step,) = plan.steps
    problem = step.operator.problem
    assert isinstance(problem, Elementwise)
    inputs = (replace(problem.inputs[0], alignment=8), *problem.inputs[1:])
    operator = replace(step.operator, problem=replace(problem, inputs=inputs))
    plan = replace(plan, steps=(replace(step, operator=operator),))
    with pytest.raises(PlanError, match=r"arguments\[1\].index: 0x8 is no multiple of 16 bytes"):
        check_plan(plan)


def test_a_tensor_map_ends_where_the_buffer_does_in_which_its_value_lies(
    bundle: PlanBundle,
) -> None:
    plan = bundle.plan
    values = {**plan.values, "x": replace(plan.values["x"], offset=16)}
    buffers = {**plan.buffers, "bx": replace(plan.buffers["bx"], bytes=16 + 64)}
    plan = replace(plan, values=values, buffers=buffers)
    check_plan(plan_with(plan, **reading(replace(X, shape=(8, 2)))))
    with pytest.raises(PlanError, match=r"shape: reaches 96 bytes far, 64 are there"):
        check_plan(plan_with(plan, **reading(replace(X, shape=(8, 3)))))


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


def test_cooperative_launches_are_older(bundle: PlanBundle) -> None:
    plan = plan_with(bundle.plan, attributes=(COOPERATIVE,))
    check_plan(plan)
    check_plan(replace(plan, arch="sm_75"))


def test_a_launch_with_an_argument_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="out of order"):
        Launch("d", "k", (1, 1, 1), (32, 1, 1), 0, (OutputArgument(0), X))
