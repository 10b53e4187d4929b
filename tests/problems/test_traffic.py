"""What problems touch and compute, counted by hand over several axes."""

from dataclasses import replace

import pytest

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Elementwise, Epilogue, Normalisation, Pad, Reduction, Tensor
from wpk.problems.movement import PadMode
from wpk.problems.normalisation import NormKind
from wpk.problems.reduction import ReduceKind


def test_elements_count_their_distinct_operands_and_what_each_computes() -> None:
    row, whole = Tensor(DType.FP16, (0, 0, 1)), Tensor(DType.FP16, (35, 7, 1))
    problem = Elementwise(
        Extent(3), (3, 5, 7), apply("Relu", apply("Div", Operand(0), Operand(1))), (whole, row), whole
    )  # fmt: skip
    found = problem.traffic()
    assert found.bytes == 2 * (2 * 3 * 5 * 7 + 7)
    assert (found.products, found.others) == (0, 3 * 5 * 7 * (4 + 1))
    assert replace(problem, leading=Extent(2)).traffic().others == 2 * 5 * 7 * (4 + 1)


@pytest.mark.parametrize(
    ("kind", "operations"),
    [
        # Maximum, subtraction, exponential (8), sum, and multiplication or subtraction.
        (NormKind.SOFTMAX, 1 + 1 + 8 + 1 + 1),
        (NormKind.LOG_SOFTMAX, 1 + 1 + 8 + 1 + 1),
        # Sum, subtraction, square and its sum, multiplication; the second without the first two.
        (NormKind.LAYER, 1 + 1 + 2 + 1),
        (NormKind.RMS, 2 + 1),
    ],
)
def test_rows_of_every_kind_count_over_all_their_axes(kind: NormKind, operations: int) -> None:
    x, y, row = (Tensor(DType.FP16, strides) for strides in ((42, 14, 1), (24, 8, 1), (0, 0, 1)))
    doubled = apply("Add", Operand(0), Operand(0))
    scaled = Epilogue(apply("Mul", apply("Abs", Acc()), Operand(0)), (row,))
    norm = Normalisation(kind, Extent(2), (2, 3), 8, 0.0, doubled, (x,), y, scaled)
    found = norm.traffic()
    assert found.bytes == 2 * (2 * 2 * 3 * 8 + 8)
    assert (found.products, found.others) == (0, 2 * 3 * 8 * (operations + 1 + 2))
    grown = replace(norm, leading=Extent(5)).traffic()
    assert grown.others == 5 * 3 * 8 * (operations + 1 + 2)


def test_sums_read_all_their_axes_and_write_the_outer_ones() -> None:
    x, y = Tensor(DType.FP16, (120, 40, 8, 1)), Tensor(DType.FP32, (3, 1))
    square = apply("Mul", Operand(0), Operand(0))
    halved = Epilogue(apply("Mul", apply("Abs", Acc()), Operand(0)), (Tensor(DType.FP32, (0, 1)),))
    total = Reduction(ReduceKind.SUM, Extent(2), (2, 3), (5, 7), square, (x,), y, halved)
    found = total.traffic()
    assert found.bytes == 2 * (2 * 3 * 5 * 7) + 4 * (2 * 3 + 3)
    # An element is squared and added; a sum is made positive and halved.
    assert (found.products, found.others) == (0, 2 * (2 * 3 * 5 * 7) + 2 * (2 * 3))
    grown = replace(total, leading=Extent(4)).traffic()
    assert grown.others == 2 * (4 * 3 * 5 * 7) + 2 * (4 * 3)


@pytest.mark.parametrize(
    ("columns", "begin", "result", "read"),
    [
        (10, -3, 20, 7),  # the beginning is cut off
        (10, 10, 15, 5),  # the result ends before
        (10, -2, 6, 6),  # both
        (10, 1, 30, 10),
        (10, 12, 12, 1),  # nothing but padding: one value is still read
        (10, -12, 12, 1),
    ],
)
def test_padding_reads_what_lies_in_the_result(
    columns: int, begin: int, result: int, read: int
) -> None:
    x, y = (
        Tensor(DType.FP32, (4 * columns, columns, 1)),
        Tensor(DType.FP32, (4 * result, result, 1)),
    )
    problem = Pad(
        leading=Extent(3), x_shape=(3, 4, columns), y_shape=(3, 4, result), begin=(0, 0, begin),
        mode=PadMode.CONSTANT, value=0.0, x=x, y=y,
    )  # fmt: skip
    assert problem.traffic().bytes == 4 * 3 * 4 * (result + read)
