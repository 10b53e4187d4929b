"""Layers of a quantised network that differ in scales and zero points only share one kernel, which takes the numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects import problems
from support.problems.attentions import attention
from support.problems.warpgroup_layers import limited

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Apply, Expression, Operand, Quantised, Round, Scalar, apply
from wpk.extent import Extent
from wpk.launch import SizeArgument
from wpk.problems import (
    Elementwise,
    Epilogue,
    Matmul,
    Normalisation,
    NormKind,
    Problem,
    Tensor,
    lifted,
)
from wpk.problems.lifted import Lifted
from wpk.problems.quantisation import restored_quantisation_of
from wpk.schedules import TEMPLATE_OF, packings, single_kernel
from wpk.search.models.static_search import shortlist_all
from wpk.targets import find_target

TARGET = find_target("h100")
FIRST, SECOND = (0.0312, 131.0), (0.5, 7.0)
"""A scale and a zero point each; by the second, halves are ties."""


def quantised(expression: Expression, scale: float, zero: float) -> Expression:
    """What QuantizeLinear makes of a number: to nearest, ties to even, within a byte."""
    steps = apply("Add", apply("RoundEven", apply("Div", expression, Scalar(scale))), Scalar(zero))
    return Round(DType.UINT8, apply("Min", apply("Relu", steps), Scalar(255.0)))


def product(scale: float, zero: float) -> Matmul:
    """A product of bytes with a scale for each column, quantised again."""
    plain = problems.matmul(24, 32, 64)
    a, y = (problems.rows(DType.UINT8, columns) for columns in (64, 32))
    of_columns = Tensor(DType.FP32, (0, 0, 0, 1))
    told = quantised(apply("Mul", Acc(), Operand(0)), scale, zero)
    given = {"a": a, "b": problems.rows(DType.INT8, 32), "y": y}
    return replace(plain, precision=Precision.INT8, epilogue=Epilogue(told, (of_columns,)), **given)


def requantised(scale: float, zero: float) -> Elementwise:
    """Bytes that are restored, added to others, and quantised."""
    of_bytes = Tensor(DType.UINT8, (600, 1))
    restored = apply("Mul", apply("Sub", Operand(0), Scalar(zero)), Scalar(2 * scale))
    twice = apply("Mul", restored, apply("Sigmoid", restored))
    told = quantised(apply("Add", twice, Operand(1)), scale, zero)
    return Elementwise(Extent(3), (3, 600), told, (of_bytes, of_bytes), of_bytes)


def normalised(scale: float, zero: float) -> Normalisation:
    """The softmax of restored bytes, quantised."""
    of_bytes = Tensor(DType.UINT8, (80, 1))
    restored = apply("Mul", apply("Sub", Operand(0), Scalar(zero)), Scalar(scale / 8))
    told = Epilogue(quantised(Acc(), scale / 100, zero))
    rows = (Extent(7), (7,), 80, 0.0, restored, (of_bytes,), of_bytes)
    return Normalisation(NormKind.SOFTMAX, *rows, told)


def sources(problem: Problem) -> list[Any]:
    """The kernels that the models like best of each template, with their launches."""
    found = []
    for shortlist in shortlist_all(problem, TEMPLATE_OF.values(), TARGET).templates:
        template, schedule = shortlist.template, shortlist.ranked[0].schedule
        (source,), (launch,) = (
            template.instantiate(problem, schedule),
            template.launches(problem, schedule),
        )
        found.append((template, schedule, source, launch))
    return found


@pytest.mark.parametrize("make", [product, requantised, normalised])
def test_layers_that_differ_in_numbers_only_share_their_kernels(make: Any) -> None:
    first, second = make(*FIRST), make(*SECOND)
    assert first != second
    assert lifted(first).problem == lifted(second).problem
    for one, other in zip(sources(first), sources(second), strict=True):
        assert one[2] == other[2], "one source"
        assert one[3] != other[3], "launched with other numbers"
        kept = [each for each in one[3].arguments if not isinstance(each, SizeArgument)]
        assert kept == [each for each in other[3].arguments if not isinstance(each, SizeArgument)]


def test_layers_of_other_structure_share_nothing() -> None:
    without_zero = replace(
        product(*FIRST),
        epilogue=Epilogue(apply("Div", Acc(), Scalar(0.5)), product(*FIRST).epilogue.operands),
    )
    assert lifted(product(*FIRST)).problem != lifted(without_zero).problem


def test_numbers_stand_where_the_kernel_looks_for_operands() -> None:
    limited_problem = limited(problems.convolution(8, 8, 6, bias=DType.FP32))
    epilogue = limited_problem.epilogue
    told = Epilogue(quantised(epilogue.expression, *FIRST), epilogue.operands)
    problem = replace(limited_problem, epilogue=told)
    found = restored_quantisation_of(told.expression)
    assert found is not None
    assert lifted(problem).inputs == (0, 1, 2, *found.numbers(), 3, 4)
    assert lifted(normalised(*FIRST)).inputs[:3] == (0, 131.0, 0.0312 / 8)


def test_attention_keeps_its_numbers() -> None:
    scaled = attention(8, 8, 16, scale=0.25, batch=(1, 3))
    tensors = {name: replace(getattr(scaled, name), dtype=DType.FP8_E4M3) for name in "qkv"}
    quantised = replace(scaled, precision=Precision.FP8_E4M3, **tensors)
    assert lifted(quantised).problem is quantised


def test_numbers_of_what_is_not_quantised_stay_in_the_kernel() -> None:
    tensor = Tensor(DType.FP16, (600, 1))
    problem = Elementwise(
        Extent(3), (3, 600), apply("Mul", Operand(0), Scalar(0.1)), (tensor,), tensor
    )
    assert lifted(problem).problem is problem
    assert all("float c0" not in source.text for _, _, source, _ in sources(problem))


def test_numbers_that_say_what_is_computed_stay() -> None:
    tensor = Tensor(DType.INT8, (600, 1))
    powered = apply("Pow", apply("Max", Operand(0), Scalar(float("-inf"))), Scalar(2.0))
    expression = apply("Mul", powered, Scalar(3.0))
    problem = Elementwise(Extent(3), (3, 600), expression, (tensor,), tensor)
    assert lifted(problem).numbers == (3.0,)
    assert lifted(problem).problem.expression == apply("Mul", powered, Operand(1))


def test_equal_parts_of_an_expression_share_their_numbers() -> None:
    problem = requantised(*FIRST)
    numbers = lifted(problem).numbers
    assert numbers[:2] == pytest.approx((131.0, 0.0624))
    assert numbers[2:4] == pytest.approx((-131.0 * 0.0312, 124.0 * 0.0312))
    assert sum(numbers[4:6]) == pytest.approx(1 / 0.0312)
    assert len(numbers) == 8
    assert isinstance(lifted(problem).problem.expression, Quantised)


def test_what_is_quantised_and_restored_at_once_has_no_zero_point() -> None:
    tensor = Tensor(DType.FP32, (600, 1))
    steps = apply("Add", quantised(apply("Relu", Operand(0)), 0.0312, 131.0), Scalar(-131.0))
    problem = Elementwise(Extent(3), (3, 600), apply("Mul", steps, Scalar(0.5)), (tensor,), tensor)
    (restored, _) = lifted(problem).problem.expression.arguments
    assert isinstance(restored, Quantised)
    assert not restored.is_moved


@pytest.mark.parametrize(
    ("scale", "numbers"),
    [
        (-0.5, (-0.5, -1.0)),
        (2.0**-70, ()),
        (0.0018692028243094683, (0.0018692028243094683, 267.493878)),
    ],
)
def test_other_scales_are_divided_by(scale: float, numbers: tuple[float, ...]) -> None:
    tensor = Tensor(DType.UINT8, (600, 1))
    told = quantised(Operand(0), scale, 7.0)
    found = lifted(Elementwise(Extent(3), (3, 600), told, (tensor,), tensor))
    assert isinstance(found.problem.expression, Quantised)
    assert isinstance(found.problem.expression.argument, Apply)
    assert found.problem.expression.argument.operation == "Div"
    assert found.numbers == pytest.approx((*numbers, -7, 248, 1, 2.0**-24, -7, 7))


def test_zero_points_that_are_no_integers_are_added_as_they_stand() -> None:
    tensor = Tensor(DType.UINT8, (600, 1))
    told = quantised(Operand(0), 0.5, 7.5)
    found = lifted(Elementwise(Extent(3), (3, 600), told, (tensor,), tensor))
    assert not isinstance(found.problem.expression, Quantised)


def with_literals(problem: Problem) -> Lifted[Problem]:
    """What kernels were made of before they took numbers."""
    return Lifted(problem, tuple(range(len(problem.reads()))))


def operands(template: Any, schedule: Any, problem: Problem, execution: Any) -> list[Any]:
    """Drawn bytes, and scales of columns such that many quotients are ties."""
    rng = np.random.default_rng(3)
    drawn = [rng.integers(0, 256, each.sizes) for each in problem.reads() if each is not None]
    if not isinstance(problem, Matmul):
        tensors = [each.tensor for each in problem.reads() if each is not None]
        return [execution.memory(*each) for each in zip(tensors, drawn, strict=True)]
    weight = rng.integers(-128, 128, (problem.k, problem.n)).astype(np.int8)
    scales = 2.0 ** -rng.integers(9, 16, (1, 1, 1, problem.n)).astype(np.float64)
    (of_columns,) = problem.epilogue.operands
    return [
        execution.memory(problem.a, drawn[0]),
        packings.pack(template.packing(problem, schedule), weight, problem),
        execution.memory(of_columns, scales),
    ]


@pytest.mark.parametrize("make", [product, requantised, normalised])
@pytest.mark.parametrize("numbers", [FIRST, SECOND])
def test_numbers_as_arguments_give_the_bits_of_literals(
    make: Any, numbers: tuple[float, float], checking_execution: Any, monkeypatch: Any
) -> None:
    problem = make(*numbers)
    shape = problem.writes()[0].sizes
    for template, schedule, source, _ in sources(problem):
        memory = operands(template, schedule, problem, checking_execution)
        y = checking_execution.run(template, problem, schedule, memory, shape)
        with monkeypatch.context() as before:
            before.setattr(single_kernel, "lifted", with_literals)
            (literal,) = template.instantiate(problem, schedule)
            expected = checking_execution.run(template, problem, schedule, memory, shape)
        assert literal != source
        assert np.array_equal(y, expected)
        assert len(np.unique(y)) > 20, "not all of it saturates"
        other = make(*(SECOND if numbers == FIRST else FIRST))
        assert not np.array_equal(
            y, checking_execution.run(template, other, schedule, memory, shape)
        )
