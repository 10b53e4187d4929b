"""Products of bytes: their sums are those of int64, rounded to fp32 once, to the bit."""

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
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets import find_target

MMA = MmaSchedule(block_m=32, block_n=32, block_k=64, warps_m=2, warps_n=1, stages=3)
SIMT = SimtSchedule(16, 32, 16, 2, 4, row_major=0, padding=0, prefetch=1)
SKINNY = SkinnySchedule(4, 2, threads_k=4, threads_n=16, depth=1, prefetch=1)
GEMMS = [(GemmMmaTemplate(), MMA), (GemmSimtTemplate(), SIMT), (GemmSkinnyTemplate(), SKINNY)]
CONVOLUTIONS = [(ConvMmaTemplate(), MMA), (ConvSimtTemplate(), SIMT)]
WGMMA = WgmmaSchedule(block_m=64, block_n=32, block_k=128, stages=2)
SIGNS = [(DType.INT8, DType.INT8), (DType.UINT8, DType.INT8)]
SIGNED_OR_NOT = [*SIGNS, (DType.INT8, DType.UINT8), (DType.UINT8, DType.UINT8)]


def drawn(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Bytes of which most are near the ends, so that sums leave what fp32 holds exactly."""
    limits = np.iinfo(dtype.numpy)
    near = rng.integers(0, 8, shape)
    ends = np.where(rng.random(shape) < 0.1, limits.min + near, limits.max - near)
    return ends.astype(dtype.numpy)


def matmul(
    m: int, n: int, k: int, a: DType, b: DType, constant: bool, transposed: bool = False
) -> Matmul:
    return Matmul(
        precision=Precision.INT8,
        batch=(Extent(1), 1),
        m=Extent(m),
        n=n,
        k=k,
        a=row_major(a, (1, 1, m, k)),
        b=row_major(b, (1, 1, k, n), transposed=transposed),
        b_constant=constant,
        y=row_major(DType.FP32, (1, 1, m, n)),
        epilogue=Epilogue(),
    )


def product(execution: Any, template: Any, schedule: Any, problem: Matmul) -> tuple[Any, Any]:
    """What the kernel gives, and int64's sums in fp32."""
    rng, (m, n, k) = np.random.default_rng(7), (problem.m.value, problem.n, problem.k)
    a, b = drawn(rng, problem.a.dtype, (m, k)), drawn(rng, problem.b.dtype, (k, n))
    if problem.b_constant:
        held = packings.pack(template.packing(problem, schedule), b, problem)
    else:
        held = execution.memory(problem.b, b[None, None])
    memory = [execution.memory(problem.a, a[None, None]), held]
    y = execution.run(template, problem, schedule, memory, (1, 1, m, n))
    return y.reshape(m, n), a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.parametrize(("template", "schedule"), GEMMS)
@pytest.mark.parametrize(("a", "b"), SIGNS)
@pytest.mark.parametrize("sizes", [(5, 33, 200), (40, 24, 2048), (1, 10, 147)])
@pytest.mark.parametrize("split", [1, 3])
def test_products_with_constant_bytes_are_exact(
    template: Any,
    schedule: Any,
    a: DType,
    b: DType,
    sizes: tuple[int, int, int],
    split: int,
    checking_execution: Any,
) -> None:
    problem = matmul(*sizes, a, b, constant=True)
    y, sums = product(checking_execution, template, replace(schedule, split=split), problem)
    assert np.array_equal(y, sums.astype(np.float32))
    assert sizes[2] < 2048 or np.abs(sums).max() > 2**24  # what sums in fp32 would have rounded


@pytest.mark.parametrize(("template", "schedule"), GEMMS)
@pytest.mark.parametrize(("a", "b"), SIGNED_OR_NOT)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_computed_bytes_are_exact(
    template: Any, schedule: Any, a: DType, b: DType, transposed: bool, checking_execution: Any
) -> None:
    problem = matmul(19, 48, 96, a, b, constant=False, transposed=transposed)
    if schedule is SKINNY and not transposed:  # a thread has the columns that it loads together
        schedule = replace(schedule, thread_n=16, threads_k=16, threads_n=4)
    y, sums = product(checking_execution, template, schedule, problem)
    assert np.array_equal(y, sums.astype(np.float32))


@pytest.mark.parametrize(
    ("sizes", "changed", "a", "b", "constant"),
    [
        ((70, 48, 208), {}, DType.INT8, DType.INT8, True),
        ((70, 48, 208), {"split": 2}, DType.UINT8, DType.UINT8, False),
        (
            (200, 80, 2048),
            {"persistent": 3, "stages": 3, "pingpong": 1},
            DType.UINT8,
            DType.INT8,
            True,
        ),
        (
            (130, 128, 512),
            {"share": 1, "block_m": 128, "block_n": 64},
            DType.INT8,
            DType.UINT8,
            False,
        ),
    ],
)
def test_products_of_warpgroups_are_exact(
    sizes: tuple[int, int, int],
    changed: dict[str, int],
    a: DType,
    b: DType,
    constant: bool,
    checking_execution: Any,
) -> None:
    template, schedule = GemmWgmmaTemplate(), replace(WGMMA, **changed)
    problem = matmul(*sizes, a, b, constant=constant, transposed=not constant)
    assert template.why_not(problem, find_target("h100")) is None
    assert template.why_illegal(problem, schedule, find_target("h100")) is None
    y, sums = product(checking_execution, template, schedule, problem)
    assert np.array_equal(y, sums.astype(np.float32))
    assert sizes[2] < 2048 or np.abs(sums).max() > 2**24


def convolution(c: int, k: int, size: int, x: DType, **options: Any) -> Convolution:
    plain = problems.convolution(c, k, size, precision=Precision.FP32, **options)
    bytes_ = Tensor(
        x, problems.channels_last(x, c, plain.h, plain.w).strides, 0, 16 if c % 16 == 0 else 1
    )
    y = problems.channels_last(DType.FP32, k, plain.p, plain.q)
    return replace(plain, precision=Precision.INT8, x=bytes_, y=y)


@pytest.mark.parametrize(("template", "schedule"), CONVOLUTIONS)
@pytest.mark.parametrize("x", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize(("c", "k"), [(64, 40), (3, 17), (24, 16)])
def test_convolutions_of_bytes_are_exact(
    template: Any, schedule: Any, x: DType, c: int, k: int, checking_execution: Any
) -> None:
    problem = convolution(c, k, 7, x)
    rng = np.random.default_rng(3)
    pixels = drawn(rng, x, (problem.n.value, c, problem.h, problem.w))
    w = drawn(rng, DType.INT8, problem.constant_shape)
    packed = packings.pack(template.packing(problem, schedule), w, problem)
    memory = [checking_execution.memory(problem.x, pixels), packed]
    shape = (problem.n.value, k, problem.p, problem.q)
    y = checking_execution.run(template, problem, schedule, memory, shape)
    assert np.array_equal(y, sums_of(pixels, w, problem).astype(np.float32))


@pytest.mark.parametrize(("x", "c", "k"), [(DType.UINT8, 48, 20), (DType.INT8, 160, 17)])
def test_convolutions_of_warpgroups_are_exact(
    x: DType, c: int, k: int, checking_execution: Any
) -> None:
    test_convolutions_of_bytes_are_exact(ConvWgmmaTemplate(), WGMMA, x, c, k, checking_execution)


def sums_of(pixels: np.ndarray, w: np.ndarray, problem: Convolution) -> np.ndarray:
    """The convolution in int64, tap by tap."""
    (top, left), (r, s) = problem.pad, problem.filter
    n, c, h, width = pixels.shape
    wide = np.zeros((n, c, h + 2 * top, width + 2 * left), np.int64)
    wide[:, :, top : top + h, left : left + width] = pixels
    sums = np.zeros((n, w.shape[0], problem.p, problem.q), np.int64)
    for i in range(r):
        for j in range(s):
            rows = slice(i, i + problem.p * problem.stride[0], problem.stride[0])
            columns = slice(j, j + problem.q * problem.stride[1], problem.stride[1])
            sums += np.einsum(
                "nchw,kc->nkhw", wide[:, :, rows, columns], w[:, :, i, j].astype(np.int64)
            )
    return sums


TARGETS = ("a100", "rtx4090", "h100", "h200", "b200")


@pytest.mark.parametrize("target", TARGETS)
def test_tensor_cores_multiply_the_bytes(target: str) -> None:
    gpu = find_target(target)
    for problem, template in (
        (matmul(64, 64, 128, DType.UINT8, DType.INT8, constant=True), GemmMmaTemplate()),
        (convolution(64, 64, 7, DType.INT8), ConvMmaTemplate()),
    ):
        assert template.why_not(problem, gpu) is None
        (source,) = template.instantiate(problem, MMA)
        cubin = load_nvrtc().compile(source, gpu.arch).cubin
        (counted,) = count_tensor_core_instructions(cubin).values()
        assert set(counted) == {"imma"}, counted


def test_warpgroups_multiply_the_bytes() -> None:
    gpu = find_target("h100")
    for problem, template in (
        (matmul(64, 64, 128, DType.UINT8, DType.INT8, constant=True), GemmWgmmaTemplate()),
        (convolution(64, 64, 7, DType.INT8), ConvWgmmaTemplate()),
    ):
        (source,) = template.instantiate(problem, WGMMA)
        kernel = load_nvrtc().compile(source, gpu.arch)
        (counted,) = count_tensor_core_instructions(kernel.cubin).values()
        assert set(counted) == {"igmma"}, counted
        assert not kernel.resources.spills


def test_gpus_without_asynchronous_copies_multiply_bytes_on_the_ordinary_cores() -> None:
    gpu, problem = (
        find_target("rtx2080"),
        matmul(64, 64, 128, DType.INT8, DType.INT8, constant=True),
    )
    assert "no asynchronous copies" in str(GemmMmaTemplate().why_not(problem, gpu))
    template = GemmSimtTemplate()
    assert template.why_not(problem, gpu) is None
    (source,) = template.instantiate(problem, SIMT)
    load_nvrtc().compile(source, gpu.arch)


@pytest.mark.parametrize(
    "template", [t for t in TEMPLATES if t.problem_type in (Matmul, Convolution)]
)
def test_every_template_carries_products_of_bytes_or_says_why_not(template: Any) -> None:
    carries = {"gemm_mma", "gemm_simt", "gemm_skinny", "gemm_wgmma"}
    carries |= {"conv_mma", "conv_simt", "conv_wgmma"}
    if template.problem_type is Matmul:
        problem: Any = matmul(16, 64, 128, DType.INT8, DType.INT8, constant=True)
    else:
        problem = convolution(64, 64, 7, DType.INT8)
    reason = template.why_not(problem, find_target("h200"))
    assert (reason is None) == (template.name in carries), reason


@pytest.mark.parametrize("library", [cudnn_problems, tensorrt_problems])
def test_libraries_say_that_they_are_not_asked_for_products_of_bytes(library: Any) -> None:
    for problem in (
        matmul(64, 64, 128, DType.INT8, DType.INT8, constant=True),
        convolution(64, 64, 7, DType.INT8),
    ):
        assert "products of bytes" in str(library.why_not(problem))


def test_floating_point_is_no_byte() -> None:
    problem = matmul(64, 64, 128, DType.FP32, DType.INT8, constant=True)
    assert "bytes" in str(GemmMmaTemplate().why_not(problem, find_target("h200")))
    assert [*problem.contradictions()] == [("a", "fp32 in a product of bytes")]


class _SignsForgotten(GemmMmaTemplate):
    """A fault: unsigned bytes are multiplied as signed ones."""

    def _members(self, problem: Matmul) -> Members:
        return {**super()._members(problem), "Multiply": Type("wpk::Bytes<wpk::int8, wpk::int8>")}


def test_a_sign_that_is_forgotten_is_seen(checking_execution: Any) -> None:
    problem = matmul(5, 33, 200, DType.UINT8, DType.INT8, constant=True)
    y, sums = product(checking_execution, _SignsForgotten(), MMA, problem)
    assert not np.array_equal(y, sums.astype(np.float32))
