"""Steps that a library computes: what a plan may say of the call, and of the constant it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from subjects.problems import matmul
from support.plans.candidates import library_call

from wpk.dtypes import DType, Precision
from wpk.errors import PlanError
from wpk.extent import Extent
from wpk.launch import Launch
from wpk.lowering.program import Buffer, Value
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.plan import Plan, PlanBundle, Port, Weight
from wpk.problems import Elementwise

ROWS = Extent(2)
CALL = library_call((("graph", 0), ("engine", 3)), version="9.19.0")
PRODUCT = matmul(ROWS, 16, 8, precision=Precision.FP32)


@pytest.fixture
def plan(bundle: PlanBundle) -> Plan:
    """Y = x @ w, of one size."""
    x = Value("x", DType.FP32, ROWS, (2, 8), (8, 1), 0, "bx", 0, (2, 8))
    y = Value("y", DType.FP32, ROWS, (2, 16), (16, 1), 0, "by", 0, (2, 16))
    (step,) = bundle.plan.steps
    operator = replace(step.operator, problem=PRODUCT)
    step = replace(step, operator=operator, candidate=CALL, launches=(), workspace_bytes=4096)
    return replace(
        bundle.plan,
        free={},
        inputs=(Port("x", DType.FP32, (2, 8)),),
        outputs=(Port("y", DType.FP32, (2, 16)),),
        values={"x": x, "y": y},
        buffers={"bx": Buffer("bx", 64), "by": Buffer("by", 128)},
        weights={"w": Weight("w", "w", "kn", DType.FP32, (8, 16), "0" * 64)},
        steps=(step,),
        kernels={},
    )


def calling(plan: Plan, **fields: Any) -> Plan:
    (step,) = plan.steps
    configuration = fields.pop("configuration", None)
    if configuration is not None:
        fields["candidate"] = replace(step.candidate, configuration=configuration)
    return replace(plan, steps=(replace(step, **fields),))


def weighing(plan: Plan, **fields: Any) -> Plan:
    return replace(plan, weights={"w": replace(plan.weights["w"], **fields)})


def test_a_call_of_a_library_is_taken_with_either_layout(plan: Plan) -> None:
    check_plan(plan)
    other = calling(plan, configuration=(("graph", 1), ("engine", 3)))
    check_plan(weighing(other, packing="nk"))
    for workspace in (0, 2**40):
        check_plan(calling(plan, workspace_bytes=workspace))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workspace_bytes": -1}, "workspace_bytes: -1 is not within 0"),
        ({"workspace_bytes": 2**40 + 1}, "workspace_bytes: 1099511627777 is not within"),
        ({"configuration": (("graph", 2),)}, "candidate.configuration: graph 2 of 2"),
        ({"configuration": ()}, "candidate.configuration: graph -1 of 2"),
        ({"configuration": (("graph", 0),)}, "candidate.configuration: it names no engine"),
        (
            {"configuration": (("graph", 0), ("engine", 2**63))},
            "candidate.configuration: engine = 9223372036854775808 is no number of 64 bits",
        ),
        (
            {"configuration": (("graph", 1), ("engine", 3))},
            "inputs.1.: fp32, packing kn; cuDNN reads fp32 nk",
        ),
    ],
)
def test_a_call_that_no_library_knows_is_refused(
    plan: Plan, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=rf"steps\[0\].{message}"):
        check_plan(calling(plan, **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"packing": None}, "fp32, packing None; cuDNN reads fp32 kn"),
        ({"packing": "nk"}, "fp32, packing nk; cuDNN reads fp32 kn"),
        ({"dtype": DType.INT32}, "int32, packing kn; cuDNN reads fp32 kn"),
        ({"shape": (8, 15)}, "cuDNN reads 512 bytes, 480 are there"),
        ({"shape": (127,)}, "cuDNN reads 512 bytes, 508 are there"),
    ],
)
def test_a_constant_that_a_library_would_read_wrongly_is_refused(
    plan: Plan, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=rf"steps\[0\].inputs\[1\]: {message}"):
        check_plan(weighing(plan, **fields))


def test_a_library_and_a_kernel_do_not_both_compute_a_step(plan: Plan) -> None:
    (step,) = plan.steps
    launch = Launch("ab" * 32, "wpk_none", (1, 1, 1), (32, 1, 1), 0, ())
    with pytest.raises(PlanError, match=r"steps\[0\].launches: 1, and cuDNN computes it"):
        check_plan(replace(plan, steps=(replace(step, launches=(launch,)),)))


def test_a_library_computes_problems_of_one_size(bundle: PlanBundle) -> None:
    """Without a constant there is no layout, and nothing is asked of weights."""
    (step,) = bundle.plan.steps
    step = replace(step, candidate=CALL, launches=())
    called = replace(bundle.plan, steps=(step,), kernels={})
    with pytest.raises(PlanError, match=r"candidate.configuration: its size n is free"):
        check_plan(called)
    fixed = {
        name: replace(value, leading=ROWS, logical_shape=(2, 8))
        for name, value in called.values.items()
    }
    ports = {
        section: tuple(replace(port, shape=(2, 8)) for port in getattr(called, section))
        for section in ("inputs", "outputs")
    }
    problem = step.operator.problem
    assert isinstance(problem, Elementwise)
    operator = replace(step.operator, problem=replace(problem, leading=ROWS))
    whole = {name: Buffer(name, 64) for name in called.buffers}
    steps = (replace(called.steps[0], operator=operator),)
    check_plan(replace(called, free={}, values=fixed, buffers=whole, steps=steps, **ports))


def test_a_kernels_scratch_memory_is_what_its_launches_say(bundle: PlanBundle) -> None:
    (step,) = bundle.plan.steps
    with pytest.raises(PlanError, match=r"workspace_bytes: 4096, and no library asks for it"):
        check_plan(replace(bundle.plan, steps=(replace(step, workspace_bytes=4096),)))
