"""Moments of rows: stored by one product, read by another; ragged rows, large means, outliers, planted faults."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, plant
from support.problems.warpgroup_layers import (
    by_columns,
    knowing_moments,
    matmul,
    moments_of,
    normed,
    with_moments,
)

from wpk.build import load_nvrtc
from wpk.dtypes import Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.libraries.definition import finish, normalise, row_scales
from wpk.problems import Matmul, MomentsMatmul, NormedMatmul, NormKind, moments_group
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
SMALL = MmaSchedule(block_m=32, block_n=64, block_k=32, warps_m=2, warps_n=2, stages=3)
LAYER, RMS = NormKind.LAYER, NormKind.RMS


def storing(m: int, n: int, k: int, kind: NormKind = LAYER, **given: Any) -> MomentsMatmul:
    """With bias, residual and ReLU before what is stored."""
    return with_moments(matmul(m, n, k, **given), kind)


def storing_alike(m: int, n: int, k: int, kind: NormKind = LAYER, **given: Any) -> MomentsMatmul:
    """With bias and GELU, which are alike in all rows, before what is stored."""
    return with_moments(by_columns(matmul(m, n, k, **given)), kind)


def reading(m: int, n: int, k: int, kind: NormKind = LAYER, **given: Any) -> NormedMatmul:
    """With bias, residual and ReLU behind the product."""
    return knowing_moments(normed(matmul(m, n, k, **given), kind))


def of_columns(m: int, n: int, k: int, kind: NormKind = LAYER, **given: Any) -> NormedMatmul:
    """With bias and GELU behind the product, which are alike in all rows."""
    return knowing_moments(normed(by_columns(matmul(m, n, k, **given)), kind))


def batched(problem: Any, outer: int, middle: int) -> Any:
    """The like of several matrices, one behind the other."""
    m, n, k = problem.m.value, problem.n, problem.k
    strides = {c: (middle * m * c, m * c, c, 1) for c in (n, k)}
    operands = [
        replace(each, strides=strides[n] if each.strides[2] else each.strides)
        for each in problem.epilogue.operands
    ]
    width = problem.moments.strides[2]
    moments = replace(problem.moments, strides=(middle * m * width, m * width, width, 1))
    return replace(
        problem,
        batch=(Extent(outer), middle),
        a=replace(problem.a, strides=strides[k]),
        y=replace(problem.y, strides=strides[n]),
        epilogue=replace(problem.epilogue, operands=tuple(operands)),
        moments=moments,
    )


def drawn(execution: Any, template: Any, problem: Matmul, schedule: Any, mean: float) -> Any:
    """Memory of both factors and the epilogue's operands, and their numbers in float64.

    Rows of ``a`` and of the residual have different means of ``mean`` at most, and channels far from all others.
    """
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    assert not list(problem.contradictions())
    rng, storage = np.random.default_rng(1), problem.precision.storage.numpy
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value)

    def rows(columns: int) -> Array:
        values = rng.standard_normal((*shape, columns))
        values[..., [0, columns // 2]] *= 20
        return np.asarray(values + mean * rng.uniform(-1, 1, (*shape, 1)))

    a = rows(problem.k).astype(storage)
    b = (rng.standard_normal((problem.k, problem.n)) / np.sqrt(problem.k) + 0.05).astype(storage)
    operands = [
        np.where(each.strides[2], rows(problem.n), rng.standard_normal(problem.n)).astype(
            each.dtype.numpy
        )
        for each in problem.epilogue.operands
    ]
    memory = [
        execution.memory(problem.a, a),
        packings.pack(template.packing(problem, schedule), b, problem),
        *map(execution.memory, problem.epilogue.operands, operands),
    ]
    return (
        memory,
        *(each.astype(np.float64) for each in (a, b)),
        [each.astype(np.float64) for each in operands],
    )


def error_of_stored(
    execution: Any, template: Any, problem: MomentsMatmul, schedule: Any, mean: float = 0.0
) -> float:
    """The largest error of moments of what was stored, in units of what roundings of sums in fp32 explain."""
    memory, a, b, wide = drawn(execution, template, problem, schedule, mean)
    shape = (*a.shape[:3], problem.n)
    y = execution.run(template, problem, schedule, memory, shape, {})
    terms = np.abs(a) @ np.abs(b) + sum(map(np.abs, wide))
    allowed = 4 * 2.0**-24 * np.sqrt(problem.k) * terms
    reference = finish(problem.epilogue, a @ b, wide)
    allowed += problem.y.dtype.unit_roundoff * np.abs(reference) + 1e-30
    assert np.all(np.abs(y - reference) <= allowed)
    (found,) = execution.others
    exact = moments_of(y, problem.kind)
    groups = y.reshape(*y.shape[:-1], -1, moments_group(y.shape[-1]))
    size = (groups**2).mean(axis=-1)
    unit = 2.0**-24
    if problem.kind is RMS:
        return float((np.abs(found - exact) / (8 * unit * size + 1e-30)).max())
    mean_bound = 8 * unit * np.sqrt(size) + 1e-30
    squares = exact[..., 1::2]
    square_bound = 8 * unit * squares + 2 * np.sqrt(squares) * mean_bound + mean_bound**2
    bounds = np.stack([mean_bound, square_bound], axis=-1).reshape(exact.shape)
    return float((np.abs(found - exact) / bounds).max())


def error_of_read(
    execution: Any, template: Any, problem: NormedMatmul, schedule: Any, mean: float = 0.0
) -> float:
    """The largest error in units of what roundings explain: of sums in fp32, and of the output."""
    memory, a, b, wide = drawn(execution, template, problem, schedule, mean)
    if problem.sums is not None:
        memory.append(b.sum(axis=0).astype(np.float32))
    assert problem.moments is not None
    memory.append(execution.memory(problem.moments, moments_of(a, problem.kind)))
    shape = (*a.shape[:3], problem.n)
    y = execution.run(template, problem, schedule, memory, shape, {})
    reference = finish(problem.epilogue, normalise(a, problem) @ b, wide)
    terms = (np.abs(a) * row_scales(a, problem)) @ np.abs(b) + sum(map(np.abs, wide))
    allowed = 4 * 2.0**-24 * np.sqrt(problem.k) * terms + 1e-30
    allowed += problem.y.dtype.unit_roundoff * np.abs(reference)
    return float((np.abs(y - reference) / allowed).max())


STORED_BY_WARPGROUPS = {
    "ragged": (storing(50, 160, 136), TILE),
    "one row": (storing(1, 96, 8), replace(TILE, block_n=96)),
    "two warpgroups, early": (storing(197, 96, 192), WgmmaSchedule(128, 32, 128, 2, early=1)),
    "batch": (batched(storing(70, 64, 64), 2, 3), TILE),
    "persistent": (storing(197, 192, 72), replace(TILE, persistent=3)),
    "residual in shared memory": (storing(197, 192, 72), replace(TILE, persistent=3, residual=2)),
    "turns": (storing(197, 96, 136), WgmmaSchedule(128, 32, 64, 2, persistent=2, pingpong=1)),
    "parts in a cluster": (storing(70, 96, 256), replace(TILE, block_n=96, split=3, cluster=1)),
    "small parts in a cluster": (
        storing(70, 32, 256),
        replace(TILE, block_n=32, split=4, cluster=1),
    ),
    "wide groups in a cluster": (storing(70, 128, 256), replace(TILE, split=4, cluster=1)),
    "wide groups of small parts": (storing(70, 128, 512), replace(TILE, split=6, cluster=1)),
    "parts in memory": (storing(70, 160, 256), replace(TILE, split=3)),
    "bf16": (storing(50, 160, 136, precision=Precision.BF16), TILE),
    "rms": (storing(50, 160, 136, RMS), TILE),
    "three warpgroups": (storing(230, 288, 72), replace(TILE, block_m=192, block_n=96)),
    "alike in all rows": (storing_alike(50, 160, 136), TILE),
    "alike in all rows, persistent": (storing_alike(197, 192, 72), replace(TILE, persistent=3)),
}
STORED_BY_WARPS = {
    "ragged": (storing(50, 160, 136), SMALL),
    "one row, odd elements": (storing(1, 96, 37), SMALL),
    "batch": (batched(storing(33, 64, 64), 2, 3), replace(SMALL, warps_n=1)),
    "many tiles": (storing(197, 192, 192), MmaSchedule(128, 64, 64, 4, 1, 3, early=1)),
    "parts": (storing(50, 96, 136), replace(SMALL, split=3)),
    "bf16, rms": (storing(50, 96, 100, RMS, precision=Precision.BF16), SMALL),
    "alike in all rows": (storing_alike(50, 96, 136), SMALL),
}
READ_BY_WARPGROUPS = {
    "by columns": (of_columns(70, 136, 160), TILE),
    "by columns, batch": (batched(of_columns(70, 16, 64), 2, 3), TILE),
    "by columns, persistent": (of_columns(197, 104, 96), replace(TILE, persistent=3)),
    "by columns, turns of two products": (
        of_columns(397, 104, 160),
        WgmmaSchedule(128, 64, 64, 2, persistent=2, pingpong=1),
    ),
    "by columns, handed registers": (
        of_columns(397, 200, 160),
        WgmmaSchedule(192, 192, 64, 3, persistent=2),
    ),
    "by columns, parts in memory": (of_columns(70, 72, 256), replace(TILE, split=4)),
    "by columns, parts in a cluster": (of_columns(70, 96, 256), replace(TILE, split=3, cluster=1)),
    "by columns, bf16, rms": (
        of_columns(130, 40, 96, RMS, precision=Precision.BF16),
        replace(TILE, block_m=128, block_n=48),
    ),
    "ragged": (reading(50, 40, 160), TILE),
    "one row, one group": (reading(1, 24, 32), TILE),
    "two warpgroups, early": (reading(197, 72, 192), WgmmaSchedule(128, 64, 128, 2, early=1)),
    "batch": (batched(reading(70, 16, 64), 2, 3), TILE),
    "persistent": (reading(197, 100, 96), replace(TILE, persistent=3)),
    "turns, two products": (
        reading(197, 100, 160),
        WgmmaSchedule(128, 32, 64, 2, persistent=2, pingpong=1),
    ),
    "parts in a cluster": (reading(70, 96, 256), replace(TILE, split=3, cluster=1)),
    "parts in memory": (reading(70, 72, 256), replace(TILE, split=4)),
    "multicast": (reading(130, 130, 128), replace(TILE, share=1)),
    "bf16": (reading(50, 40, 160, precision=Precision.BF16), TILE),
    "rms": (reading(50, 40, 160, RMS), TILE),
    "rms, parts": (reading(50, 40, 256, RMS), replace(TILE, split=2, cluster=1)),
    "odd columns": (reading(9, 37, 64), TILE),
    "three warpgroups": (reading(230, 50, 96), replace(TILE, block_m=192, block_n=96)),
}
READ_BY_WARPS = {
    "ragged": (reading(50, 40, 160), SMALL),
    "batch, odd columns": (batched(reading(33, 19, 64), 2, 3), SMALL),
    "many tiles": (reading(197, 72, 192), MmaSchedule(128, 64, 64, 2, 2, 3, early=1)),
    "parts": (reading(50, 40, 160), replace(SMALL, split=3)),
    "bf16, rms": (reading(50, 40, 96, RMS, precision=Precision.BF16), SMALL),
}


def _cases(by_warpgroups: dict[str, Any], by_warps: dict[str, Any]) -> list[Any]:
    return [
        *(
            pytest.param(WGMMA, *each, id=f"warpgroups: {name}")
            for name, each in by_warpgroups.items()
        ),
        *(pytest.param(MMA, *each, id=f"warps: {name}") for name, each in by_warps.items()),
    ]


@pytest.mark.parametrize("mean", [0.0, 50.0, 1000.0])
@pytest.mark.parametrize(
    ("template", "problem", "schedule"), _cases(STORED_BY_WARPGROUPS, STORED_BY_WARPS)
)
def test_moments_are_those_of_what_is_stored(
    template: Any, problem: MomentsMatmul, schedule: Any, mean: float, fast_execution: Any
) -> None:
    assert error_of_stored(fast_execution, template, problem, schedule, mean) <= 1


@pytest.mark.parametrize("mean", [0.0, 50.0, 1000.0])
@pytest.mark.parametrize(
    ("template", "problem", "schedule"), _cases(READ_BY_WARPGROUPS, READ_BY_WARPS)
)
def test_products_agree_with_float64(
    template: Any, problem: NormedMatmul, schedule: Any, mean: float, fast_execution: Any
) -> None:
    assert error_of_read(fast_execution, template, problem, schedule, mean) <= 1


STORING, READING = (storing(70, 160, 136), TILE), (reading(70, 40, 160), TILE)
STORING_FAULTS = [
    Fault(
        "moments are of what is not rounded",
        change("moments_of_rounded", "(rounded)", "(accumulators)"),
    ),
    Fault(
        "squares are not centred",
        change("squares_centred", "toFloat(values[e]) - mean", "toFloat(values[e])"),
    ),
    Fault(
        "a mean is of one lane's columns", change("mean_of_group", "warpSum<kLanes>(sum)", "sum")
    ),
    Fault(
        "another group's place",
        change("group_of_moments", "column_ / kGroup", "column_ / (2 * kGroup)"),
    ),
]
READING_FAULTS = [
    Fault("groups count as of one mean", change("means_differ", "square +=", "square *= 1 + 0 *")),
    Fault("groups that are not there count", change("groups_of_row", "group >= Groups", "false")),
    Fault("moments of another row", change("row_of_moments", "i * 8", "i * 4")),
    Fault("rows keep their means", change("mean_taken", "-=", "+=")),
]
OF_LOWER_ROWS = Fault(
    "lower rows have the moments of the upper",
    change("moments_of_product", "product * Shape::kProductRows", "0"),
)
IN_TURNS = WgmmaSchedule(128, 32, 64, 2, persistent=2, pingpong=1)
"""Each warpgroup multiplies twice 64 rows."""


def test_right_kernels_pass_where_faults_are_planted(checking_execution: Any) -> None:
    assert error_of_stored(checking_execution, WGMMA, *STORING, mean=50.0) <= 1
    assert error_of_read(checking_execution, WGMMA, *READING, mean=50.0) <= 1


@pytest.mark.parametrize("fault", STORING_FAULTS, ids=lambda fault: fault.name)
def test_faults_of_storing_are_seen(fault: Fault, checking_execution: Any) -> None:
    problem, schedule = STORING
    wrong = plant(WGMMA, fault)
    with pytest.raises((EmulatorError, AssertionError)):
        assert error_of_stored(checking_execution, wrong, problem, schedule, 50.0) <= 1


@pytest.mark.parametrize("fault", READING_FAULTS, ids=lambda fault: fault.name)
def test_faults_of_reading_are_seen(fault: Fault, checking_execution: Any) -> None:
    problem, schedule = READING
    wrong = plant(WGMMA, fault)
    with pytest.raises((EmulatorError, AssertionError)):
        assert error_of_read(checking_execution, wrong, problem, schedule, 50.0) <= 1


def test_products_one_below_the_other_have_moments_of_their_own(checking_execution: Any) -> None:
    problem, wrong = reading(197, 40, 160), plant(WGMMA, OF_LOWER_ROWS)
    assert error_of_read(checking_execution, WGMMA, problem, IN_TURNS, 50.0) <= 1
    with pytest.raises((EmulatorError, AssertionError)):
        assert error_of_read(checking_execution, wrong, problem, IN_TURNS, 50.0) <= 1


@pytest.mark.parametrize(
    ("template", "schedule"), [(WGMMA, replace(TILE, block_n=48)), (MMA, replace(SMALL, warps_n=4))]
)
def test_a_warp_has_whole_groups(template: Any, schedule: Any) -> None:
    problem = storing(64, 96, 64)
    assert "32 columns" in (template.why_illegal(problem, schedule, H200) or "")
    assert template.why_illegal(matmul(64, 96, 64), schedule, H200) is None


def test_parts_of_rows_with_moments_are_normalised() -> None:
    assert WGMMA.why_illegal(reading(64, 64, 768), replace(TILE, split=2), H200) is None


@pytest.mark.parametrize("problem", [storing(16, 64, 768), reading(16, 64, 768)])
def test_only_tiles_on_tensor_cores_know_moments(problem: Matmul) -> None:
    reasons = {
        t.name: t.why_not(problem, H200) for t in TEMPLATES if isinstance(problem, t.problem_type)
    }
    assert {n for n, reason in reasons.items() if reason is None} == {"gemm_mma", "gemm_wgmma"}


def test_moments_are_of_whole_groups_in_fp32() -> None:
    problem = storing(16, 64, 64)
    wrong = replace(problem, moments=replace(problem.moments, dtype=problem.y.dtype))
    assert "fp32" in dict(wrong.contradictions())["moments"]
    assert "groups" in dict(replace(problem, n=48).contradictions())["moments"]


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [
        (storing(197, 768, 768), WgmmaSchedule(64, 64, 64, 4, early=1, split=2, cluster=1)),
        (storing(6304, 768, 3072), WgmmaSchedule(192, 192, 64, 4, early=1)),
        (
            storing(6304, 768, 768),
            WgmmaSchedule(128, 128, 64, 3, persistent=132, pingpong=1, residual=2),
        ),
        (reading(6304, 3072, 768), WgmmaSchedule(192, 192, 64, 4, early=1)),
        (reading(6304, 3072, 768), WgmmaSchedule(128, 256, 64, 3, early=1)),
        (reading(6304, 3072, 768), WgmmaSchedule(128, 128, 64, 4, persistent=132)),
        (reading(197, 2304, 768), WgmmaSchedule(64, 96, 64, 4, early=1)),
        (storing(6304, 768, 768), WgmmaSchedule(128, 128, 64, 4, persistent=132, pingpong=1)),
        (reading(6304, 3072, 768), WgmmaSchedule(128, 128, 64, 4, persistent=132, pingpong=1)),
        (reading(6304, 3072, 768), WgmmaSchedule(128, 256, 64, 3, persistent=132)),
        (
            storing(6304, 3072, 768),
            WgmmaSchedule(192, 128, 64, 3, persistent=132, residual=1),
        ),
    ],
    ids=lambda each: each.words() if isinstance(each, Matmul) else str(each),
)
def test_machine_code_keeps_all_in_registers(problem: Matmul, schedule: WgmmaSchedule) -> None:
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    (source,) = WGMMA.instantiate(problem, schedule)
    resources = load_nvrtc().compile(source, "sm_90a").resources
    assert resources.spill_store_bytes == resources.stack_bytes == 0


@pytest.mark.parametrize(
    ("problem", "schedule"),
    [
        (storing(6304, 3072, 768), WgmmaSchedule(192, 256, 64, 2)),
        (reading(6304, 3072, 768), WgmmaSchedule(192, 256, 64, 2)),
    ],
    ids=lambda each: each.words() if isinstance(each, Matmul) else str(each),
)
def test_what_would_spill_is_not_legal(problem: Matmul, schedule: WgmmaSchedule) -> None:
    assert "would spill" in (WGMMA.why_illegal(problem, schedule, H200) or "")
