"""Dataclasses to JSON and back, strictly."""

import json
import math
from typing import Any

import pytest

from wpk.codec import encode
from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType, Precision
from wpk.errors import PlanError
from wpk.expression import Acc, Operand, Round, Scalar, apply
from wpk.extent import Extent
from wpk.launch import Launch, OutputArgument, SizeArgument
from wpk.plans.codec import decode
from wpk.problems import Elementwise, Epilogue, Matmul, Problem, Tensor

MATMUL = Matmul(
    precision=Precision.FP16,
    batch=(Extent(2, "batch", 3), 1),
    m=Extent(5),
    n=7,
    k=9,
    a=Tensor(DType.FP16, (45, 45, 9, 1), padding=7),
    b=Tensor(DType.FP16, (0, 0, 7, 1)),
    b_constant=True,
    y=Tensor(DType.FP32, (35, 35, 7, 1), alignment=4),
    epilogue=Epilogue(
        apply("Min", Round(DType.FP16, apply("Add", Acc(), Operand(0))), Scalar(math.inf)),
        (Tensor(DType.FP16, (0, 0, 0, 1)),),
    ),
)


def test_a_problem_survives_json() -> None:
    text = json.dumps(encode(MATMUL, Problem), allow_nan=False)
    assert decode(json.loads(text), Problem, "problem") == MATMUL  # type: ignore[arg-type]


def test_a_launch_with_dimension_expressions_survives_json() -> None:
    grid = DimNode(DimOperation.CEIL_DIV, DimNode(DimOperation.PROD, 49, "batch"), 64)
    launch = Launch(
        "00", "k", (grid, 1, 1), (32, 1, 1), 0, (SizeArgument("batch"), OutputArgument(0))
    )
    assert decode(json.loads(json.dumps(encode(launch, Launch))), Launch, "launch") == launch


def test_nan_scalars_survive_json() -> None:
    data = encode(Scalar(math.nan), Scalar)
    assert data == {"value": "nan"}
    assert math.isnan(decode(data, Scalar, "scalar").value)


def test_no_two_problem_types_share_a_name() -> None:
    names = [kind.__name__ for kind in Problem.__args__]
    assert len(set(names)) == len(names)
    assert all("type" not in kind.__dataclass_fields__ for kind in Problem.__args__)


def _changed(path: tuple[Any, ...], value: Any) -> Any:
    data = encode(MATMUL, Problem)
    at = data
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("type",), "Rnn", "problem.type: 'Rnn' is none of"),
        (("type",), 3, "problem.type: 3"),
        (("n",), "7", "problem.n: expected int"),
        (("n",), True, "problem.n: expected int"),
        (("n",), 2**63, "problem.n: expected an integer of 64 bits"),
        (("n",), KeyError, "problem.n: missing"),
        (("extra",), 1, "problem.extra: unknown field of Matmul"),
        (("precision",), "fp8", "problem.precision: 'fp8' is none of"),
        (("batch",), [1], "problem.batch: expected 2 entries, got 1"),
        (("a", "strides", 1), None, r"problem.a.strides\[1\]: expected int"),
        (("a",), [], "problem.a: expected an object"),
        (("epilogue", "expression", "operation"), "Boom", "problem.epilogue.expression: KeyError"),
        (
            ("epilogue", "expression", "arguments"),
            [],
            "problem.epilogue.expression: ValueError: Min takes 2",
        ),
    ],
)
def test_names_the_field_that_is_wrong(path: tuple[Any, ...], value: Any, field: str) -> None:
    with pytest.raises(PlanError, match=field):
        decode(_changed(path, value), Problem, "problem")  # type: ignore[arg-type]


@pytest.mark.parametrize("grid", [["boom", 1, 2], [1, 2], None, 1.5, True, ["sum", 1]])
def test_refuses_what_is_no_dimension_expression(grid: Any) -> None:
    data = {"bytes": grid}
    from wpk.launch import WorkspaceArgument

    with pytest.raises(PlanError, match=r"w\.bytes"):
        decode(data, WorkspaceArgument, "w")


def test_equal_values_have_equal_json() -> None:
    one = Elementwise(
        Extent(4), (4,), Operand(0), (Tensor(DType.FP32, (1,)),), Tensor(DType.FP32, (1,))
    )
    two = Elementwise(
        Extent(4), (4,), Operand(0), (Tensor(DType.FP32, (1,)),), Tensor(DType.FP32, (1,))
    )
    assert json.dumps(encode(one, Problem)) == json.dumps(encode(two, Problem))
