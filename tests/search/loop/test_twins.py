"""Twins: problems that differ in numbers only, of which that of most operators is tuned."""

from types import SimpleNamespace
from typing import Any

from wpk.dtypes import DType
from wpk.expression import Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Elementwise, Tensor
from wpk.search.loop.result import Stop, TuningResult
from wpk.search.loop.twins import SHARED, of_all_twins, twins_of


def scaled(scale: float, dtype: DType = DType.INT8, row: int = 40) -> Elementwise:
    """Elements by a number."""
    tensor = Tensor(dtype, (row, 1))
    formula = apply("Mul", Operand(0), Scalar(scale))
    return Elementwise(Extent(3), (3, row), formula, (tensor,), tensor)


def operators(*problems: Elementwise) -> list[Any]:
    return [SimpleNamespace(problem=problem) for problem in problems]


def test_the_problem_of_most_operators_is_tuned() -> None:
    few, many, other = scaled(0.5), scaled(0.25), scaled(0.5, row=80)
    found = twins_of(operators(few, other, many, many), {few, many, other})
    assert dict(found) == {many: (many, few), other: (other,)}


def test_of_several_with_as_many_operators_the_first_is_tuned() -> None:
    first, second = scaled(0.5), scaled(0.25)
    assert list(twins_of(operators(first, second), {first, second})) == [first]


def test_what_is_not_tuned_has_no_twins() -> None:
    named, other = scaled(0.5), scaled(0.25)
    assert dict(twins_of(operators(other, other, named), {named})) == {named: (named,)}


def test_numbers_of_what_is_not_quantised_tell_problems_apart() -> None:
    first, second = scaled(0.5, DType.FP16), scaled(0.25, DType.FP16)
    assert len(twins_of(operators(first, second), {first, second})) == 2


def test_twins_have_the_outcome_of_the_one_that_was_tuned_and_say_so() -> None:
    tuned, twin = scaled(0.5), scaled(0.25)
    result = TuningResult(tuned, True, (), (), 0, Stop.EXHAUSTED, ("miss",))
    found = of_all_twins({tuned: result}, {tuned: (tuned, twin)})
    assert found[tuned] is result
    assert found[twin].problem == twin
    assert found[twin].lookups == ("miss", SHARED)
