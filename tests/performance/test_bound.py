"""The bound of every kind of problem: bytes and operations counted by hand or by walking."""

from dataclasses import replace
from itertools import product

import pytest
from subjects.problems import convolution, matmul

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, In, Operand, apply
from wpk.extent import Extent
from wpk.performance.bound import bound, fastest_unit
from wpk.problems import (
    Attention,
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
from wpk.targets.registry import find_target

H200 = find_target("h200")


def _nhwc(c: int, h: int, w: int, dtype: DType = DType.FP16) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


def _nchw(c: int, h: int, w: int, dtype: DType = DType.FP32) -> Tensor:
    return Tensor(dtype, (c * h * w, h * w, w, 1))


def _convolution(**changes: object) -> Convolution:
    return replace(convolution(64, 64, 56), **changes)


def _matmul(m: int, n: int, k: int, precision: Precision, **changes: object) -> Matmul:
    return replace(matmul(m, n, k, precision=precision), **changes)


def test_a_resnet_convolution_by_hand() -> None:
    found = _convolution().traffic()
    pixels = 64 * 56 * 56 * 2
    assert found.bytes == 2 * pixels + 64 * 64 * 9 * 2
    # Of three taps an axis, the outer ones miss the image once each: 3 * 56 - 2.
    assert found.products == 2 * 64 * 64 * (3 * 56 - 2) ** 2
    assert found.others == 0


def _walk(problem: Convolution) -> tuple[int, int, int]:
    """Pairs, touched pixels and touched taps of one channel, by visiting every product."""
    pairs, pixels, taps = 0, set(), set()
    (r_size, s_size), transposed = problem.filter, problem.transposed
    rows, cols = (problem.h, problem.w) if transposed else (problem.p, problem.q)
    inner_h, inner_w = (problem.p, problem.q) if transposed else (problem.h, problem.w)
    for p, q, r, s in product(range(rows), range(cols), range(r_size), range(s_size)):
        h = p * problem.stride[0] - problem.pad[0] + r * problem.dilation[0]
        w = q * problem.stride[1] - problem.pad[1] + s * problem.dilation[1]
        if 0 <= h < inner_h and 0 <= w < inner_w:
            pairs += 1
            pixels.add((p, q) if transposed else (h, w))
            taps.add((r, s))
    return pairs, len(pixels), len(taps)


@pytest.mark.parametrize(
    "changes",
    [
        {"h": 9, "w": 8, "p": 5, "q": 4, "stride": (2, 2), "filter": (1, 1), "pad": (0, 0)},
        {"h": 9, "w": 8, "p": 9, "q": 8, "dilation": (2, 3), "pad": (2, 3)},
        {"h": 1, "w": 1, "p": 1, "q": 1},
        {"h": 4, "w": 5, "p": 9, "q": 10, "stride": (2, 2), "transposed": True},
        {"h": 4, "w": 5, "p": 4, "q": 5, "filter": (5, 3), "pad": (0, 2)},
    ],
)
def test_convolutions_count_only_what_windows_reach(changes: dict[str, object]) -> None:
    problem = _convolution(n=Extent(3), c=8, k=6, groups=2, **changes)
    problem = replace(problem, x=_nhwc(8, problem.h, problem.w), y=_nhwc(6, problem.p, problem.q))
    pairs, pixels, taps = _walk(problem)
    found = problem.traffic()
    assert found.products == 2 * 3 * 6 * 4 * pairs
    assert found.bytes == 2 * (3 * 8 * pixels + 6 * 4 * taps + 3 * 6 * problem.p * problem.q)
    assert found.products <= 2 * problem.macs


def test_an_epilogue_counts_its_operands_and_operations() -> None:
    bias = Tensor(DType.FP16, (0, 1, 0, 0))
    residual = _nhwc(64, 56, 56)
    expression = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
    plain, fused = (
        _convolution().traffic(),
        _convolution(epilogue=Epilogue(expression, (bias, residual))).traffic(),
    )
    assert fused.bytes - plain.bytes == 2 * (64 + 64 * 56 * 56)
    assert fused.others == 3 * 64 * 56 * 56


def test_a_product_counts_its_operands_and_operations() -> None:
    bias, residual = Tensor(DType.FP16, (0, 0, 0, 1)), Tensor(DType.FP16, (0, 0, 48, 1))
    expression = apply("Add", apply("Add", Acc(), Operand(0)), Operand(1))
    epilogue = Epilogue(expression, (bias, residual))
    found = _matmul(10, 48, 30, Precision.FP16, epilogue=epilogue).traffic()
    assert found.bytes == 2 * (10 * 30 + 30 * 48 + 10 * 48 + 48 + 10 * 48)
    assert (found.products, found.others) == (2 * 10 * 48 * 30, 2 * 10 * 48)


def test_broadcast_axes_count_once_and_overlaps_only_once() -> None:
    assert Access(Tensor(DType.FP32, (0, 5, 1)), (7, 3, 5)).distinct_bytes == 4 * 15
    windows = Tensor(DType.FP32, (1, 1))  # row i starts at element i
    assert Access(windows, (10, 3)).distinct_bytes == 4 * 12


def test_a_large_product_is_limited_by_the_tensor_cores() -> None:
    found = bound(_matmul(8192, 8192, 8192, Precision.BF16), H200)
    assert found.limiter == "tensor cores"
    assert found.seconds == pytest.approx(2 * 8192**3 / 989.4e12)
    assert found.operations == 2 * 8192**3
    assert found.bytes == 3 * 2 * 8192**2


def test_strict_fp32_may_use_three_tf32_products() -> None:
    assert fastest_unit(Precision.FP32, H200) == ("tensor cores", pytest.approx(164.9e12))
    # On an RTX 4090 a third of tf32 (27.5e12) is slower than the ordinary cores.
    assert fastest_unit(Precision.FP32, find_target("rtx4090")) == ("ordinary cores", 82.6e12)
    assert fastest_unit(Precision.FP32, find_target("v100")) == ("ordinary cores", 15.7e12)


def test_a_precision_without_a_unit_is_bound_by_the_ordinary_cores() -> None:
    assert fastest_unit(Precision.BF16, find_target("rtx2080")) == ("ordinary cores", 10.1e12)


def test_a_unit_that_is_as_fast_as_the_ordinary_cores_is_not_used() -> None:
    for peak, unit in ((66.9e12, "ordinary cores"), (67e12, "tensor cores")):
        target = replace(H200, peak_ordinary=66.9e12, peak_tensor=((Precision.FP16, peak),))
        assert fastest_unit(Precision.FP16, target) == (unit, peak)


def _copy(elements: int) -> Elementwise:
    tensor = Tensor(DType.FP32, (1,))
    return Elementwise(Extent(elements), (elements,), Operand(0), (tensor,), tensor)


def test_what_fits_l2_is_bound_by_l2_and_the_rest_by_global_memory() -> None:
    small = bound(_copy(1 << 20), H200)
    assert (small.limiter, small.bytes) == ("L2", 8 << 20)
    assert small.seconds == pytest.approx((8 << 20) / H200.l2_bandwidth)
    large = bound(_copy(1 << 28), H200)
    assert large.limiter == "global memory"
    assert large.seconds == pytest.approx(((2 << 30) - H200.l2_bytes) / 4.8e12)
    assert (large.bytes, large.operations) == (2 << 30, 0)


def test_the_bound_never_falls_when_a_problem_grows() -> None:
    seconds = [bound(_copy(1 << i), H200).seconds for i in range(10, 31)]
    assert seconds == sorted(seconds)


def test_activation_products_count_their_batch_and_shared_operands_once() -> None:
    scores = _matmul(
        128,
        128,
        64,
        Precision.FP16,
        batch=(Extent(2), 12),
        a=Tensor(DType.FP16, (128 * 768, 64, 768, 1)),
        b=Tensor(DType.FP16, (0, 64, 1, 768)),
        b_constant=False,
        y=Tensor(DType.FP16, (12 * 128 * 128, 128 * 128, 128, 1)),
    )
    found = scores.traffic()
    assert found.bytes == 2 * (2 * 12 * 128 * 64 + 12 * 64 * 128 + 2 * 12 * 128 * 128)
    assert found.products == 2 * 2 * 12 * 128 * 128 * 64


def test_attention_counts_its_products_and_no_scores_in_memory() -> None:
    rows = Tensor(DType.FP16, (128 * 768, 64, 768, 1))
    mask = Tensor(DType.FP32, (128, 0, 0, 1))
    attention = Attention(
        precision=Precision.FP16,
        batch=(Extent(2), 12),
        queries=128,
        keys=128,
        depth=64,
        width=64,
        q=rows,
        k=rows,
        v=rows,
        scores=Epilogue(apply("Add", Acc(), Operand(0)), (mask,)),
        empty_rows_are_zero=False,
        y=rows,
    )
    found = attention.traffic()
    assert found.bytes == 2 * 4 * 2 * 128 * 768 + 4 * 2 * 128
    assert found.products == 2 * 2 * 12 * 128 * 128 * (64 + 64)
    assert found.others == 2 * 12 * 128 * 128 * 12  # the mask's sum, and 11 of softmax
    large = bound(replace(attention, queries=8192, keys=8192), H200)
    assert large.limiter == "tensor cores"
    assert large.operations == 2 * 12 * 8192 * 8192 * (2 * (64 + 64) + 12)


def _pooling(**changes: object) -> Pooling:
    base = Pooling(
        kind=PoolKind.MAX,
        n=Extent(2),
        c=3,
        h=7,
        w=7,
        p=4,
        q=4,
        window=(3, 3),
        stride=(2, 2),
        dilation=(1, 1),
        pad=(1, 1),
        pad_end=(1, 1),
        count_include_pad=False,
        x=_nchw(3, 7, 7),
        y=_nchw(3, 4, 4),
        epilogue=Epilogue(),
    )
    return replace(base, **changes)


def test_pooling_counts_clipped_windows() -> None:
    found = _pooling().traffic()
    assert found.bytes == 4 * (2 * 3 * 49 + 2 * 3 * 16)
    assert found.others == 2 * 3 * (3 * 4 - 2) ** 2
    assert found.products == 0


def test_pooling_leaves_out_what_dilated_windows_step_over() -> None:
    relu = Epilogue(apply("Add", apply("Relu", Acc()), Operand(0)), (_nchw(3, 2, 3),))
    problem = _pooling(
        h=7, w=7, p=2, q=3, window=(2, 2), stride=(3, 2), dilation=(3, 2), pad=(0, 1),
        pad_end=(0, 1), y=_nchw(3, 2, 3), epilogue=relu,
    )  # fmt: skip
    rows, columns = {0, 3, 6}, {1, 3, 5}  # a window begins in the padding on the left
    found = problem.traffic()
    assert found.bytes == 4 * 2 * 3 * (len(rows) * len(columns) + 2 * 3 + 2 * 3)
    assert found.others == 2 * 3 * (4 * 5 + 2 * (2 * 3))


def test_rows_count_their_inputs_statistics_and_outputs() -> None:
    matrix, vector = Tensor(DType.FP32, (768, 1)), Tensor(DType.FP32, (0, 1))
    scale = apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1))
    norm = Normalisation(
        kind=NormKind.LAYER,
        leading=Extent(128),
        outer=(128,),
        cols=768,
        epsilon=1e-5,
        prologue=Operand(0),
        inputs=(matrix,),
        y=matrix,
        epilogue=Epilogue(scale, (vector, vector)),
    )
    assert norm.traffic().bytes == 4 * (2 * 128 * 768 + 2 * 768)
    assert norm.traffic().others == (5 + 2) * 128 * 768
    assert norm.traffic().products == 0
    mean = Reduction(
        kind=ReduceKind.MEAN,
        leading=Extent(128),
        outer=(128,),
        inner=(768,),
        prologue=Operand(0),
        inputs=(matrix,),
        y=Tensor(DType.FP32, (1,)),
        epilogue=Epilogue(),
    )
    assert (mean.traffic().bytes, mean.traffic().others) == (4 * (128 * 768 + 128), 128 * 768)
    assert mean.traffic().products == 0


def test_movement_counts_what_must_be_read() -> None:
    embedding = Gather(
        outer=Extent(1),
        axis_size=30522,
        count=Extent(128),
        inner=768,
        data=Tensor(DType.FP16, (30522 * 768, 768, 1)),
        index=Tensor(DType.INT64, (0, 1)),
        y=Tensor(DType.FP16, (128 * 768, 768, 1)),
    )
    assert embedding.traffic().bytes == 2 * 128 * 768 + 8 * 128 + 2 * 768  # indices may be equal
    crop = Pad(
        leading=Extent(2),
        x_shape=(2, 10),
        y_shape=(2, 6),
        begin=(0, -3),
        mode=PadMode.CONSTANT,
        value=0.0,
        x=Tensor(DType.FP32, (10, 1)),
        y=Tensor(DType.FP32, (6, 1)),
    )
    assert crop.traffic().bytes == 4 * (2 * 6 + 2 * 6)
    outside = replace(crop, begin=(0, 10), y_shape=(2, 30), y=Tensor(DType.FP32, (30, 1)))
    assert outside.traffic().bytes == 4 * (2 * 10 + 2 * 30)
    for moved in (embedding, crop):
        assert (moved.traffic().products, moved.traffic().others) == (0, 0)


@pytest.mark.parametrize("sizes", [(8, 8, 16, 16), (9, 7, 4, 3), (8, 1, 3, 5), (1, 6, 7, 2)])
def test_resizing_reads_what_it_samples_but_an_end(sizes: tuple[int, int, int, int]) -> None:
    h, w, p, q = sizes
    problem = Resize(
        mode=ResizeMode.NEAREST,
        coordinates=ResizeCoordinates.ASYMMETRIC,
        nearest=NearestMode.FLOOR,
        n=Extent(1),
        c=2,
        h=h,
        w=w,
        p=p,
        q=q,
        scale=(p / h, q / w),
        x=_nchw(2, h, w),
        y=_nchw(2, p, q),
    )
    rows, cols = (
        len({i * size // count for i in range(count)}) for size, count in ((h, p), (w, q))
    )
    found = problem.traffic()
    read = found.bytes / 8 - p * q
    assert max(rows - 1, 1) * max(cols - 1, 1) <= read <= rows * cols
    assert (found.products, found.others) == (0, 0)
    linear = replace(problem, mode=ResizeMode.LINEAR).traffic()
    assert (linear.bytes, linear.products, linear.others) == (found.bytes, 0, 6 * 2 * p * q)


@pytest.mark.parametrize("name", ["a100", "h100", "h200", "b200"])
def test_winograd_on_the_ordinary_cores_passes_no_bound_where_tf32_is_fast(name: str) -> None:
    target = find_target(name)
    assert fastest_unit(Precision.FP32, target)[1] >= 2.25 * target.peak_ordinary


def _in_double(name: str) -> tuple[float, float]:
    """The bounds of a product and of an exponential in fp64 on a target, both far above memory's."""
    target, tail = find_target(name), Epilogue(In(DType.FP64, Acc()))
    square = Tensor(DType.FP64, (0, 0, 4096, 1))
    product_of = matmul(4096, 4096, 4096, precision=Precision.FP64)
    product_of = replace(product_of, a=square, b=square, y=square, epilogue=tail)
    x = Tensor(DType.FP64, (64, 1))
    formula: Expression = Operand(0)
    for _ in range(400):
        formula = apply("Exp", formula)
    element_wise = Elementwise(Extent(64), (64, 64), In(DType.FP64, formula), (x,), x)
    return bound(product_of, target).seconds, bound(element_wise, target).seconds


@pytest.mark.parametrize("name", ["t4", "rtx3090", "l4", "h200", "a100"])
def test_fp64_has_a_rate_of_its_own(name: str) -> None:
    target = find_target(name)
    products, others = _in_double(name)
    tensor = target.tensor_peak(Precision.FP64) or target.peak_double
    assert products == pytest.approx(2 * 4096**3 / max(tensor, target.peak_double))
    assert others == pytest.approx(400 * 8 * 64 * 64 / target.peak_double)
    ratio = {"t4": 32, "rtx3090": 64, "l4": 64, "h200": 2, "a100": 2}[name]
    assert target.peak_ordinary / target.peak_double == pytest.approx(ratio, rel=0.02)
