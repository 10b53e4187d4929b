"""Every template that streams: its unit as reviewed, compiled for the GPU, its space and its legality."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import convolution

from wpk.build import load_nvrtc
from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.errors import CompileError
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.performance.pul import pul
from wpk.problems import (
    Advance,
    Determinant,
    Elementwise,
    Epilogue,
    Gather,
    IndexedRead,
    IndexedWrite,
    Normalisation,
    Pad,
    PlacedRows,
    Pooling,
    PrefixScan,
    Reduction,
    Resize,
    RoiAlign,
    RoiMode,
    RowPlacing,
    ScanKind,
    Tensor,
    TopIndices,
    WriteKind,
)
from wpk.problems.movement import NearestMode, PadMode, ResizeCoordinates, ResizeMode
from wpk.problems.normalisation import NormKind
from wpk.problems.pooling import PoolKind
from wpk.problems.reduction import ReduceKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

H200 = find_target("h200")
BATCH = Extent(8, "n")
HALF, SINGLE = DType.FP16, DType.FP32


def image(dtype: DType, c: int, h: int, w: int) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


BIAS = Epilogue(apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(SINGLE, (0, 1, 0, 0)),))
AFFINE = Epilogue(
    apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1)), (Tensor(SINGLE, (0, 0, 1)),) * 2
)
ROWS = Tensor(HALF, (128 * 768, 768, 1))
PROBLEMS: dict[str, Any] = {
    "depthwise": convolution(96, size=28, stride=2, groups=96, n=BATCH, bias=DType.FP32, relu=True),
    "pooling": Pooling(
        *(PoolKind.AVERAGE, BATCH, 64, 28, 28, 14, 14, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
        *(False, image(HALF, 64, 28, 28), image(HALF, 64, 14, 14), BIAS),
    ),
    "roi_align": RoiAlign(
        *(RoiMode.AVERAGE, True, 1, 0.25, Extent(100, "n"), 2, 64, 50, 68, 7, 7),
        *(image(HALF, 64, 50, 68), Tensor(SINGLE, (4, 1))),
        *(Tensor(DType.INT64, (1,), alignment=8), image(HALF, 64, 7, 7), BIAS),
    ),
    "reduction": Reduction(
        *(ReduceKind.MEAN, BATCH, (8, 512), (7, 7), Operand(0)),
        *((Tensor(HALF, (49 * 512, 1, 7 * 512, 512)),), Tensor(HALF, (512, 1)), Epilogue()),
    ),
    "normalisation": Normalisation(
        *(NormKind.LAYER, BATCH, (8, 128), 768, 1e-5, apply("Add", Operand(0), Operand(1))),
        *((ROWS, ROWS), ROWS, AFFINE),
    ),
    "elementwise": Elementwise(
        *(BATCH, (8, 64, 56, 56), apply("Mul", Operand(0), apply("Sigmoid", Operand(0)))),
        *((image(HALF, 64, 56, 56),), image(HALF, 64, 56, 56)),
    ),
    "elementwise_tiled": Elementwise(
        *(BATCH, (8, 64, 56, 56), Operand(0)),
        *((Tensor(SINGLE, (64 * 3136, 3136, 56, 1)),), image(HALF, 64, 56, 56)),
    ),
    "gather": Gather(
        *(Extent(1), 30522, BATCH.times(128), 768, Tensor(HALF, (0, 768, 1))),
        *(Tensor(DType.INT64, (0, 1), alignment=8), Tensor(HALF, (0, 768, 1))),
    ),
    "indexed_read": IndexedRead(
        *(BATCH, (8, 128, 768), (4, 50), Tensor(HALF, (0, 0, 1, 50 * 768, 768))),
        *(Tensor(DType.INT64, (256, 2, 0, 1), alignment=8), Tensor(HALF, (128 * 768, 768, 1))),
    ),
    "indexed_write": IndexedWrite(
        *(WriteKind.ADD, BATCH, (8, 12), (512,), 16, 64, False, Advance.NONE),
        *(Tensor(HALF, (12 * 512 * 64, 512 * 64, 64, 1)),),
        *(Tensor(DType.INT64, (16, 0, 1, 0, 0), alignment=8),),
        *(Tensor(HALF, (12 * 16 * 64, 16 * 64, 64, 1)),),
        *(Tensor(HALF, (12 * 512 * 64, 512 * 64, 64, 1)),),
    ),
    "latest_write": IndexedWrite(
        *(WriteKind.NONE, BATCH, (8, 64), (3136,), 784, 1, False, Advance.NONE),
        *(Tensor(HALF, (0, 0, 0, 0)), Tensor(DType.INT64, (64 * 784, 784, 1, 1, 0), alignment=8)),
        *(Tensor(HALF, (64 * 784, 784, 1, 1)), Tensor(HALF, (64 * 3136, 3136, 1, 1))),
    ),
    "placed_rows": PlacedRows(
        *(RowPlacing.FIRST, BATCH, Extent(128, "s"), 768),
        *(Tensor(HALF, (768, 1)), Tensor(HALF, (768, 1))),
    ),
    "determinant": Determinant(
        *(BATCH, (8, 128), 4, Tensor(SINGLE, (128 * 16, 16, 4, 1)), Tensor(SINGLE, (128, 1))),
    ),
    "prefix_scan": PrefixScan(
        *(ScanKind.SUM, False, False, BATCH, (8, 16), 512, Tensor(HALF, (8192, 512, 1))),
        *(Tensor(HALF, (8192, 512, 1)),),
    ),
    "arg_reduction": TopIndices(
        *(True, False, BATCH, (8,), 50257, 1, Tensor(SINGLE, (50260, 1))),
        *(Tensor(DType.INT64, (1, 1), alignment=8),),
    ),
    "top_by_rank": TopIndices(
        *(True, False, BATCH, (8, 8), 100, 2, Tensor(SINGLE, (800, 1, 8))),
        *(Tensor(DType.INT64, (16, 2, 1), alignment=8),),
    ),
    "top_by_sorting": TopIndices(
        *(False, False, BATCH, (8,), 8400, 300, Tensor(HALF, (8400, 1))),
        *(Tensor(DType.INT64, (300, 1), alignment=8),),
    ),
    "pad": Pad(
        *(BATCH, (8, 64, 28, 28), (8, 64, 30, 30), (0, 0, 1, 1), PadMode.CONSTANT, 0.5),
        *(image(HALF, 64, 28, 28), image(HALF, 64, 30, 30)),
    ),
    "resize": Resize(
        *(ResizeMode.LINEAR, ResizeCoordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_FLOOR, BATCH),
        *(64, 14, 14, 28, 28, (2.0, 2.0), image(HALF, 64, 14, 14), image(HALF, 64, 28, 28)),
    ),
}


def template(name: str) -> Any:
    return TEMPLATE_OF[name]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_unit_is_the_reviewed_one(name: str, assert_golden: Callable[[str, str], None]) -> None:
    chosen, problem = template(name), PROBLEMS[name]
    schedule = chosen.schedule(chosen.space(problem, H200)[1], 0)
    (source,) = chosen.instantiate(problem, schedule)
    (launch,) = chosen.launches(problem, schedule)
    assert (launch.kernel, launch.entry) == (source.digest, source.entry)
    assert_golden(f"schedules/{name}.cu", source.text)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_first_and_a_far_schedule_compile_without_spills(name: str) -> None:
    chosen, problem = template(name), PROBLEMS[name]
    columns = chosen.space(problem, H200)[1]
    count = len(next(iter(columns.values())))
    # A step prime to the axes' lengths reaches every value of every axis.
    for arch, row in (("sm_80", 0), ("sm_90a", count * 7 // 11), ("sm_90a", count - 1)):
        schedule = chosen.schedule(columns, row)
        (source,) = chosen.instantiate(problem, schedule)
        resources = load_nvrtc().compile(source, arch).resources
        assert not resources.spills, f"{name} {schedule}"
        assert resources.stack_bytes == 0, f"{name} {schedule}"


@pytest.mark.parametrize("name", ["elementwise_tiled", "reduction"])
def test_the_models_know_the_shared_memory_that_kernels_declare(name: str) -> None:
    chosen, problem = template(name), PROBLEMS[name]
    columns = chosen.space(problem, H200)[1]
    for row in (0, len(columns["vector"]) * 7 // 11):
        schedule = chosen.schedule(columns, row)
        (source,) = chosen.instantiate(problem, schedule)
        resources = load_nvrtc().compile(source, "sm_90a").resources
        (counted,) = chosen.work(problem, schedule.columns(), H200).shared_bytes
        assert resources.static_shared_bytes == counted


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [2, pytest.param(24, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_legal_schedules_hardly_ever_spill(name: str, drawn: int) -> None:
    """A word now and then, far below the register limit, is ptxas's; such a choice is refused."""
    chosen, problem = template(name), PROBLEMS[name]
    columns = chosen.space(problem, H200)[1]
    count = len(next(iter(columns.values())))
    spills = []
    for row in np.random.default_rng(0).permutation(count)[:drawn]:
        (source,) = chosen.instantiate(problem, chosen.schedule(columns, int(row)))
        resources = load_nvrtc().compile(source, "sm_90a").resources
        spills += [resources.spill_store_bytes] if resources.spills else []
    assert len(spills) <= 1
    assert sum(spills) <= 8


CHANNELS_FIRST = Tensor(HALF, (96 * 196, 196, 14, 1), alignment=2)
ILLEGAL: dict[str, tuple[str, dict[str, Any], dict[str, int]]] = {
    "depthwise: vectors across rows": (
        "depthwise",
        {"y": CHANNELS_FIRST},
        {"vector": 2, "pixels": 1, "threads": 64},
    ),
    "depthwise: registers": (
        "depthwise",
        {"filter": (3, 17)},
        {"vector": 8, "pixels": 4, "threads": 64},
    ),
    "pooling: vectors across rows": (
        "pooling",
        {"y": Tensor(HALF, (64 * 196, 196, 14, 1), alignment=2)},
        {"vector": 2, "threads": 64},
    ),
    "reduction: shared memory": (
        "reduction",
        {"inner": (700, 7)},
        {"vector": 16, "outputs": 2, "splits": 512},
    ),
    "normalisation: rows": (
        "normalisation",
        {},
        {"vector": 8, "threads": 64, "rows": 2, "cached": 1},
    ),
    "normalisation: registers": (
        "normalisation",
        {"cols": 4096},
        {"vector": 8, "threads": 32, "rows": 1, "cached": 1},
    ),
    "elementwise: registers": ("elementwise", {}, {"vector": 8, "items": 16, "threads": 64}),
    "elementwise_tiled: threads": (
        "elementwise_tiled",
        {},
        {"vector": 4, "tile": 32, "threads": 512},
    ),
    "elementwise_tiled: shared memory": (
        "elementwise_tiled",
        {},
        {"vector": 1, "tile": 128, "threads": 256},
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_what_is_illegal_does_not_compile(case: str) -> None:
    name, changes, parameters = ILLEGAL[case]
    chosen, problem = template(name), replace(PROBLEMS[name], **changes)
    schedule = chosen.schedule_type(**parameters)
    assert chosen.why_illegal(problem, schedule, H200) is not None
    (source,) = chosen.instantiate(problem, schedule)
    with pytest.raises(CompileError, match="static assertion"):
        load_nvrtc().compile(source, "sm_90a")


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_models_can_rank_the_space(name: str) -> None:
    chosen, problem = template(name), PROBLEMS[name]
    every, columns = chosen.space(problem, H200)
    count = len(next(iter(columns.values())))
    assert 1 < count <= every <= 10**5
    work = chosen.work(problem, columns, H200)
    scores = pul(work, H200).score
    assert scores.shape == (count,)
    assert ((scores > 0) & (scores <= 1)).all()
    limit = bound(problem, H200)
    seconds = estimate(work, limit, H200)
    assert (seconds >= limit.seconds).all()
    assert np.isfinite(seconds).all()
    # Loads and stores in all are at least the problem's own, and not absurdly more.
    moved = work.blocks * (work.block_transactions * H200.transaction_bytes + work.store_bytes)
    assert (moved >= 0.99 * limit.bytes).all()
    assert moved.min() <= 3 * limit.bytes


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_grid_covers_the_domain_at_every_batch(name: str) -> None:
    chosen, problem = template(name), PROBLEMS[name]
    schedule = chosen.schedule(chosen.space(problem, H200)[1], 0)
    assert chosen.kernel(problem, schedule).members["wide"], "a free batch may be of any size"
    (launch,) = chosen.launches(problem, schedule)
    for batch in (1, 7, 1000):
        extent = replace(problem.leading, value=batch * problem.leading.factor)
        fields = vars(problem).items()
        sizes = {name: extent for name, value in fields if value == problem.leading}
        work = chosen.work(replace(problem, **sizes), schedule.columns(), H200)
        blocks = evaluate(launch.grid[0], {problem.leading.free: batch})
        assert (blocks, *launch.grid[1:]) == (work.blocks[0], 1, 1)
        assert launch.block == (work.threads[0], 1, 1)


def test_templates_compete_and_refuse_in_words() -> None:
    plain, tiled = template("elementwise"), template("elementwise_tiled")
    for name in ("elementwise", "elementwise_tiled"):
        assert plain.why_not(PROBLEMS[name], H200) is None
    assert tiled.why_not(PROBLEMS["elementwise_tiled"], H200) is None
    reason = "no input is contiguous along another axis than the output"
    assert tiled.why_not(PROBLEMS["elementwise"], H200) == reason


def test_epsilon_and_scalars_reach_the_kernel_exactly() -> None:
    problem = replace(PROBLEMS["normalisation"], epsilon=1e-12, prologue=Scalar(0.1))
    chosen = template("normalisation")
    schedule = chosen.schedule(chosen.space(problem, H200)[1], 0)
    members = chosen.kernel(problem, schedule).members
    assert np.uint32(members["epsilon"]).view(np.float32) == np.float32(1e-12)
