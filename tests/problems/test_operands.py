"""What problems say of single operands: tables that they index, and what is divided by them."""

from wpk.dtypes import DType
from wpk.expression import Expression, Operand, Round, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Elementwise, Gather, Tensor

ROWS = Tensor(DType.FP32, (8, 1))


def test_an_index_is_below_the_size_of_its_table() -> None:
    index = Tensor(DType.INT64, (0, 1))
    y = Tensor(DType.FP32, (0, 8, 1))
    picked = Gather(Extent(1), 20, Extent(5), 8, y, index, y)
    assert [picked.table_size(operand) for operand in (0, 1)] == [0, 20]
    assert _elements(Operand(1)).table_size(1) == 0


def test_divisors_are_found_wherever_something_is_divided() -> None:
    quotient = apply("Div", Operand(0), apply("Add", Operand(1), Scalar(1.0)))
    rest = Round(DType.FP16, apply("Mod", quotient, Operand(2)))
    assert sorted(_elements(apply("Mul", rest, Operand(3))).divisors()) == [1, 2]
    assert not list(_elements(apply("Mul", Operand(0), Operand(1))).divisors())


def _elements(expression: Expression) -> Elementwise:
    return Elementwise(Extent(3), (3, 8), expression, (ROWS,) * 4, ROWS)
