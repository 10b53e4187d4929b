"""Products of normalised rows: numbers on the emulator against float64, ragged rows, odd values of rows, faults."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, drop, move, plant
from support.problems.warpgroup_layers import matmul
from support.problems.warpgroup_layers import normed as of_normed_rows

from wpk.build import load_nvrtc
from wpk.dtypes import Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.libraries.definition import finish, normalise, row_scales
from wpk.problems import NormedMatmul, NormKind
from wpk.schedules import packings
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.mma_tiles import MmaSchedule
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.row_norm import fragment_slots
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


def with_means(a: Array, mean: float) -> Array:
    """Rows with two channels far from all others, and means of ``mean`` at most."""
    a[..., [0, a.shape[-1] // 2]] *= 20
    means: Array = mean * np.random.default_rng(2).uniform(-1, 1, (*a.shape[:-1], 1))
    return a + means


def with_odd_rows(a: Array) -> Array:
    """Every kind of row that loses its variance to something: each tenth row is of one kind."""
    spread = a.copy()
    for kind, (mean, scale) in enumerate(
        [(0, 0), (3, 0), (1e-3, 0), (0, 1e-7), (0.5, 1e-3), (10, 1), (-200, 1), (1e4, 1), (0, 500)]
    ):
        a[..., kind::10, :] = mean + scale * spread[..., kind::10, :]
    a[..., 9::10, 3] = 3e4  # what is left has one element far from all others
    return a


def worst_error(
    execution: Any,
    template: Any,
    problem: NormedMatmul,
    schedule: Any,
    values: Callable[[Array], Array],
) -> float:
    """The largest error in units of what roundings of sums in fp32, and that of the output, explain.

    ``values`` makes rows of those that are drawn with a variance of one; the columns of the matrix have means, too.
    """
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    rng, storage = np.random.default_rng(1), problem.precision.storage.numpy
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value)
    a = values(rng.standard_normal((*shape, problem.k))).astype(storage)
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
    reference = finish(problem.epilogue, normalise(a, problem) @ b, wide)
    terms = (np.abs(a) * row_scales(a, problem)) @ np.abs(b) + sum(map(np.abs, wide))
    allowed = 4 * 2.0**-24 * np.sqrt(problem.k) * terms + 1e-30
    allowed += problem.y.dtype.unit_roundoff * np.abs(reference)
    return float((np.abs(y - reference) / allowed).max())


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
    "persistent, multicast": (normed(197, 130, 72), replace(TILE, persistent=4, share=2)),
    "multicast": (normed(130, 130, 128), replace(TILE, share=1)),
    "bf16": (normed(50, 40, 136, precision=Precision.BF16), TILE),
    "rms": (normed(50, 40, 136, RMS), TILE),
    "odd columns": (normed(9, 37, 64), TILE),
}
WARPS = {
    "ragged": (normed(50, 40, 136), SMALL),
    "one row, odd elements": (normed(1, 24, 37), SMALL),
    "four side by side": (normed(20, 70, 80), MmaSchedule(32, 64, 32, 1, 4, 3)),
    "batch, odd columns": (batched(normed(33, 19, 64), 2, 3), SMALL),
    "many tiles": (normed(197, 72, 192), MmaSchedule(128, 64, 64, 2, 2, 3, early=1)),
    "bf16, rms": (
        normed(50, 40, 100, RMS, precision=Precision.BF16),
        replace(SMALL, warps_n=1),
    ),
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
    values = partial(with_means, mean=mean)
    assert worst_error(fast_execution, template, problem, schedule, values) <= 1


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
@pytest.mark.parametrize(
    ("template", "schedule"), [(WGMMA, TILE), (MMA, SMALL)], ids=["warpgroups", "warps"]
)
def test_odd_rows_agree_with_float64(
    template: Any, schedule: Any, precision: Precision, fast_execution: Any
) -> None:
    problem = normed(50, 40, 136, precision=precision)
    assert worst_error(fast_execution, template, problem, schedule, with_odd_rows) <= 1


LARGE = partial(with_means, mean=1000.0)
FAULTS = [
    Fault("rows lose nothing beforehand", change("rows_shifted", "ofQuad(sum)", "0 * ofQuad(sum)")),
    Fault("rows keep their means", change("mean_taken", "-=", "+=")),
    Fault("what is behind a row counts", change("row_ends", "isInside(first, element)", "true")),
    Fault(
        "warps look at the rows of the first one",
        change("rows_looked", "warp * 16", "0"),
    ),
    Fault(
        "another part of a row is looked at", change("rows_of_norm", "box * Shape::boxBytesA", "0")
    ),
    Fault(
        "the lower rows of a tile are not looked at", change("rows_of_norm", "set * kSetBytes", "0")
    ),
    Fault("nobody waits for moments", drop("moments_awaited")),
    Fault(
        "the first of four warps is enough", change("moments_counted", "Shape::momentWarps", "1")
    ),
    Fault("moments are told before they are there", move("moments_told", before="moments_taken")),
    Fault("a stage is kept", drop("moments_release")),
    Fault("all warps have scales of the first", change("scales_placed", "warp * 16", "0")),
    Fault("all warps take scales of the first", change("scales_of_warp", "ofGroup", "0")),
    Fault("sums are those of the first tile", drop("moments_in_turn")),
]
OF_WARPS = [
    Fault(
        "warps side by side look at all steps",
        change("steps_in_turns", "step % Shape::warpsN != warpIndex() % Shape::warpsN", "false"),
    ),
    Fault(
        "lower rows have the sums of the upper ones",
        change("warps_side_by_side", "warpIndex() / Shape::warpsN * Shape::warpsN", "0"),
    ),
    Fault("sums are read before they are there", drop("sums_there")),
]
BOXES = normed(70, 40, 136), replace(TILE, block_k=128)
IN_TURN = normed(300, 100, 136), WgmmaSchedule(128, 64, 64, 2, persistent=2)


def test_the_right_kernel_passes_where_faults_are_planted(checking_execution: Any) -> None:
    for case in (BOXES, IN_TURN):
        assert worst_error(checking_execution, WGMMA, *case, LARGE) <= 1
    assert worst_error(checking_execution, MMA, *WARPS["ragged"], LARGE) <= 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_are_seen(fault: Fault, checking_execution: Any) -> None:
    case = BOXES if "part of a row" in fault.name else IN_TURN
    with pytest.raises((EmulatorError, AssertionError)):
        assert worst_error(checking_execution, plant(WGMMA, fault), *case, LARGE) <= 1


@pytest.mark.parametrize("fault", OF_WARPS, ids=lambda fault: fault.name)
def test_faults_of_warps_are_seen(fault: Fault, checking_execution: Any) -> None:
    faulty = plant(MMA, fault)
    with pytest.raises((EmulatorError, AssertionError)):
        assert worst_error(checking_execution, faulty, *WARPS["ragged"], LARGE) <= 1


def test_parts_of_rows_are_not_normalised() -> None:
    problem = normed(64, 64, 768)
    for template, schedule in ((WGMMA, TILE), (MMA, SMALL)):
        reason = template.why_illegal(problem, replace(schedule, split=2), H200)
        assert reason is not None
        assert "normalised by all of its elements" in reason


def test_moments_are_counted_beside_products_not_in_front_of_them() -> None:
    problem = normed(1970, 2304, 768)
    one, persistent = (
        WGMMA.work(problem, replace(TILE, block_m=128, persistent=each).columns(), H200)
        for each in (0, 132)
    )
    boxes, sets = 12, 2
    assert one.beside_cycles == fragment_slots(problem) * 4 * boxes * sets
    assert persistent.beside_cycles == one.beside_cycles * persistent.turns
    assert one.thread_slots == 0
    assert one.threads == 2 * 128 + 32 + 128


def test_warps_side_by_side_share_the_moments() -> None:
    problem = normed(1970, 2304, 768)
    alone, four = (
        MMA.work(problem, MmaSchedule(32, 128, 32, 1, each, 3).columns(), H200).thread_slots
        for each in (1, 4)
    )
    assert alone == 4 * four > 0


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
        WgmmaSchedule(64, 192, 64, 6, early=1),
        WgmmaSchedule(128, 128, 64, 4, persistent=132),
        WgmmaSchedule(64, 128, 64, 4, persistent=132, pingpong=1),
    ],
    ids=str,
)
def test_machine_code_keeps_moments_in_registers(schedule: WgmmaSchedule) -> None:
    problem = normed(1970, 2304, 768)
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    (source,) = WGMMA.instantiate(problem, schedule)
    compiled = load_nvrtc().compile(source, "sm_90a")
    assert compiled.resources.spill_store_bytes == compiled.resources.stack_bytes == 0
    assert "serialized" not in compiled.log


def test_tiles_that_would_spill_are_refused() -> None:
    """Spills were seen in each: warps for moments leave 128 registers to a thread, or 168."""
    problem = normed(1970, 2304, 768)
    for rows, columns in ((64, 208), (64, 240), (128, 112), (128, 160)):
        reason = WGMMA.why_illegal(problem, WgmmaSchedule(rows, columns, 64, 3), H200)
        assert reason is not None
        assert "more would spill" in reason
