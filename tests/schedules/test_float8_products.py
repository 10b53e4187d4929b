"""Products of 8-bit floating point: every number is multiplied as what it is, and sums are of fp32."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects import problems
from support.problems.products import row_major

from wpk.build import load_nvrtc
from wpk.build.tensor_cores import count_tensor_core_instructions
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.libraries import cudnn_problems, tensorrt_problems
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.schedules.gemm_skinny import GemmSkinnyTemplate, SkinnySchedule
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.schedules.unit import Members, Type
from wpk.targets import find_target

MMA = MmaSchedule(block_m=32, block_n=32, block_k=64, warps_m=2, warps_n=1, stages=3)
SIMT = SimtSchedule(16, 32, 16, 2, 4, row_major=0, padding=0, prefetch=1)
SKINNY = SkinnySchedule(4, 2, threads_k=4, threads_n=16, depth=1, prefetch=1)
GEMMS = [(GemmMmaTemplate(), MMA), (GemmSimtTemplate(), SIMT), (GemmSkinnyTemplate(), SKINNY)]
CONVOLUTIONS = [(ConvMmaTemplate(), MMA), (ConvSimtTemplate(), SIMT)]
TYPES = [DType.FP8_E4M3, DType.FP8_E5M2]
TARGETS = ("a100", "rtx4090", "h100", "b200")


def matmul(
    m: int, n: int, k: int, dtype: DType, constant: bool = True, transposed: bool = False
) -> Matmul:
    return Matmul(
        precision=Precision(dtype.value),
        batch=(Extent(1), 1),
        m=Extent(m),
        n=n,
        k=k,
        a=row_major(dtype, (1, 1, m, k)),
        b=row_major(dtype, (1, 1, k, n), transposed=transposed),
        b_constant=constant,
        y=row_major(DType.FP32, (1, 1, m, n)),
        epilogue=Epilogue(),
    )


def convolution(c: int, k: int, size: int, x: DType) -> Convolution:
    plain = problems.convolution(c, k, size, precision=Precision.FP32)
    strides = problems.channels_last(x, c, plain.h, plain.w).strides
    narrow = Tensor(x, strides, 0, 16 if c % 16 == 0 else 1)
    y = problems.channels_last(DType.FP32, k, plain.p, plain.q)
    return replace(plain, precision=Precision(x.value), x=narrow, y=y)


def whole(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Integers that the type holds: fp32 adds a thousand of their products exactly, in any order."""
    most = 16 if dtype is DType.FP8_E4M3 else 8
    return rng.integers(-most, most, shape, endpoint=True).astype(dtype.numpy)


def run(execution: Any, template: Any, schedule: Any, problem: Matmul, a: Any, b: Any) -> Any:
    if problem.b_constant:
        held = packings.pack(template.packing(problem, schedule), b, problem)
    else:
        held = execution.memory(problem.b, b[None, None])
    memory = [execution.memory(problem.a, a[None, None]), held]
    shape = (1, 1, problem.m.value, problem.n)
    return execution.run(template, problem, schedule, memory, shape).reshape(shape[2:])


@pytest.mark.parametrize(("template", "schedule"), GEMMS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("sizes", "split"), [((5, 33, 200), 1), ((1, 10, 147), 1), ((20, 24, 512), 3)]
)
def test_sums_that_fp32_holds_are_exact(
    template: Any,
    schedule: Any,
    dtype: DType,
    sizes: tuple[int, int, int],
    split: int,
    checking_execution: Any,
) -> None:
    rng, (m, n, k) = np.random.default_rng(7), sizes
    a, b = whole(rng, dtype, (m, k)), whole(rng, dtype, (k, n))
    problem = matmul(m, n, k, dtype)
    y = run(checking_execution, template, replace(schedule, split=split), problem, a, b)
    assert np.array_equal(y, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("dtype", "transposed"), [(TYPES[0], False), (TYPES[0], True), (TYPES[1], False)]
)
def test_operands_may_both_be_computed(
    dtype: DType, transposed: bool, checking_execution: Any
) -> None:
    rng = np.random.default_rng(8)
    a, b = whole(rng, dtype, (19, 96)), whole(rng, dtype, (96, 48))
    problem = matmul(19, 48, 96, dtype, constant=False, transposed=transposed)
    y = run(checking_execution, GemmMmaTemplate(), MMA, problem, a, b)
    assert np.array_equal(y, a.astype(np.float64) @ b.astype(np.float64))


def _every_number(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """All codes of the type but infinities, each in a row of its own, and a column of ones."""
    codes = np.arange(256).astype(np.uint8).view(dtype.numpy)
    codes = codes[~np.isinf(codes.astype(np.float32))]
    a = np.zeros((len(codes), 32), dtype.numpy)
    a[np.arange(len(codes)), np.arange(len(codes)) % 32] = codes
    return a, np.ones((32, 8), dtype.numpy)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_number_is_multiplied_as_it_is(dtype: DType, checking_execution: Any) -> None:
    a, b = _every_number(dtype)
    y = run(checking_execution, GemmMmaTemplate(), MMA, matmul(len(a), 8, 32, dtype), a, b)
    expected = a.astype(np.float32).sum(axis=1, keepdims=True) * np.ones((1, 8), np.float32)
    assert np.isnan(expected).any()
    assert np.array_equal(y, expected, equal_nan=True)


@pytest.mark.parametrize(("template", "schedule"), CONVOLUTIONS)
@pytest.mark.parametrize(
    ("dtype", "c", "k"), [(TYPES[0], 64, 40), (TYPES[0], 3, 17), (TYPES[1], 24, 16)]
)
def test_convolutions_are_exact(
    template: Any, schedule: Any, dtype: DType, c: int, k: int, checking_execution: Any
) -> None:
    problem = convolution(c, k, 7, dtype)
    rng = np.random.default_rng(3)
    x = whole(rng, dtype, (problem.n.value, c, problem.h, problem.w))
    w = whole(rng, dtype, problem.constant_shape)
    packed = packings.pack(template.packing(problem, schedule), w, problem)
    memory = [checking_execution.memory(problem.x, x), packed]
    shape = (problem.n.value, k, problem.p, problem.q)
    y = checking_execution.run(template, problem, schedule, memory, shape)
    assert np.array_equal(y, _sums(x, w, problem))


def _sums(x: np.ndarray, w: np.ndarray, problem: Convolution) -> np.ndarray:
    """The convolution in float64, tap by tap."""
    (top, left), (r, s) = problem.pad, problem.filter
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, top), (left, left)))
    sums = np.zeros((x.shape[0], w.shape[0], problem.p, problem.q))
    for i in range(r):
        for j in range(s):
            rows = slice(i, i + problem.p * problem.stride[0], problem.stride[0])
            columns = slice(j, j + problem.q * problem.stride[1], problem.stride[1])
            tap = w[:, :, i, j].astype(np.float64)
            sums += np.einsum("nchw,kc->nkhw", wide[:, :, rows, columns], tap)
    return sums


@pytest.mark.parametrize(("target", "dtype"), list(zip(TARGETS, TYPES * 2, strict=True)))
def test_the_units_of_fp16_multiply(target: str, dtype: DType) -> None:
    gpu = find_target(target)
    for problem, template in (
        (matmul(64, 64, 128, dtype), GemmMmaTemplate()),
        (convolution(64, 64, 7, dtype), ConvMmaTemplate()),
    ):
        assert template.why_not(problem, gpu) is None
        (source,) = template.instantiate(problem, MMA)
        cubin = load_nvrtc().compile(source, gpu.arch).cubin
        (counted,) = count_tensor_core_instructions(cubin).values()
        assert set(counted) == {"hmma.f16"}, counted


@pytest.mark.parametrize(
    "template", [t for t in TEMPLATES if t.problem_type in (Matmul, Convolution)]
)
def test_every_template_carries_them_or_says_why_not(template: Any) -> None:
    carries = {"gemm_mma", "gemm_simt", "gemm_skinny", "conv_mma", "conv_simt"}
    is_product = template.problem_type is Matmul
    problem: Any = matmul(16, 64, 128, TYPES[0]) if is_product else convolution(64, 64, 7, TYPES[0])
    reason = template.why_not(problem, find_target("h200"))
    assert (reason is None) == (template.name in carries), reason
    for library in (cudnn_problems, tensorrt_problems):
        assert "fp8_e4m3" in str(library.why_not(problem))


def test_both_operands_have_one_type() -> None:
    problem = replace(matmul(64, 64, 128, TYPES[0]), a=row_major(TYPES[1], (1, 1, 64, 128)))
    assert "both are fp8_e4m3" in str(GemmMmaTemplate().why_not(problem, find_target("h200")))
    assert [*problem.contradictions()] == [("a", "fp8_e5m2 in a product of fp8_e4m3")]


class _OtherType(GemmMmaTemplate):
    """A fault: the operands are read as numbers of the other type."""

    def _members(self, problem: Matmul) -> Members:
        name = "wpk::Bytes<wpk::Float8E4m3, wpk::Float8E5m2>"
        return {**super()._members(problem), "Multiply": Type(name)}


def test_another_type_is_seen(checking_execution: Any) -> None:
    rng = np.random.default_rng(7)
    a, b = whole(rng, TYPES[0], (5, 200)), whole(rng, TYPES[0], (200, 33))
    y = run(checking_execution, _OtherType(), MMA, matmul(5, 33, 200, TYPES[0]), a, b)
    assert not np.array_equal(y, a.astype(np.float64) @ b.astype(np.float64))
