"""Dataclasses to JSON and back, strictly."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import pytest

from wpk.codec import encode, kinds_of
from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType, Precision
from wpk.errors import PlanError
from wpk.expression import Acc, Operand, Round, Scalar, apply
from wpk.extent import Extent
from wpk.launch import Launch, OutputArgument, SizeArgument
from wpk.plan.fields import decode
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
    assert decode(json.loads(text), Problem, "problem") == MATMUL  # type: ignore[type-abstract]


def test_a_field_that_may_lack_is_left_out_where_it_has_its_default() -> None:
    plain = Tensor(DType.FP16, (1,))
    known = replace(plain, constant=True)
    assert "constant" not in encode(plain, Tensor)
    assert decode(encode(known, Tensor), Tensor, "y") == known
    with pytest.raises(PlanError, match=r"y\.constant: is false, and then is left out"):
        decode({**encode(plain, Tensor), "constant": False}, Tensor, "y")


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
    kinds = [kind for kind in kinds_of(Problem) if kind.__module__.startswith("wpk.")]
    assert len({kind.__name__ for kind in kinds}) == len(kinds) == 25
    assert all("type" not in kind.__dataclass_fields__ for kind in kinds)


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
        (
            ("epilogue", "expression", "arguments", 0),
            {"type": "Scalar", "value": 10**400},
            r"arguments\[0\].value: expected a number",
        ),
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
        decode(_changed(path, value), Problem, "problem")  # type: ignore[type-abstract]


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


@dataclass(frozen=True)
class Leaf:
    """A class inside another."""

    number: float


@dataclass(frozen=True)
class Other:
    """One that may stand in its place."""

    number: float


@dataclass(frozen=True)
class Everything:
    """A field of every kind that is not a problem's."""

    number: float
    whole: int
    flag: bool
    word: str
    table: dict[str, tuple[int, ...]]
    pair: tuple[int, str]
    perhaps: Leaf | None
    one_of: Leaf | Other
    absent: int | None


EVERYTHING = Everything(
    0.1, -(2**63) + 1, False, "true", {"b": (), "a": (1, 2)}, (3, "x"), Leaf(2.0), Other(-1.5), None
)


def test_fields_of_every_kind_survive_json_and_tables_are_sorted() -> None:
    data = json.loads(json.dumps(encode(EVERYTHING, Everything)))
    assert list(data["table"]) == ["a", "b"]
    assert data["perhaps"] == {"number": 2.0}  # nothing else may stand there
    assert data["one_of"] == {"type": "Other", "number": -1.5}
    assert data["flag"] is False
    assert decode(data, Everything, "it") == EVERYTHING
    for perhaps in (None, Leaf(0.0)):
        changed = replace(EVERYTHING, perhaps=perhaps)
        assert decode(encode(changed, Everything), Everything, "it") == changed


@pytest.mark.parametrize("number", [3, -3, 2**63 - 1, -(2**63) + 1])
def test_a_whole_number_is_read_as_a_float_where_one_is_expected(number: int) -> None:
    value = decode({"number": number}, Leaf, "leaf").number
    assert type(value) is float
    assert value == float(number)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("number", True, "expected a number, got True"),
        ("number", "1.5", "expected a number"),
        ("number", "Infinity", "expected a number"),
        ("number", 2**63, "expected a number"),
        ("number", -(2**63), "expected a number"),
        ("number", None, "expected a number"),
        ("whole", 1.0, "expected int"),
        ("whole", 2**63, "64 bits"),
        ("whole", -(2**63), "64 bits"),
        ("flag", 0, "expected bool"),
        ("flag", "false", "expected bool"),
        ("word", 1, "expected str"),
        ("word", None, "expected str"),
        ("table", [], "expected an object"),
        ("table", {"a": [1.5]}, r"it\.table\.a\[0\]: expected int"),
        ("pair", [3], "expected 2 entries, got 1"),
        ("pair", [3, "x", 4], "expected 2 entries, got 3"),
        ("pair", {"0": 3}, "expected an array"),
        ("pair", "3x", "expected an array"),
        ("perhaps", {"type": "Leaf", "number": 1.0}, "unknown field"),
        ("one_of", {"number": 1.0}, "an object with a type"),
        ("one_of", [], "an object with a type"),
        ("one_of", None, "an object with a type"),
        ("one_of", {"type": "Everything", "number": 1.0}, "is none of Leaf, Other"),
        ("absent", "none", "expected int"),
    ],
)
def test_refuses_what_another_kind_of_field_would_take(
    field: str, value: object, message: str
) -> None:
    data = {**encode(EVERYTHING, Everything), field: value}
    with pytest.raises(PlanError, match=message):
        decode(data, Everything, "it")


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (Leaf(1.0), Other),
        (Everything, Leaf | Other),
        (3, Leaf | Other),
        (object(), object),
        ({1}, set[int]),
    ],
)
def test_a_writer_is_told_of_values_that_do_not_fit(value: object, hint: Any) -> None:
    with pytest.raises(TypeError):
        encode(value, hint)
