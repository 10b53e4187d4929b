"""Templates of warpgroups: units as reviewed, spaces, legality against the headers, launches, refusals."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.problems.network_layers import dense, resnet
from support.problems.warpgroup_layers import by_columns, knowing_moments, normed

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dims import evaluate
from wpk.dtypes import ASKED, DType, Precision
from wpk.errors import CompileError
from wpk.execution import TensorMap
from wpk.launch import EARLY_LAUNCH, CounterArgument, TensorMapArgument, WorkspaceArgument
from wpk.performance import Columns
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Matmul, NormedMatmul, NormKind
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.consumer_registers import product_registers
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target
from wpk.tensor_maps import faults

H200 = find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=4, split=2, early=1)
COMPILE_SECONDS = 1.5
"""Most that a kernel may take of a fast processor; this one may be three times as slow."""


PROBLEMS: dict[str, Any] = {"conv_wgmma": resnet(), "gemm_wgmma": dense()}
EACH = pytest.mark.parametrize("name", PROBLEMS)


@EACH
def test_the_unit_is_the_reviewed_one(name: str, assert_golden: Callable[[str, str], None]) -> None:
    (source,) = TEMPLATE_OF[name].instantiate(PROBLEMS[name], TILE)
    assert_golden(f"schedules/{name}.cu", source.text)


@EACH
def test_the_launch_hands_over_maps_parts_and_its_attribute(name: str) -> None:
    chosen, problem = TEMPLATE_OF[name], PROBLEMS[name]
    (source,) = chosen.instantiate(problem, TILE)
    (launch,) = chosen.launches(problem, TILE)
    assert (launch.kernel, launch.entry) == (source.digest, source.entry)
    assert launch.attributes == (EARLY_LAUNCH,)
    assert launch.block == (160, 1, 1)
    assert [a.index for a in launch.arguments if isinstance(a, TensorMapArgument)] == [0, 1]
    assert [type(a) for a in launch.arguments[-2:]] == [WorkspaceArgument, CounterArgument]
    (meeting,) = chosen.launches(problem, replace(TILE, cluster=1))
    assert meeting.cluster == (1, 1, 2)
    assert {type(a) for a in meeting.arguments} == {type(a) for a in launch.arguments[:-2]}
    (plain,) = chosen.launches(problem, replace(TILE, split=1, early=0))
    assert plain.attributes == ()
    assert not {type(a) for a in plain.arguments} & {WorkspaceArgument, CounterArgument}


MORE: list[tuple[str, Any]] = [
    *PROBLEMS.items(),
    ("conv_wgmma", resnet(n=64)),
    ("gemm_wgmma", dense(4096, 4096, 4096)),
    ("conv_wgmma", resnet(precision=Precision.TF32)),
    ("gemm_wgmma", dense(precision=Precision.TF32)),
    ("conv_wgmma", resnet(precision=Precision.FP32)),
    ("gemm_wgmma", dense(precision=Precision.FP32)),
]


@pytest.mark.parametrize(("name", "problem"), MORE)
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_the_maps_are_such_as_hardware_takes(name: str, problem: Any, batch: int) -> None:
    chosen = TEMPLATE_OF[name]
    _, columns = chosen.space(problem, H200)
    for row in range(0, len(columns["split"]), 101):
        (launch,) = chosen.launches(problem, chosen.schedule(columns, row))
        for argument in launch.arguments:
            if isinstance(argument, TensorMapArgument):
                shape = tuple(evaluate(size, {"n": batch}) for size in argument.shape)
                strides = tuple(evaluate(size, {}) for size in argument.strides)
                form = (argument.box, argument.swizzle, argument.im2col, argument.to_tf32)
                size = problem.precision.storage.bytes
                assert not list(faults(TensorMap(256, size, shape, strides, *form)))


def _normed(plain: Matmul) -> NormedMatmul:
    return normed(by_columns(plain, DType.BF16), NormKind.LAYER)


SPACES: dict[str, tuple[str, Any]] = {
    "64 channels, 56x56": ("conv_wgmma", resnet(64, 56)),
    "256 channels, 14x14": ("conv_wgmma", resnet()),
    "512 channels, 7x7": ("conv_wgmma", resnet(512, 7)),
    "64 of 256 channels, 14x14": ("conv_wgmma", resnet(n=64)),
    "512 channels, 7x7, tf32": ("conv_wgmma", resnet(512, 7, precision=Precision.TF32)),
    "256 channels, 14x14, fp32": ("conv_wgmma", resnet(precision=Precision.FP32)),
    "a layer of DistilBERT": ("gemm_wgmma", dense()),
    "4096 cubed": ("gemm_wgmma", dense(4096, 4096, 4096)),
    "a GELU of many rows": ("gemm_wgmma", by_columns(dense(6304, 3072, 768), DType.BF16)),
    "normed rows with a GELU": ("gemm_wgmma", _normed(dense(6304, 3072, 768))),
    "normed rows with known moments and a GELU": (
        "gemm_wgmma",
        knowing_moments(_normed(dense(6304, 3072, 768))),
    ),
}


@pytest.mark.parametrize("case", SPACES)
def test_the_space_is_rich_but_bounded(case: str) -> None:
    name, problem = SPACES[case]
    total, columns = TEMPLATE_OF[name].space(problem, H200)
    assert 100 <= len(columns["split"]) <= 2500
    assert total <= 540_000


@pytest.mark.parametrize("case", SPACES)
def test_work_covers_the_problem_and_no_estimate_lies_under_the_bound(case: str) -> None:
    name, problem = SPACES[case]
    _, columns = TEMPLATE_OF[name].space(problem, H200)
    work = TEMPLATE_OF[name].work(problem, columns, H200)
    count = len(columns["split"])
    for array in (work.blocks, work.threads, work.registers, work.thread_loads, work.stages):
        assert array.shape == (count,)
        assert (array > 0).all()
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()
    assert (work.shared_bytes <= H200.max_shared_block).all()
    limit = bound(problem, H200)
    seconds = estimate(work, limit, H200)
    assert (seconds >= limit.seconds).all()
    assert np.isfinite(seconds).all()


def _compile(name: str, problem: Any, schedule: WgmmaSchedule) -> tuple[Any, float]:
    (source,) = TEMPLATE_OF[name].instantiate(problem, schedule)
    begin = time.process_time()
    kernel = load_nvrtc().compile(source, "sm_90a")
    return kernel, time.process_time() - begin


@EACH
@pytest.mark.parametrize("precision", list(ASKED))
def test_products_are_those_of_warpgroups(name: str, precision: Precision) -> None:
    problem = replace(PROBLEMS[name], precision=precision)
    tensor = "x" if name == "conv_wgmma" else "a"
    held = replace(getattr(problem, tensor), dtype=precision.storage)
    kernel, _ = _compile(name, replace(problem, **{tensor: held}), TILE)
    counts = count_tensor_core_instructions(kernel.cubin)[kernel.entry]
    kinds = {Precision.FP16: "f16", Precision.FP32: "tf32"}
    assert set(counts) == {f"hgmma.{kinds.get(precision, precision.value)}"}
    assert "serialized" not in kernel.log  # what ptxas says where it waits for every product


@EACH
@pytest.mark.parametrize(
    ("precision", "rows", "columns"),
    [
        *((Precision.BF16, 128, columns) for columns in (16, 64, 256)),
        *((Precision.FP32, 64, columns) for columns in (16, 64, 128)),
    ],
)
def test_registers_are_as_predicted(
    name: str, precision: Precision, rows: int, columns: int
) -> None:
    schedule = WgmmaSchedule(rows, columns, 128 // precision.storage.bytes, 3)
    problem = resnet(precision=precision) if name == "conv_wgmma" else dense(precision=precision)
    kernel, _ = _compile(name, problem, schedule)
    predicted = product_registers(schedule.columns(), precision)[0]
    assert abs(kernel.resources.registers - predicted) <= 8
    assert not kernel.resources.spills


def most_registers(name: str, problem: Any, columns: Columns) -> Iterator[int]:
    """Of each number of warpgroups the schedule that is predicted to take most registers."""
    predicted = TEMPLATE_OF[name].work(problem, columns, H200).registers
    for rows in np.unique(columns["block_m"]):
        yield int(np.where(columns["block_m"] == rows, predicted, 0).argmax())


OTHER_SIZES = {"64 channels, 56x56", "512 channels, 7x7", "64 of 256 channels, 14x14", "4096 cubed"}
"""Spaces of kernels like those of others, compiled among the exhaustive tests, which draw more of every space."""

COMPILED = [
    pytest.param(case, count, marks=[pytest.mark.exhaustive] * (count > 1 or case in OTHER_SIZES))
    for case in SPACES
    for count in (1, 6)
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "count"), COMPILED)
def test_legal_schedules_do_not_spill_and_compile_in_time(case: str, count: int) -> None:
    name, problem = SPACES[case]
    _, columns = TEMPLATE_OF[name].space(problem, H200)
    drawn = np.random.default_rng(4).permutation(len(columns["split"]))[:count]
    rows = {*map(int, drawn), *most_registers(name, problem, columns)}
    if count > 1:
        widest = np.flatnonzero(columns["block_n"] == columns["block_n"].max())
        rows |= {int(widest[0]), int(widest[-1])}
    for row in rows:
        schedule = TEMPLATE_OF[name].schedule(columns, row)
        kernel, seconds = _compile(name, problem, schedule)
        assert not kernel.resources.spills, schedule
        assert seconds <= 3 * COMPILE_SECONDS, schedule


# One broken limit of the headers each.
ILLEGAL = [
    replace(TILE, block_m=96),
    replace(TILE, block_m=256),
    replace(TILE, block_m=192, block_n=128, split=2),
    replace(TILE, block_m=192, persistent=2, pingpong=1),
    replace(TILE, block_n=8),
    replace(TILE, block_n=40),
    replace(TILE, block_n=512),
    replace(TILE, block_k=32),
    replace(TILE, block_k=320, stages=2),
    replace(TILE, block_k=256, stages=6),
    replace(TILE, block_n=256, stages=2),
    replace(TILE, stages=1),
    replace(TILE, stages=5, split=9),
    replace(TILE, stages=2, split=100),
    replace(TILE, early=2),
    replace(TILE, cluster=2),
    replace(TILE, cluster=1, split=1),
    replace(TILE, cluster=1, split=9, stages=2),
    replace(TILE, share=3, split=1),
    replace(TILE, share=2, split=1, block_n=16, shared_by=4),
    replace(TILE, share=2, split=1, shared_by=3),
    replace(TILE, split=1, shared_by=4),
    replace(TILE, share=1, split=4, cluster=1, shared_by=4, stages=2),
    replace(TILE, split=1, persistent=-1),
    replace(TILE, persistent=2),
    replace(TILE, split=1, share=1, persistent=3),
    replace(TILE, split=1, pingpong=1),
    replace(TILE, split=1, persistent=2, pingpong=2),
    replace(TILE, split=1, persistent=2, pingpong=1, block_m=128, block_n=256, stages=2),
]


@EACH
@pytest.mark.parametrize("schedule", ILLEGAL, ids=lambda s: str(s).replace(" ", ","))
def test_what_python_refuses_the_header_refuses(name: str, schedule: WgmmaSchedule) -> None:
    problem = resnet() if name == "conv_wgmma" else dense(k=2304)
    assert TEMPLATE_OF[name].why_illegal(problem, schedule, H200) is not None
    with pytest.raises(CompileError, match="static assertion"):
        _compile(name, problem, schedule)


def test_boxes_of_a_b_that_lies_across_are_whole() -> None:
    problem, schedule = replace(dense(), b_constant=False), replace(TILE, block_n=32)
    reason = TEMPLATE_OF["gemm_wgmma"].why_illegal(problem, schedule, H200)
    assert reason is not None
    assert "boxes of 64 columns" in reason
    with pytest.raises(CompileError, match="whole boxes of 64 columns"):
        _compile("gemm_wgmma", problem, schedule)
    kernel, _ = _compile("gemm_wgmma", problem, TILE)
    assert not kernel.resources.spills


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, pytest.param(20, marks=pytest.mark.exhaustive)])
@EACH
def test_python_and_header_agree_on_legality(name: str, count: int) -> None:
    problem = resnet(256, 14) if name == "conv_wgmma" else dense(256, 256, k=2304)
    values = (
        *((64, 128), (16, 48, 128), (64, 128), (1, 2, 4), (1, 2, 3, 40), (0, 1), (0, 1)),
        (0, 1, 2, 3),
        (0, 1, 2),
        (0, 1),
        (2, 4),
    )
    schedules = [WgmmaSchedule(*each) for each in product(*values)]
    for index in np.random.default_rng(3).permutation(len(schedules))[:count]:
        columns = schedules[index].columns()
        limits = TEMPLATE_OF[name].limits(problem)  # not what pays on a target
        refusals = [limit.refusal(columns) for limit in limits if not limit.holds(columns)[0]]
        try:
            _compile(name, problem, schedules[index])
            compiles = True
        except CompileError:
            compiles = False
        assert compiles == (not refusals), f"{schedules[index]}: {refusals}"
