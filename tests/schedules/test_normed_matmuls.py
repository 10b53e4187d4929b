"""Products of normalised rows: numbers on the emulator against float64, ragged rows, large means, outliers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, plant
from support.problems.warpgroup_layers import by_columns, matmul
from support.problems.warpgroup_layers import normed as of_normed_rows

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.libraries.definition import finish, normalise, row_scales
from wpk.problems import NormedMatmul, NormKind
from wpk.schedules import packings
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

Array = NDArray[Any]
MMA, WGMMA, H200 = GemmMmaTemplate(), GemmWgmmaTemplate(), find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=2)
SMALL = MmaSchedule(block_m=32, block_n=32, block_k=32, warps_m=2, warps_n=2, stages=3)
LAYER, RMS = NormKind.LAYER, NormKind.RMS


def normed(m: int, n: int, k: int, kind: NormKind = LAYER, **given: Any) -> NormedMatmul:
    """With bias, residual and ReLU behind."""
    return of_normed_rows(matmul(m, n, k, **given), kind)


def of_columns(
    m: int, n: int, k: int, kind: NormKind = LAYER, bias: DType = DType.FP16, **given: Any
) -> NormedMatmul:
    """With bias and GELU behind, which are alike in all rows."""
    return of_normed_rows(by_columns(matmul(m, n, k, **given), bias), kind)


def batched(problem: NormedMatmul, outer: int, middle: int) -> NormedMatmul:
    """The like of several matrices, one behind the other, with rows of another tensor between those of A."""
    a, y = ((outer, middle, problem.m.value, columns) for columns in (2 * problem.k, problem.n))
    strides = [(m * r * c, r * c, c, 1) for _, m, r, c in (a, y)]
    operands = [
        replace(each, strides=strides[1] if each.strides[2] else each.strides)
        for each in problem.epilogue.operands
    ]
    return replace(
        problem,
        batch=(Extent(outer), middle),
        a=replace(problem.a, strides=strides[0]),
        y=replace(problem.y, strides=strides[1]),
        epilogue=replace(problem.epilogue, operands=tuple(operands)),
    )


def worst_error(
    execution: Any, template: Any, problem: NormedMatmul, schedule: Any, mean: float = 0.0
) -> float:
    """The largest error in units of what roundings explain: of sums in fp32, of large differences, of the output.

    Rows have a variance of one or more, different means of ``mean`` at most, and two channels far from all others;
    the columns of the matrix have means, too.
    """
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    rng, storage = np.random.default_rng(1), problem.precision.storage.numpy
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value)
    a = rng.standard_normal((*shape, problem.k))
    a[..., [0, problem.k // 2]] *= 20
    a = (a + mean * rng.uniform(-1, 1, (*shape, 1))).astype(storage)
    b = rng.standard_normal((problem.k, problem.n)) / np.sqrt(problem.k) + 0.05
    b = b.astype(storage)
    operands = [
        np.where(
            each.strides[2],
            rng.standard_normal((*shape, problem.n)),
            rng.standard_normal(problem.n),
        ).astype(each.dtype.numpy)
        for each in problem.epilogue.operands
    ]
    memory = [
        execution.memory(problem.a, a),
        packings.pack(template.packing(problem, schedule), b, problem),
        *map(execution.memory, problem.epilogue.operands, operands),
    ]
    a, b, *wide = (each.astype(np.float64) for each in (a, b, *operands))
    if problem.sums is not None:
        memory.append(b.sum(axis=0).astype(np.float32))
    y = execution.run(template, problem, schedule, memory, (*shape, problem.n), {})
    products = normalise(a, problem) @ b
    reference = finish(problem.epilogue, products, wide)
    terms = (np.abs(a) * row_scales(a, problem)) @ np.abs(b) + sum(map(np.abs, wide))
    allowed = 4 * 2.0**-24 * np.sqrt(problem.k) * terms + 1e-30
    allowed += problem.y.dtype.unit_roundoff * (
        np.abs(reference) + rounded_share(a, problem) * np.abs(products)
    )
    return float((np.abs(y - reference) / allowed).max())


def rounded_share(a: Array, problem: NormedMatmul) -> Array:
    """The part of each row's variance in differences that may be larger than their elements, which the kernel rounds.

    A relative error e of such a difference is 2 e of its square, and half as much again of the root of the variance.
    """
    if problem.kind is RMS:
        return np.zeros((*a.shape[:-1], 1))
    difference = a - a.mean(axis=-1, keepdims=True)
    rounded = np.where(np.abs(difference) > np.abs(a) / 2, difference, 0.0)
    share: Array = (rounded**2).sum(axis=-1, keepdims=True) / (difference**2).sum(
        axis=-1, keepdims=True
    )
    return share


WARPGROUPS = {
    "ragged": (normed(50, 40, 136), TILE),
    "one row, a part of a box": (normed(1, 24, 8), TILE),
    "two boxes, two warpgroups": (normed(197, 72, 192), WgmmaSchedule(128, 64, 128, 2, early=1)),
    "batch": (batched(normed(70, 16, 64), 2, 3), TILE),
    "persistent": (normed(197, 100, 72), replace(TILE, persistent=3)),
    "turns, two products": (
        normed(197, 100, 136),
        WgmmaSchedule(128, 32, 64, 2, persistent=2, pingpong=1),
    ),
    "multicast": (normed(130, 130, 128), replace(TILE, share=1)),
    "bf16": (normed(50, 40, 136, precision=Precision.BF16), TILE),
    "rms": (normed(50, 40, 136, RMS), TILE),
    "odd columns": (normed(9, 37, 64), TILE),
    "by columns": (of_columns(70, 136, 136), TILE),
    "by columns, bias fp32, rms, bf16": (
        of_columns(70, 40, 136, RMS, bias=DType.FP32, precision=Precision.BF16),
        TILE,
    ),
    "by columns, persistent": (of_columns(197, 104, 72), replace(TILE, persistent=3)),
    "by columns, turns": (
        of_columns(197, 72, 136),
        WgmmaSchedule(64, 64, 64, 2, persistent=2, pingpong=1),
    ),
    "by columns, turns of two products": (
        of_columns(397, 104, 136),
        WgmmaSchedule(128, 64, 64, 2, persistent=2, pingpong=1),
    ),
    "by columns, three warpgroups": (
        of_columns(230, 200, 72),
        replace(TILE, block_m=192, block_n=112),
    ),
    "three warpgroups": (normed(230, 50, 72), replace(TILE, block_m=192, block_n=96)),
}
WARPS = {
    "ragged": (normed(50, 40, 136), SMALL),
    "one row, odd elements": (normed(1, 24, 37), SMALL),
    "batch, odd columns": (batched(normed(33, 19, 64), 2, 3), SMALL),
    "many tiles": (normed(197, 72, 192), MmaSchedule(128, 64, 64, 2, 2, 3, early=1)),
    "bf16, rms": (normed(50, 40, 100, RMS, precision=Precision.BF16), SMALL),
}
CASES = [
    *(pytest.param(WGMMA, *case, id=f"warpgroups: {name}") for name, case in WARPGROUPS.items()),
    *(pytest.param(MMA, *case, id=f"warps: {name}") for name, case in WARPS.items()),
]


@pytest.mark.parametrize("mean", [0.0, 50.0, 1000.0])
@pytest.mark.parametrize(("template", "problem", "schedule"), CASES)
def test_products_agree_with_float64(
    template: Any, problem: NormedMatmul, schedule: Any, mean: float, fast_execution: Any
) -> None:
    assert worst_error(fast_execution, template, problem, schedule, mean) <= 1


FAULTS = [
    Fault("rows lose nothing beforehand", change("rows_shifted", "1.25f * mean", "0 * mean")),
    Fault(
        "products by other rows count as squares",
        change("diagonal_taken", "group / 2 == laneIndex() % 4 ? own : 0.0f", "own"),
    ),
    Fault("rows keep their means", change("mean_taken", "-=", "+=")),
    Fault("what is behind a row counts", change("row_ends", "inside(first + word / 2 * 8)", "~0u")),
    Fault(
        "warps look at the rows of the first one",
        change("rows_looked", "% Shape::kGroupWarps", "* 0"),
    ),
    Fault(
        "another part of a row is looked at",
        change("rows_of_norm", "(first + box) * Shape::boxBytesA", "0"),
    ),
]
RAGGED = normed(70, 40, 136), replace(TILE, block_k=128)


def test_the_right_kernel_passes_where_faults_are_planted(checking_execution: Any) -> None:
    assert worst_error(checking_execution, WGMMA, *RAGGED, mean=1000.0) <= 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_are_seen(fault: Fault, checking_execution: Any) -> None:
    problem, schedule = RAGGED
    with pytest.raises((EmulatorError, AssertionError)):
        assert (
            worst_error(checking_execution, plant(WGMMA, fault), problem, schedule, mean=1000.0)
            <= 1
        )


def test_parts_of_rows_are_not_normalised() -> None:
    problem = normed(64, 64, 768)
    for template, schedule in ((WGMMA, TILE), (MMA, SMALL)):
        reason = template.why_illegal(problem, replace(schedule, split=2), H200)
        assert reason is not None
        assert "normalised by all of its elements" in reason


def test_only_tiles_on_tensor_cores_normalise() -> None:
    problem = normed(16, 64, 768)
    reasons = {
        t.name: t.why_not(problem, H200) for t in TEMPLATES if isinstance(problem, t.problem_type)
    }
    assert {name for name, reason in reasons.items() if reason is None} == {
        "gemm_mma",
        "gemm_wgmma",
    }
    assert "on tensor cores" in reasons["gemm_skinny"]


@pytest.mark.parametrize(
    "schedule",
    [
        WgmmaSchedule(64, 96, 64, 4, early=1),
        WgmmaSchedule(64, 128, 64, 4, persistent=132, pingpong=1),
    ],
    ids=str,
)
def test_machine_code_keeps_moments_in_registers(schedule: WgmmaSchedule) -> None:
    problem = normed(1970, 2304, 768)
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    (source,) = WGMMA.instantiate(problem, schedule)
    resources = load_nvrtc().compile(source, "sm_90a").resources
    assert resources.spill_store_bytes == resources.stack_bytes == 0
