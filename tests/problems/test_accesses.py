"""Which elements problems touch, written down by hand."""

from dataclasses import replace

import pytest
from subjects.problems import convolution
from support.problems.attentions import HARD_SWISH, attention

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Epilogue,
    Gather,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Reduction,
    Resize,
    Tensor,
)
from wpk.problems.access import Access
from wpk.problems.movement import NearestMode, PadMode, ResizeCoordinates, ResizeMode
from wpk.problems.normalisation import NormKind
from wpk.problems.pooling import PoolKind
from wpk.problems.reduction import ReduceKind

N = Extent(2, "n")
FREE = {"n": 5}


def tensor(*strides: int, dtype: DType = DType.FP16) -> Tensor:
    return Tensor(dtype, strides)


CONVOLUTION = convolution(8, 16, (5, 7), pads=0, n=N, bias=DType.FP16)


def test_a_convolution_reads_its_input_its_packed_filters_and_operands_over_the_output() -> None:
    inputs, output = CONVOLUTION.accesses()
    domain = (N, 16, 3, 5)
    assert inputs == (
        Access(CONVOLUTION.x, (N, 8, 5, 7)),
        None,
        Access(CONVOLUTION.epilogue.operands[0], domain),
    )
    assert output == Access(CONVOLUTION.y, domain)


def test_limits_of_a_clamped_convolution_lie_over_its_input() -> None:
    fields = {name: getattr(CONVOLUTION, name) for name in Convolution.__dataclass_fields__}
    lower, upper, over = tensor(0, 1, 0, 0), tensor(0, 0, 0, 0), (N, 8, 5, 7)
    both, one = (ClampedConvolution(**fields, lower=lower, upper=each) for each in (upper, None))
    assert both.accesses()[0] == (
        *CONVOLUTION.accesses()[0],
        Access(lower, over),
        Access(upper, over),
    )
    assert one.accesses()[0] == (*CONVOLUTION.accesses()[0], Access(lower, over))


def test_rows_are_read_and_written_over_all_their_axes() -> None:
    x, w, y = tensor(24, 8, 1), tensor(0, 0, 1), tensor(48, 16, 1)
    epilogue = Epilogue(apply("Mul", Acc(), Operand(0)), (w,))
    softmax = Normalisation(NormKind.SOFTMAX, N, (2, 3), 8, 0.0, Operand(0), (x, w), y, epilogue)
    domain = (N, 3, 8)
    assert softmax.accesses() == (
        (Access(x, domain), Access(w, domain), Access(w, domain)),
        Access(y, domain),
    )


@pytest.mark.parametrize(
    ("strides", "sizes", "dtype", "bytes_"),
    [
        ((8, 1), (N, 8), DType.FP32, (4 * 8 + 7 + 1) * 4),
        ((8, 2), (N, 3), DType.FP16, (4 * 8 + 2 * 2 + 1) * 2),
        ((0, 1), (N, 3), DType.INT8, 3),
        ((7, 7), (1, 1), DType.INT64, 8),
        ((), (), DType.FP32, 4),
    ],
)
def test_a_span_ends_behind_the_last_element(
    strides: tuple[int, ...], sizes: tuple[int | Extent, ...], dtype: DType, bytes_: int
) -> None:
    assert Access(tensor(*strides, dtype=dtype), sizes).span_bytes(FREE) == bytes_


def test_elements_are_read_where_they_are_written() -> None:
    x, y = tensor(24, 8, 1), tensor(48, 16, 1)
    problem = Elementwise(N, (2, 3, 8), apply("Neg", Operand(0)), (x,), y)
    domain = (N, 3, 8)
    assert problem.accesses() == ((Access(x, domain),), Access(y, domain))
    assert replace(problem, shape=(2, 8)).accesses()[1] == Access(y, (N, 8))


def test_a_product_reads_its_packed_or_its_strided_second_factor() -> None:
    a, b, y = tensor(60, 20, 5, 1), tensor(105, 35, 7, 1), tensor(84, 28, 7, 1)
    bias = tensor(0, 0, 0, 1)
    product = Matmul(
        precision=Precision.FP16, batch=(N, 3), m=Extent(4), n=7, k=5, a=a, b=b, b_constant=False,
        y=y, epilogue=Epilogue(apply("Add", Acc(), Operand(0)), (bias,)),
    )  # fmt: skip
    rows = Extent(4)
    domain = (N, 3, rows, 7)
    first, second = Access(a, (N, 3, rows, 5)), Access(b, (N, 3, 5, 7))
    assert product.accesses() == ((first, second, Access(bias, domain)), Access(y, domain))
    packed = replace(product, b_constant=True)
    assert packed.accesses() == ((first, None, Access(bias, domain)), Access(y, domain))


def test_attention_reads_queries_keys_and_values_and_operands_over_its_scores() -> None:
    q, k, v, y = (tensor(c * 16, c, 3 * c, 1) for c in (5, 6, 7, 8))
    mask = tensor(0, 0, 11, 1)
    masked = Attention(
        precision=Precision.FP16, batch=(N, 3), queries=4, keys=11, depth=5, width=7, q=q, k=k, v=v,
        scores=Epilogue(apply("Add", Acc(), Operand(0)), (mask,)), empty_rows_are_zero=False, y=y,
    )  # fmt: skip
    assert masked.accesses() == (
        (
            Access(q, (N, 3, 4, 5)),
            Access(k, (N, 3, 11, 5)),
            Access(v, (N, 3, 11, 7)),
            Access(mask, (N, 3, 4, 11)),
        ),
        Access(y, (N, 3, 4, 7)),
    )


def test_attention_reads_what_follows_its_result_over_that() -> None:
    problem = attention(4, 11, 16, width=24, ending=HARD_SWISH, added=DType.FP32)
    inputs, y = problem.accesses()
    assert inputs[-1].axes == y.axes
    assert problem.words().endswith("hard-swish +res")
    bare = replace(problem, epilogue=None)
    assert problem.traffic().others - bare.traffic().others == 2 * 3 * 4 * 24 * 6
    free = replace(problem, free_queries=Extent(4, "s"), free_keys=Extent(11, "s"))
    assert "epilogue.operands" in [field for field, _ in free.contradictions()]


def test_heads_that_share_keys_and_values_read_fewer_of_them() -> None:
    shared = attention(4, 11, 16, batch=(2, 6), sharing=3)
    (q, k, v), y = shared.accesses()
    assert [access.axes[1] for access in (q, k, v, y)] == [6, 2, 2, 6]
    assert shared.words().endswith("keys and values of 2 heads")
    assert list(shared.contradictions()) == []
    for sharing in (1, 4):
        wrong = replace(shared, sharing=sharing)
        assert [field for field, _ in wrong.contradictions()] == ["sharing"]
    for sibling in shared._siblings():
        assert sibling is not None
        assert list(sibling.contradictions()) == []
        assert sibling.k.strides[1] * sibling.heads_of_keys == sibling.k.strides[2]


def test_windows_read_the_whole_input_and_sums_all_their_axes() -> None:
    x, y, bias = tensor(280, 1, 56, 8), tensor(120, 1, 40, 8), tensor(0, 1, 0, 0)
    epilogue = Epilogue(apply("Add", Acc(), Operand(0)), (bias,))
    pooling = Pooling(
        kind=PoolKind.MAX, n=N, c=8, h=5, w=7, p=3, q=5, window=(3, 3), stride=(1, 1),
        dilation=(1, 1), pad=(0, 0), pad_end=(0, 0), count_include_pad=False, x=x, y=y,
        epilogue=epilogue,
    )  # fmt: skip
    domain = (N, 8, 3, 5)
    assert pooling.accesses() == (
        (Access(x, (N, 8, 5, 7)), Access(bias, domain)),
        Access(y, domain),
    )
    wide, narrow, factor = tensor(210, 70, 10, 1), tensor(3, 1), tensor(0, 1)
    total = Reduction(
        ReduceKind.SUM, N, (2, 3), (7, 10), Operand(0), (wide,), narrow,
        Epilogue(apply("Mul", Acc(), Operand(0)), (factor,)),
    )  # fmt: skip
    outer = (N, 3)
    assert total.accesses() == (
        (Access(wide, (*outer, 7, 10)), Access(factor, outer)),
        Access(narrow, outer),
    )


def test_what_only_moves_reads_all_of_its_input() -> None:
    data, index, y = tensor(160, 8, 1), tensor(5, 1, dtype=DType.INT64), tensor(40, 8, 1)
    count = Extent(5)
    picked = Gather(N, 20, count, 8, data, index, y)
    assert picked.accesses() == (
        (Access(data, (N, 20, 8)), Access(index, (N, count))),
        Access(y, (N, count, 8)),
    )
    few, more = tensor(12, 4, 1), tensor(40, 8, 1)
    padded = Pad(
        leading=N, x_shape=(2, 3, 4), y_shape=(2, 5, 8), begin=(0, 1, 2), mode=PadMode.CONSTANT,
        value=0.0, x=few, y=more,
    )  # fmt: skip
    assert padded.accesses() == ((Access(few, (N, 3, 4)),), Access(more, (N, 5, 8)))
    small, large = tensor(105, 35, 7, 1), tensor(420, 140, 14, 1)
    resized = Resize(
        mode=ResizeMode.NEAREST, coordinates=ResizeCoordinates.ASYMMETRIC,
        nearest=NearestMode.FLOOR, n=N, c=3, h=5, w=7, p=10, q=14, scale=(2.0, 2.0), x=small,
        y=large,
    )  # fmt: skip
    assert resized.accesses() == ((Access(small, (N, 3, 5, 7)),), Access(large, (N, 3, 10, 14)))
