"""Whatever is legal can be launched, however large the problem: its grid, its block and its tensor maps are within what CUDA takes."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from support.problems.registered import PROBLEMS

from wpk.dims import evaluate
from wpk.extent import MAX_SIZE, Extent
from wpk.launch import (
    CounterArgument,
    Launch,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.binding import bind_map
from wpk.plan.fields import MAX_BYTES
from wpk.problems import Matmul, Problem
from wpk.schedules.registry import TEMPLATES
from wpk.targets.registry import find_target
from wpk.tensor_maps import faults as map_faults

H100 = find_target("h100")
GRID = (MAX_SIZE, 65535, 65535)
"""CUDA C++ programming guide, "Technical specifications per compute capability"."""

LARGEST_CLUSTER = 16
SCHEDULES = 6
"""Of a space, all over it."""


def launch_faults(problem: Problem, launch: Launch) -> Iterator[str]:
    """What CUDA would refuse, or a kernel could not count."""
    grid = [evaluate(size, {}) for size in launch.grid]
    if any(not 1 <= size <= most for size, most in zip(grid, GRID, strict=True)):
        yield f"grid {grid}"
    if any(size % part for size, part in zip(grid, launch.cluster, strict=True)):
        yield f"cluster {launch.cluster} of grid {grid}"
    x, y, z = launch.cluster
    if not 1 <= x * y * z <= LARGEST_CLUSTER:
        yield f"cluster {launch.cluster}"
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if not 1 <= threads <= H100.max_threads_block:
        yield f"block {launch.block}"
    if not 0 <= launch.shared_bytes <= H100.max_shared_block:
        yield f"{launch.shared_bytes} bytes of shared memory"
    inputs, _ = problem.accesses()
    for argument in launch.arguments:
        match argument:
            case SizeArgument(size) if not -MAX_SIZE - 1 <= evaluate(size, {}) <= MAX_SIZE:
                yield f"size {evaluate(size, {})}"
            case WorkspaceArgument(size) if not 0 <= evaluate(size, {}) <= MAX_BYTES:
                yield f"workspace {evaluate(size, {})}"
            case CounterArgument(count) if not 0 <= evaluate(count, {}) <= MAX_SIZE:
                yield f"counters {evaluate(count, {})}"
            case TensorMapArgument(index):
                access = inputs[index]
                element = (
                    problem.precision.storage.bytes if access is None else access.tensor.dtype.bytes
                )
                for name, fault in map_faults(bind_map(argument, 1 << 20, element, {})):
                    yield f"tensor map: {name} {fault}"


def _extents(problem: Problem) -> Iterator[Extent]:
    """The sizes that a launch is given."""
    for field in fields(problem):
        given = getattr(problem, field.name)
        yield from (
            e for e in (given if isinstance(given, tuple) else (given,)) if isinstance(e, Extent)
        )


def _grown(problem: Problem, size: int) -> Problem:
    """The same with its first extent as large as this, and strides as they were."""
    for field in fields(problem):
        given = getattr(problem, field.name)
        if isinstance(given, Extent):
            return replace(problem, **{field.name: Extent(size)})
        if isinstance(given, tuple) and given and isinstance(given[0], Extent):
            return replace(problem, **{field.name: (Extent(size), *given[1:])})
    raise ValueError(f"{problem.words()} has no extent")


def _legal(template: Any, problem: Any) -> list[Any]:
    _, columns = template.space(problem, H100)
    count = len(next(iter(columns.values())))
    rows = {count * place // SCHEDULES for place in range(SCHEDULES)} if count else set()
    return [template.schedule(columns, row) for row in sorted(rows)]


SIZES = (32, 1 << 18, 1 << 22, 1 << 26, MAX_SIZE)
"""Of the first extent: a large batch, and sizes near what 32 bits count."""

CARRIED = [
    pytest.param(problem, template, id=f"{name}-{template.name}")
    for name, problem in PROBLEMS.items()
    for template in TEMPLATES
    if name.rsplit("_", 1)[-1] not in ("tf32", "bf16", "fp64")
    and not any(extent.free for extent in _extents(problem))
    and isinstance(problem, template.problem_type)
    and template.why_not(problem, H100) is None
]


@pytest.mark.parametrize(("problem", "template"), CARRIED)
def test_what_is_legal_can_be_launched_at_any_size(problem: Any, template: Any) -> None:
    launched = 0
    for size in SIZES:
        grown = _grown(problem, size)
        if isinstance(problem, Matmul) and template.why_not(grown, H100) is not None:
            grown = replace(problem, m=Extent(size))  # it has no batch
        if template.why_not(grown, H100) is None:
            for schedule in _legal(template, grown):
                assert template.why_illegal(grown, schedule, H100) is None
                launches = template.launches(grown, schedule)
                assert not [f for each in launches for f in launch_faults(grown, each)], schedule
                launched += len(launches)
    assert launched or template.name == "gemm_skinny"  # which is for few rows


def test_a_grid_that_is_too_large_is_refused_in_words() -> None:
    problem = _grown(PROBLEMS["pooling"], 1 << 26)
    template = next(t for t in TEMPLATES if t.name == "pooling")
    schedule = _legal(template, PROBLEMS["pooling"])[0]
    assert any(
        f.startswith("grid")
        for each in template.launches(problem, schedule)
        for f in launch_faults(problem, each)
    )
    reason = template.why_illegal(problem, schedule, H100)
    assert reason is not None
    assert "kernels count at most 2147483647" in reason


def test_clusters_beyond_a_grids_second_axis_are_refused() -> None:
    template = next(t for t in TEMPLATES if t.name == "recurrence_mma")
    small = PROBLEMS["recurrence_fp16"]
    clustered = next(s for s in _legal(template, small) if s.exchange == 0)
    reason = template.why_illegal(_grown(small, 1 << 22), clustered, H100)
    assert reason is not None
    assert "65535 clusters" in reason
