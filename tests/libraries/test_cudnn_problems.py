"""Problems as cuDNN's graphs: padding, broadcasting, batches, layouts, and reasons for refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from subjects.problems import convolution

from wpk.dtypes import ASKED, DType, Precision
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.libraries.cudnn_description import ConvolutionNode, GraphTensor
from wpk.libraries.cudnn_problems import describe, why_not
from wpk.problems import (
    Epilogue,
    Matmul,
    Normalisation,
    Problem,
    Tensor,
)
from wpk.problems.normalisation import NormKind

FP16 = DType.FP16
BIAS = apply("Add", Acc(), Operand(0))


def _image(c: int, h: int, w: int, dtype: DType = FP16) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


CONVOLUTION = convolution(8, 16, (10, 9), n=2, bias=FP16)

MATMUL = Matmul(
    *(Precision.FP16, (Extent(2), 3), Extent(5), 7, 11),
    *(Tensor(FP16, (165, 55, 11, 1)), Tensor(FP16, (0, 0, 7, 1)), True),
    *(Tensor(FP16, (105, 35, 7, 1)), Epilogue(BIAS, (Tensor(FP16, (0, 0, 0, 1)),))),
)

NORM = Normalisation(
    *(NormKind.LAYER, Extent(2), (2, 3), 8, 1e-5, Operand(0), (Tensor(FP16, (24, 8, 1)),)),
    Tensor(FP16, (24, 8, 1)),
    Epilogue(
        apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1)), (Tensor(FP16, (0, 0, 1)),) * 2
    ),
)


def test_broadcast_axes_have_extent_one() -> None:
    (description,) = describe(CONVOLUTION)
    x, w, bias = description.inputs
    assert x == GraphTensor((2, 8, 10, 9), (720, 1, 72, 8), FP16)
    assert w == GraphTensor((16, 8, 3, 3), (72, 1, 24, 8), FP16)
    assert bias == GraphTensor((1, 16, 1, 1), (16, 1, 16, 16), FP16)
    assert description.layout == "krsc"


def test_filters_follow_the_layout_of_the_image() -> None:
    first = Tensor(FP16, (720, 90, 9, 1))
    (description,) = describe(replace(CONVOLUTION, x=first))
    assert description.layout == "kcrs"
    assert description.inputs[1].strides == (72, 9, 3, 1)


@pytest.mark.parametrize(
    ("pad", "stride", "p", "q", "after"),
    [
        ((1, 1), (1, 1), 10, 9, (1, 1)),
        ((0, 2), (1, 1), 9, 9, (1, 0)),  # asymmetric
        ((1, 1), (2, 2), 5, 5, (1, 1)),  # 10 rows: one after the last window is not read
        ((0, 0), (2, 2), 4, 4, (0, 0)),
    ],
)
def test_padding_after_is_what_the_output_needs(
    pad: tuple[int, int], stride: tuple[int, int], p: int, q: int, after: tuple[int, int]
) -> None:
    problem = replace(CONVOLUTION, pad=pad, stride=stride, p=p, q=q, y=_image(16, p, q))
    (description,) = describe(problem)
    assert isinstance(description.node, ConvolutionNode)
    assert (description.node.before, description.node.after) == (pad, after)
    for axis, (size, out) in enumerate(((10, p), (9, q))):
        assert (size + pad[axis] + after[axis] - 3) // stride[axis] + 1 == out


def test_a_transposed_convolution_is_the_backward_one() -> None:
    problem = replace(CONVOLUTION, transposed=True, stride=(2, 2), p=20, q=18, y=_image(16, 20, 18))
    (description,) = describe(problem)
    assert isinstance(description.node, ConvolutionNode)
    assert description.node.backward
    assert description.inputs[1].dims == (8, 16, 3, 3)
    for out, size, after in zip((20, 18), (10, 9), description.node.after, strict=True):
        assert (out + 1 + after - 3) // 2 + 1 == size


def test_groups_are_in_the_filters() -> None:
    (description,) = describe(replace(CONVOLUTION, groups=4))
    assert description.inputs[1].dims == (16, 2, 3, 3)


def test_two_batch_axes_become_one_where_memory_allows() -> None:
    kn, nk = describe(MATMUL)
    assert [each.dims for each in kn.inputs] == [(6, 5, 11), (1, 11, 7), (1, 1, 7)]
    assert (kn.inputs[1].strides[1:], nk.inputs[1].strides[1:]) == ((7, 1), (1, 11))
    assert kn.output == GraphTensor((6, 5, 7), (35, 7, 1), FP16)


def test_split_heads_keep_two_batch_axes() -> None:
    heads = Tensor(FP16, (165, 11, 33, 1))
    kn, _ = describe(replace(MATMUL, a=heads))
    assert kn.inputs[0] == GraphTensor((2, 3, 5, 11), (165, 11, 33, 1), FP16)
    assert kn.inputs[1].dims == (1, 1, 11, 7)


def test_a_factor_that_is_no_constant_keeps_its_strides() -> None:
    transposed = Tensor(FP16, (231, 77, 1, 11))
    (description,) = describe(replace(MATMUL, b=transposed, b_constant=False))
    assert description.inputs[1] == GraphTensor((6, 11, 7), (77, 1, 11), FP16)
    assert description.layout is None


def test_only_strict_fp32_is_strict() -> None:
    for precision in ASKED:
        dtype = precision.storage
        problem = replace(
            CONVOLUTION, precision=precision, x=_image(8, 10, 9, dtype), epilogue=Epilogue()
        )
        assert describe(problem)[0].strict == (precision is Precision.FP32)


def test_both_orders_of_residual_and_bias_are_offered() -> None:
    residual = apply("Relu", apply("Add", BIAS, Operand(1)))
    operands = (Tensor(FP16, (0, 1, 0, 0)), _image(16, 10, 9))
    both = describe(replace(CONVOLUTION, epilogue=Epilogue(residual, operands)))
    assert [[a.index for a in d.steps[0].arguments] for d in both] == [[0, 1], [0, 2]]  # type: ignore[union-attr]


def test_rows_of_a_normalisation_are_one_axis() -> None:
    (description,) = describe(NORM)
    assert description.inputs[0] == GraphTensor((6, 8, 1, 1), (8, 1, 1, 1), FP16)
    assert [each.dims for each in description.inputs[1:]] == [(1, 8, 1, 1)] * 2


def _after(expression: Expression, *operands: Tensor) -> Epilogue:
    return Epilogue(expression, operands)


REFUSED: dict[str, Problem] = {
    "its input is fp32 and its filters fp16": replace(CONVOLUTION, x=_image(8, 10, 9, DType.FP32)),
    "reads only a part of its input": replace(CONVOLUTION, p=6, y=_image(16, 6, 9)),
    "does not write the 4 zeros": replace(
        CONVOLUTION, y=Tensor(FP16, (1800, 1, 180, 20), padding=4)
    ),
    "its output is int8": replace(CONVOLUTION, y=_image(16, 10, 9, DType.INT8)),
    "an operand of its epilogue is int32": replace(
        CONVOLUTION, epilogue=_after(BIAS, Tensor(DType.INT32, (0, 1, 0, 0)))
    ),
    "its epilogue holds RoundEven": replace(
        CONVOLUTION, epilogue=_after(apply("RoundEven", Acc()))
    ),
    "its factors are fp16 and fp32": replace(MATMUL, a=Tensor(DType.FP32, (165, 55, 11, 1))),
    "something before the normalisation": replace(NORM, prologue=apply("Abs", Operand(0))),
    "not a scale and a shift": replace(NORM, epilogue=_after(apply("Add", Acc(), Scalar(1.0)))),
    "not one vector for all rows": replace(
        NORM, epilogue=replace(NORM.epilogue, operands=(Tensor(FP16, (0, 8, 1)),) * 2)
    ),
    "do not follow each other evenly": replace(NORM, inputs=(Tensor(FP16, (30, 8, 1)),)),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_what_cudnn_cannot_say(reason: str) -> None:
    assert reason in (why_not(REFUSED[reason]) or "")
    with pytest.raises(ValueError, match=reason):
        describe(REFUSED[reason])


@pytest.mark.parametrize("problem", [CONVOLUTION, MATMUL, NORM])
def test_carries_the_plain_ones(problem: Problem) -> None:
    assert why_not(problem) is None


def test_refuses_sizes_that_are_decided_when_the_engine_runs() -> None:
    free = replace(CONVOLUTION, n=Extent(2, "batch"))
    assert "batch is free" in (why_not(free) or "")


def test_problems_of_fp64_are_refused_in_words() -> None:
    wide = replace(MATMUL, a=replace(MATMUL.a, dtype=DType.FP64), precision=Precision.FP64)
    assert why_not(wide) == "it has tensors of fp64: cuDNN is asked for 16 and 32 bits only"
