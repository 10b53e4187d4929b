"""Which elements problems touch, written down by hand."""

from dataclasses import replace

import pytest

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.plans.footprint import accesses, span_bytes
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Elementwise,
    Epilogue,
    Normalisation,
    Tensor,
)
from wpk.problems.normalisation import NormKind

N = Extent(2, "n")
FREE = {"n": 5}


def tensor(*strides: int, dtype: DType = DType.FP16) -> Tensor:
    return Tensor(dtype, strides)


CONVOLUTION = Convolution(
    precision=Precision.FP16,
    n=N,
    c=8,
    h=5,
    w=7,
    k=16,
    p=3,
    q=5,
    filter=(3, 3),
    stride=(1, 1),
    dilation=(1, 1),
    pad=(0, 0),
    groups=1,
    transposed=False,
    x=tensor(280, 1, 56, 8),
    y=tensor(240, 1, 80, 16),
    epilogue=Epilogue(apply("Add", Acc(), Operand(0)), (tensor(0, 1, 0, 0),)),
)


def test_a_convolution_reads_its_input_its_packed_filters_and_operands_over_the_output() -> None:
    inputs, output = accesses(CONVOLUTION)
    domain = (N.expression, 16, 3, 5)
    assert inputs == (
        (CONVOLUTION.x, (N.expression, 8, 5, 7)),
        None,
        (CONVOLUTION.epilogue.operands[0], domain),
    )
    assert output == (CONVOLUTION.y, domain)


def test_limits_of_a_clamped_convolution_lie_over_its_input() -> None:
    fields = {name: getattr(CONVOLUTION, name) for name in Convolution.__dataclass_fields__}
    lower, upper, over = tensor(0, 1, 0, 0), tensor(0, 0, 0, 0), (N.expression, 8, 5, 7)
    both, one = (ClampedConvolution(**fields, lower=lower, upper=each) for each in (upper, None))
    assert accesses(both)[0] == (*accesses(CONVOLUTION)[0], (lower, over), (upper, over))
    assert accesses(one)[0] == (*accesses(CONVOLUTION)[0], (lower, over))


def test_rows_are_read_and_written_over_all_their_axes() -> None:
    x, w, y = tensor(24, 8, 1), tensor(0, 0, 1), tensor(48, 16, 1)
    epilogue = Epilogue(apply("Mul", Acc(), Operand(0)), (w,))
    softmax = Normalisation(NormKind.SOFTMAX, N, (2, 3), 8, 0.0, Operand(0), (x, w), y, epilogue)
    domain = (N.expression, 3, 8)
    assert accesses(softmax) == (((x, domain), (w, domain), (w, domain)), (y, domain))


@pytest.mark.parametrize(
    ("strides", "sizes", "dtype", "bytes_"),
    [
        ((8, 1), ("n", 8), DType.FP32, (4 * 8 + 7 + 1) * 4),
        ((8, 2), ("n", 3), DType.FP16, (4 * 8 + 2 * 2 + 1) * 2),
        ((0, 1), ("n", 3), DType.INT8, 3),
        ((7, 7), (1, 1), DType.INT64, 8),
        ((), (), DType.FP32, 4),
    ],
)
def test_a_span_ends_behind_the_last_element(
    strides: tuple[int, ...], sizes: tuple[int | str, ...], dtype: DType, bytes_: int
) -> None:
    assert span_bytes((tensor(*strides, dtype=dtype), sizes), FREE) == bytes_


def test_elements_are_read_where_they_are_written() -> None:
    x, y = tensor(24, 8, 1), tensor(48, 16, 1)
    problem = Elementwise(N, (2, 3, 8), apply("Neg", Operand(0)), (x,), y)
    domain = (N.expression, 3, 8)
    assert accesses(problem) == (((x, domain),), (y, domain))
    assert accesses(replace(problem, shape=(2, 8)))[1] == (y, (N.expression, 8))
