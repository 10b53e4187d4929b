"""Problems and expressions in words."""

from dataclasses import replace

import pytest
from support.problems.feed_forwards import feed_forward

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, Round, Scalar, apply
from wpk.extent import Extent
from wpk.problems import (
    Attention,
    Convolution,
    Elementwise,
    Epilogue,
    Matmul,
    NormKind,
    Problem,
    Resize,
    Tensor,
)
from wpk.problems.expression_words import epilogue_words, formula
from wpk.problems.movement import NearestMode, ResizeCoordinates, ResizeMode
from wpk.problems.signs import MINUS, TIMES

FULL = Tensor(DType.FP16, (200704, 1, 3584, 64))
VECTOR = Tensor(DType.FP16, (0, 1, 0, 0))
CONV = Convolution(
    precision=Precision.FP16,
    n=Extent(1),
    c=64,
    h=56,
    w=56,
    k=128,
    p=56,
    q=56,
    filter=(3, 3),
    stride=(1, 1),
    dilation=(1, 1),
    pad=(1, 1),
    groups=1,
    transposed=False,
    x=FULL,
    y=FULL,
    epilogue=Epilogue(apply("Relu", apply("Add", Acc(), Operand(0))), (FULL,)),
)
MATMUL = Matmul(
    precision=Precision.FP16,
    batch=(Extent(2, "batch"), 12),
    m=Extent(64),
    n=32,
    k=128,
    a=FULL,
    b=FULL,
    b_constant=False,
    y=FULL,
    epilogue=Epilogue(),
)


ATTENTION = Attention(
    precision=Precision.FP16,
    batch=(Extent(2, "batch"), 12),
    queries=64,
    keys=128,
    depth=32,
    width=32,
    q=FULL,
    k=FULL,
    v=FULL,
    scores=Epilogue(),
    empty_rows_are_zero=False,
    y=FULL,
)


DOUBLED = Resize(
    *(ResizeMode.NEAREST, ResizeCoordinates.ASYMMETRIC, NearestMode.FLOOR, Extent(8)),
    *(64, 7, 7, 14, 14, (2.0, 2.0), FULL, FULL),
)


def plain(words: str) -> str:
    return words.replace(TIMES, "x").replace(MINUS, "-")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (CONV, "conv 3x3/1 64→128 56² +res relu"),
        (
            feed_forward(70, 48, 192, norm=NormKind.LAYER),
            "feed-forward 70x48→192→48 (+bias gelu) +bias +res of layer-normed rows",
        ),
        (
            feed_forward(70, 48, 96, n=24, activation="none", residual=False, free="n"),
            "feed-forward nx48→96→24 (+bias) +bias",
        ),
        (replace(CONV, stride=(2, 1), q=28), "conv 3x3/2x1 64→128 56x28 +res relu"),
        (replace(CONV, n=Extent(1, "n")), "conv 3x3/1 64→128 56² +res relu batch n"),
        (replace(CONV, n=Extent(1, "batch")), "conv 3x3/1 64→128 56² +res relu any batch"),
        (replace(CONV, groups=4), "conv 3x3/1 64→128 56² 4 groups +res relu"),
        (replace(CONV, groups=64, k=64), "depthwise conv 3x3/1 64ch 56² +res relu"),
        (replace(CONV, transposed=True), "transposed conv 3x3/1 64→128 56² +res relu"),
        (replace(CONV, dilation=(2, 2)), "conv 3x3/1 64→128 56² dilation 2 +res relu"),
        (DOUBLED, "resize (nearest) 64ch 7² → 14² batch 8"),
        (MATMUL, "matmul batchx12 of 64x128 · 128x32"),
        (ATTENTION, "attention batchx12 of 64x32 · 128 keys"),
        (
            replace(ATTENTION, width=16, scores=Epilogue(apply("Add", Acc(), Operand(0)), (FULL,))),
            "attention batchx12 of 64x32 · 128 keys · 128x16 softmax of sum + a",
        ),
    ],
)
def test_says_what_a_problem_computes(problem: Problem, words: str) -> None:
    assert plain(problem.words()) == words


SILU = apply("Mul", Acc(), apply("Sigmoid", Acc()))
GELU = apply(
    "Mul",
    apply("Mul", Acc(), Scalar(0.5)),
    apply("Add", apply("Erf", apply("Div", Acc(), Scalar(1.414))), Scalar(1.0)),
)
CLIPPED = apply("Min", apply("Relu", Acc()), Scalar(6.0))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (Acc(), ""),
        (apply("Add", Acc(), Operand(1)), "+bias"),
        (apply("Mul", Operand(1), Acc()), "xscale"),
        (apply("Sub", Operand(0), Acc()), "-tensor reversed"),
        (CLIPPED, "relu6"),
        (apply("Min", apply("Relu", Acc()), Scalar(60.0)), "relu min 60"),
        (SILU, "silu"),
        (GELU, "gelu"),
        (apply("Add", SILU, Operand(0)), "silu +res"),
        (Round(DType.FP16, apply("Tanh", Acc())), "tanh to fp16"),
        (apply("Max", Acc(), apply("Neg", Acc())), "max(sum, neg(sum))"),
    ],
)
def test_says_what_an_epilogue_adds(expression: Expression, words: str) -> None:
    assert plain(epilogue_words(Epilogue(expression, (FULL, VECTOR)))) == words


def test_writes_element_wise_work_as_a_formula() -> None:
    expression = apply("Mul", apply("Add", Operand(0), Operand(1)), Scalar(0.5))
    assert plain(formula(expression)) == "(a + b) x 0.5"


def test_writes_rounding_as_a_call_and_operands_past_z_by_number() -> None:
    rounded = Round(DType.FP16, apply("Mul", Operand(25), Operand(26)))
    assert plain(formula(rounded)) == "fp16(z x x26)"


def test_shortens_long_formulas() -> None:
    expression: Expression = Operand(0)
    for _ in range(40):
        expression = apply("Tanh", expression)
    assert len(formula(expression)) == 48
    assert formula(expression).endswith("…")


@pytest.mark.parametrize(
    ("strides", "dtype", "words"),
    [
        ((12, 4, 1), DType.FP16, "copy 2x3x4"),
        ((12, 1, 3), DType.FP16, "transpose 2x3x4"),
        ((0, 4, 1), DType.FP16, "expand 2x3x4"),
        ((12, 4, 1), DType.FP32, "cast fp32→fp16 2x3x4"),
    ],
)
def test_tells_movement_by_its_strides(strides: tuple[int, ...], dtype: DType, words: str) -> None:
    y = Tensor(DType.FP16, (12, 4, 1))
    problem = Elementwise(Extent(2), (2, 3, 4), Operand(0), (Tensor(dtype, strides),), y)
    assert plain(problem.words()) == words
    assert problem.family == "movement"
