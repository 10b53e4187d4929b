"""The matrix-like templates: units as reviewed, spaces, legality against the headers, instructions, refusals."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.problems import network_layers

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.errors import CompileError
from wpk.extent import Extent
from wpk.performance.rates import StepRates
from wpk.problems import Convolution, Matmul, Tensor
from wpk.schedules.gemm_skinny import SkinnySchedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.targets.registry import find_target

H200, RTX4090, V100 = (find_target(name) for name in ("h200", "rtx4090", "v100"))
TILE = MmaSchedule(block_m=128, block_n=64, block_k=32, warps_m=4, warps_n=2, stages=3)
SIMT_TILE = SimtSchedule(
    block_m=64, block_n=64, block_k=8, thread_m=8, thread_n=4, row_major=1, padding=4, prefetch=1
)
SKINNY = SkinnySchedule(block_m=4, thread_n=4, threads_k=32, threads_n=4, depth=2, prefetch=1)


def image(dtype: DType, c: int, size: int) -> Tensor:
    return channels_last(dtype, c, size, size)


def resnet(precision: Precision, c: int = 64, size: int = 56) -> Convolution:
    return network_layers.resnet(c, size, precision=precision)


def dense(precision: Precision, m: int = 128, n: int = 768, k: int = 768) -> Matmul:
    return network_layers.dense(m, n, k, precision)


PROBLEMS: dict[str, tuple[Any, Any]] = {
    "conv_mma": (resnet(Precision.FP16), TILE),
    "conv_simt": (resnet(Precision.FP32), SIMT_TILE),
    "gemm_mma": (dense(Precision.BF16), TILE),
    "gemm_simt": (dense(Precision.FP32), SIMT_TILE),
    "gemm_skinny": (dense(Precision.BF16, m=4, n=1000, k=1280), SKINNY),
}


def template(name: str) -> Any:
    return TEMPLATE_OF[name]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_unit_is_the_reviewed_one(name: str, assert_golden: Callable[[str, str], None]) -> None:
    problem, schedule = PROBLEMS[name]
    (source,) = template(name).instantiate(problem, schedule)
    (launch,) = template(name).launches(problem, schedule)
    assert (launch.kernel, launch.entry) == (source.digest, source.entry)
    assert_golden(f"schedules/{name}.cu", source.text)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_space_is_rich_but_bounded(name: str) -> None:
    total, columns = template(name).space(PROBLEMS[name][0], H200)
    legal = len(columns["block_m"])
    assert 100 <= legal <= 100_000
    assert total <= 1_000_000


@pytest.mark.parametrize("name", PROBLEMS)
def test_work_covers_the_problem(name: str) -> None:
    problem, _ = PROBLEMS[name]
    _, columns = template(name).space(problem, H200)
    work = template(name).work(problem, columns, H200)
    count = len(columns["block_m"])
    for array in (work.blocks, work.threads, work.registers, work.thread_loads, work.stages):
        assert array.shape == (count,)
        assert (array > 0).all()
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()
    assert (
        work.store_bytes * work.blocks >= problem.y.dtype.bytes * problem.macs / problem.reduction
    ).all()
    assert (work.shared_bytes <= H200.max_shared_block).all()


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_usual_schedule_compiles_without_spills(name: str, arch: str) -> None:
    problem, schedule = PROBLEMS[name]
    assert template(name).why_illegal(problem, schedule, H200) is None
    (source,) = template(name).instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, arch)
    assert not kernel.resources.spills
    counts = count_tensor_core_instructions(kernel.cubin)[source.entry]
    assert set(counts) == (
        {f"hmma.{'f16' if 'conv' in name else 'bf16'}"} if "mma" in name else set()
    )


def test_fp32_products_are_three_of_tf32() -> None:
    counts = {}
    for precision in (Precision.TF32, Precision.FP32):
        problem, schedule = resnet(precision), replace(TILE, block_k=16)
        (source,) = template("conv_mma").instantiate(problem, schedule)
        compiled = load_nvrtc().compile(source, "sm_90a")
        counts[precision] = count_tensor_core_instructions(compiled.cubin)[source.entry]
        assert set(counts[precision]) == {"hmma.tf32"}
    assert counts[Precision.FP32].total() == 3 * counts[Precision.TF32].total()


@pytest.mark.parametrize("name", ["conv_mma", "gemm_mma"])
def test_fp32_counts_at_a_third_of_the_peak_of_tf32(name: str) -> None:
    problem, _ = PROBLEMS[name]
    operations = {}
    for precision in (Precision.TF32, Precision.FP32):
        problem = resnet(precision) if name == "conv_mma" else dense(precision)
        _, columns = template(name).space(problem, H200)
        operations[precision] = StepRates.of(template(name).work(problem, columns, H200), H200)
    tf32, fp32 = (operations[p].operations for p in (Precision.TF32, Precision.FP32))
    assert fp32 == pytest.approx(tf32 / 3)


def test_early_launch_is_tried_where_the_target_has_it() -> None:
    a100 = find_target("a100")
    problem, schedule = PROBLEMS["conv_mma"]
    early = replace(schedule, early=1)
    (launch,) = template("conv_mma").launches(problem, early)
    assert launch.attributes == ("early_launch",)
    assert template("conv_mma").launches(problem, schedule)[0].attributes == ()
    assert template("conv_mma").why_illegal(problem, early, H200) is None
    assert "early" in str(template("conv_mma").why_illegal(problem, early, a100))
    assert template("conv_mma").axes(problem, a100)["early"] == (0,)


# One broken limit of the headers each.
ILLEGAL: list[tuple[str, Any]] = [
    ("conv_mma", replace(TILE, block_m=32)),
    ("conv_mma", replace(TILE, block_n=16)),
    ("conv_mma", replace(TILE, block_k=128)),
    ("conv_mma", replace(TILE, block_k=8)),
    ("conv_mma", replace(TILE, block_k=48)),
    ("conv_mma", replace(TILE, block_n=48, warps_n=1)),
    ("conv_mma", replace(TILE, warps_m=1, warps_n=1)),
    ("conv_mma", replace(TILE, stages=1)),
    ("conv_mma", replace(TILE, early=2)),
    ("conv_mma", replace(TILE, block_m=256, block_n=16, block_k=64, warps_m=2, warps_n=1)),
    ("gemm_mma", replace(TILE, block_m=16, block_n=256, block_k=64, warps_m=1, warps_n=2)),
    ("conv_simt", replace(SIMT_TILE, thread_m=3)),
    ("conv_simt", replace(SIMT_TILE, block_m=8)),
    ("conv_simt", replace(SIMT_TILE, block_n=8)),
    ("conv_simt", replace(SIMT_TILE, thread_n=16, block_n=128)),
    ("conv_simt", replace(SIMT_TILE, block_k=12)),
    ("conv_simt", replace(SIMT_TILE, thread_n=4, block_n=12, block_m=128, thread_m=1)),
    ("conv_simt", replace(SIMT_TILE, padding=2)),
    ("gemm_skinny", replace(SKINNY, block_m=3)),
    ("gemm_skinny", replace(SKINNY, thread_n=3)),
    ("gemm_skinny", replace(SKINNY, threads_k=24)),
    ("gemm_skinny", replace(SKINNY, threads_n=1, threads_k=16)),
    ("gemm_skinny", replace(SKINNY, threads_n=64)),
    ("gemm_skinny", replace(SKINNY, depth=8)),
    ("gemm_skinny", replace(SKINNY, block_m=16, thread_n=8)),
    ("gemm_skinny", replace(SKINNY, threads_k=2, threads_n=16)),
    ("gemm_skinny", replace(SKINNY, split=6)),
    (
        "gemm_simt",
        replace(SIMT_TILE, block_m=128, block_n=16, block_k=32, thread_m=8, thread_n=8),
    ),
]


@pytest.mark.parametrize(("name", "schedule"), ILLEGAL, ids=lambda v: str(v).replace(" ", ","))
def test_what_python_refuses_the_header_refuses(name: str, schedule: Any) -> None:
    chosen, (problem, _) = template(name), PROBLEMS[name]
    assert chosen.why_illegal(problem, schedule, H200) is not None
    (source,) = chosen.instantiate(problem, schedule)
    with pytest.raises(CompileError, match="static assertion"):
        load_nvrtc().compile(source, "sm_90a")


_OF_THE_TARGET = ("target", "registers")


def _small_space(name: str) -> list[Any]:
    if name.endswith("mma"):
        values = ((16, 64), (16, 64), (8, 16, 64), (1, 4), (1, 2), (1, 2))
        return [MmaSchedule(*v) for v in product(*values)]
    if name == "gemm_skinny":
        ranges = ((3, 4, 16), (1, 3, 8), (4, 48, 256), (1, 3, 8), (1, 4), (0, 1), (1, 3, 40))
        return [SkinnySchedule(*v) for v in product(*ranges)]
    axes = ((8, 64), (8, 32), (8, 32), (1, 3, 8), (1, 8), (0, 1), (0, 4), (1,))
    return [SimtSchedule(*v) for v in product(*axes)]


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, pytest.param(40, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_python_and_header_agree_on_legality(name: str, count: int) -> None:
    chosen, (problem, _) = template(name), PROBLEMS[name]
    schedules = _small_space(name)
    for index in np.random.default_rng(3).permutation(len(schedules))[:count]:
        schedule = schedules[index]
        reason = chosen.why_illegal(problem, schedule, H200)
        if reason is not None and any(word in reason for word in _OF_THE_TARGET):
            continue  # a limit that headers cannot know
        try:
            (source,) = chosen.instantiate(problem, schedule)
            load_nvrtc().compile(source, "sm_80")
            compiles = True
        except CompileError:
            compiles = False
        assert compiles == (reason is None), f"{schedule}: {reason}"


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_legal_schedules_hardly_ever_spill(name: str, count: int) -> None:
    chosen, (problem, _) = template(name), PROBLEMS[name]
    _, columns = chosen.space(problem, H200)
    rows = np.random.default_rng(4).permutation(len(columns["block_m"]))[:count]
    schedules = [chosen.schedule(columns, int(row)) for row in rows]
    spills = [
        load_nvrtc().compile(chosen.instantiate(problem, s)[0], "sm_90a").resources
        for s in schedules
    ]
    # ptxas now and then stores one word of a kernel far below its limit; more would be ours.
    assert sum(r.spill_store_bytes for r in spills) <= 8


REFUSALS: list[tuple[str, Any, Any, str]] = [
    ("conv_mma", resnet(Precision.FP32), RTX4090, "three products of tf32 take longer"),
    ("conv_mma", resnet(Precision.FP32), V100, "no tensor cores for fp32"),
    ("conv_mma", resnet(Precision.BF16), V100, "no tensor cores for bf16"),
    ("conv_mma", resnet(Precision.FP16), V100, "no asynchronous copies"),
    ("conv_mma", replace(resnet(Precision.FP16), groups=64), H200, "one input channel"),
    ("conv_mma", replace(resnet(Precision.FP16), x=image(DType.INT16, 64, 56)), H200, "int16"),
    ("conv_simt", replace(resnet(Precision.FP32), x=image(DType.INT64, 64, 56)), H200, "int64"),
    ("conv_simt", replace(resnet(Precision.FP32), n=Extent(10**6)), H200, "32-bit"),
    ("gemm_mma", dense(Precision.FP32), RTX4090, "three products of tf32 take longer"),
    ("gemm_simt", replace(dense(Precision.FP32), m=Extent(2**31)), H200, "32-bit"),
    ("gemm_skinny", dense(Precision.FP32, m=17), H200, "17 rows"),
    ("gemm_skinny", replace(dense(Precision.FP32, m=1), k=2**31), H200, "32-bit"),
]


@pytest.mark.parametrize(("name", "problem", "target", "words"), REFUSALS)
def test_refuses_in_words(name: str, problem: Any, target: Any, words: str) -> None:
    reason = template(name).why_not(problem, target)
    assert reason is not None
    assert words in reason
