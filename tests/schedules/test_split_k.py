"""Reductions split among blocks: numbers, order and counters on the emulator, for all four templates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects import problems

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.errors import CompileError
from wpk.expression import Acc, apply
from wpk.extent import Extent
from wpk.launch import CounterArgument, WorkspaceArgument
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.targets.registry import find_target

H200 = find_target("h200")
MMA = MmaSchedule(block_m=32, block_n=16, block_k=16, warps_m=2, warps_n=1, stages=3)
SIMT = SimtSchedule(
    block_m=16, block_n=16, block_k=8, thread_m=2, thread_n=2, row_major=0, padding=4, prefetch=1
)
SPLITS = (2, 3, 4, 6, 8, 9, 12, 16)
TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def convolution(precision: Precision, n: int, c: int, k: int, **more: Any) -> Convolution:
    """3 x 3 over a 5 x 4 image with bias, residual and ReLU; ``transposed`` ones have stride 2."""
    stride = 2 if more.get("transposed") else 1
    batch = Extent(n, "n") if more.pop("free", False) else Extent(n)
    return problems.convolution(
        *(c, k, (5, 4)), stride=stride, pads=1, n=batch, precision=precision, **TAIL, **more
    )


def matmul(precision: Precision, m: int, n: int, k: int, *, constant: bool = True) -> Matmul:
    """With bias, residual and ReLU; a ``b`` that is not constant lies contiguous along n."""
    return problems.matmul(m, n, k, precision=precision, constant=constant, **TAIL)


def tile(name: str, precision: Precision) -> Any:
    """A small tile of a template, with steps of as many bytes in every precision."""
    if name.endswith("simt"):
        return SIMT
    return replace(MMA, block_k=32 // precision.storage.bytes)


def steps(problem: Convolution | Matmul, schedule: Any) -> int:
    return -(-problem.reduction // schedule.block_k)


PRECISIONS = {
    "simt": [Precision.FP32, _slow(Precision.FP16)],
    "mma": [Precision.FP16, Precision.TF32, _slow(Precision.FP32), _slow(Precision.BF16)],
}
KINDS = [
    pytest.param(kind, p.values[0] if hasattr(p, "values") else p, marks=getattr(p, "marks", ()))
    for kind, precisions in PRECISIONS.items()
    for p in precisions
]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("kind", "precision"), KINDS)
def test_convolutions_agree_with_float64(
    kind: str,
    precision: Precision,
    split: int,
    fast_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    name = f"conv_{kind}"
    problem = convolution(precision, 1 + split % 3, 32, 21)
    schedule = replace(tile(name, precision), split=split)
    assert steps(problem, schedule) >= schedule.split
    check_convolution(fast_execution, TEMPLATE_OF[name], problem, schedule)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("kind", "precision"), KINDS)
def test_products_agree_with_float64(
    kind: str,
    precision: Precision,
    split: int,
    fast_execution: Any,
    check_matmul: Callable[..., None],
) -> None:
    name = f"gemm_{kind}"
    problem = matmul(precision, 33, 19, 269, constant=split % 2 == 0)
    check_matmul(
        fast_execution, TEMPLATE_OF[name], problem, replace(tile(name, precision), split=split)
    )


VARIANTS: dict[str, dict[str, Any]] = {
    "groups": {"groups": 3, "c": 12, "k": 9},
    "transposed": {"transposed": True, "c": 10, "k": 7},
    "transposed, groups": {"transposed": True, "groups": 2, "c": 16, "k": 8},
    "free batch": {"free": True, "c": 8, "k": 16},
}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["conv_mma", "conv_simt"])
def test_kinds_of_convolutions_are_right_under_every_check(
    name: str,
    variant: str,
    batch: int,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    precision = Precision.FP16
    problem = convolution(precision, batch, **VARIANTS[variant])
    schedule = replace(tile(name, precision), split=min(3, steps(problem, tile(name, precision))))
    assert schedule.split > 1
    check_convolution(checking_execution, TEMPLATE_OF[name], problem, schedule, batch=batch)


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("name", ["gemm_mma", "gemm_simt"])
def test_rows_and_their_memory_are_decided_at_run_time(
    name: str, rows: int, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = replace(matmul(Precision.FP16, 4, 24, 70), m=Extent(4, "n"))
    schedule = replace(tile(name, Precision.FP16), split=4)
    check_matmul(checking_execution, TEMPLATE_OF[name], problem, schedule, leading=rows)


@pytest.mark.parametrize("name", ["gemm_mma", "gemm_simt"])
def test_a_batch_of_products_is_right_under_every_check(
    name: str, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    problem = matmul(Precision.FP16, 21, 24, 70, constant=False)
    a, b, y = (
        Tensor(
            DType.FP16, (3 * r * c, r * c, c, 1), alignment=2 if c == 70 else 16 if c == 24 else 2
        )
        for r, c in ((21, 70), (70, 24), (21, 24))
    )
    problem = replace(
        problem, batch=(Extent(2), 3), a=a, b=b, y=y, epilogue=Epilogue(apply("Relu", Acc()))
    )
    schedule = replace(tile(name, Precision.FP16), split=4)
    check_matmul(checking_execution, TEMPLATE_OF[name], problem, schedule)


ALL = ("conv_mma", "conv_simt", "gemm_mma", "gemm_simt")


def _case(name: str) -> tuple[Any, list[np.ndarray], tuple[int, ...]]:
    """A problem, its memory, and the shape of its output; sums whose order can be seen."""
    rng = np.random.default_rng(11)
    if name.startswith("conv"):
        problem: Any = replace(convolution(Precision.FP16, 2, 24, 21), epilogue=Epilogue())
        y = problems.channels_last(DType.FP32, 21, 5, 4)
        x, w, shape = (2, 24, 5, 4), (21, 24, 3, 3), (2, 21, 5, 4)
    else:
        problem = replace(matmul(Precision.FP16, 33, 19, 216), epilogue=Epilogue())
        y = Tensor(DType.FP32, (0, 0, 19, 1))
        x, w, shape = (1, 1, 33, 216), (216, 19), (1, 1, 33, 19)
    return replace(problem, y=y), [rng.standard_normal(s).astype(np.float16) for s in (x, w)], shape


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_the_sum_does_not_depend_on_who_is_last(
    name: str, fast_execution: Any
) -> None:
    problem, (x, w), shape = _case(name)
    template, schedule = TEMPLATE_OF[name], replace(tile(name, Precision.FP16), split=8)
    tensor = problem.x if name.startswith("conv") else problem.a
    memory = [
        fast_execution.memory(tensor, x),
        packings.pack(template.packing(problem, schedule), w, problem),
    ]
    first = fast_execution.run(template, problem, schedule, memory, shape)
    for _ in range(12):  # blocks run in threads, in another order each time
        again = fast_execution.run(template, problem, schedule, memory, shape)
        np.testing.assert_array_equal(first, again)
    whole = fast_execution.run(template, problem, replace(schedule, split=1), memory, shape)
    assert (whole != first).any(), "sums in another order differ, or this test sees nothing"


@pytest.mark.parametrize("name", ALL)
def test_one_launch_asks_for_its_parts_and_a_counter_a_tile(name: str) -> None:
    problem, _, _ = _case(name)
    template, schedule = TEMPLATE_OF[name], replace(tile(name, Precision.FP16), split=3)
    (launch,) = template.launches(problem, schedule)
    x, y, z = launch.grid
    tiles = x * y
    assert z == 3
    assert launch.arguments[-2:] == (
        WorkspaceArgument(tiles * 3 * schedule.block_m * schedule.block_n * 4),
        CounterArgument(tiles),
    )
    (whole,) = template.launches(problem, replace(schedule, split=1))
    kinds = {type(argument) for argument in whole.arguments}
    assert not kinds & {WorkspaceArgument, CounterArgument}


@pytest.mark.parametrize("name", ALL)
def test_more_parts_than_steps_are_refused_here_and_there(name: str) -> None:
    problem, _, _ = _case(name)
    template, schedule = TEMPLATE_OF[name], tile(name, Precision.FP16)
    schedule = replace(schedule, split=steps(problem, schedule) + 1)
    reason = template.why_illegal(problem, schedule, H200)
    assert reason is not None
    assert "every part of the reduction has a step" in reason
    (source,) = template.instantiate(problem, schedule)
    with pytest.raises(CompileError, match="every part of the reduction has a step"):
        load_nvrtc().compile(source, "sm_90a")


@pytest.mark.parametrize("name", ALL)
def test_parts_beyond_what_the_target_can_use_are_refused(name: str) -> None:
    problem, _, _ = _case(name)
    schedule = replace(tile(name, Precision.FP16), split=8)
    if name.startswith("conv"):
        problem = replace(problem, n=Extent(400))
    else:
        problem = replace(problem, m=Extent(8000))
    reason = TEMPLATE_OF[name].why_illegal(problem, schedule, H200)
    assert reason is not None
    assert "useful" in reason


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(16, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", ALL)
def test_split_schedules_hardly_ever_spill(name: str, count: int) -> None:
    problem = (
        convolution(Precision.FP16, 2, 256, 256)
        if name.startswith("conv")
        else matmul(Precision.FP16, 128, 768, 768)
    )
    template = TEMPLATE_OF[name]
    _, columns = template.space(problem, H200)
    rows = np.flatnonzero(columns["split"] > 1)
    kernels = [
        load_nvrtc().compile(template.instantiate(problem, schedule)[0], "sm_90a").resources
        for row in np.random.default_rng(7).permutation(rows)[:count]
        for schedule in [template.schedule(columns, int(row))]
    ]
    assert sum(each.spill_store_bytes for each in kernels) <= 8
