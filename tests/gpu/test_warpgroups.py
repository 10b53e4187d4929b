"""Templates of warpgroups on the GPU: against the emulator, float64, themselves, and chained with early launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.launches.warpgroup_cases import (
    H200,
    HALF,
    HALO,
    PROBLEMS,
    SCHEDULES,
    STRICT,
    cases,
    convolution,
    matmul,
)
from support.launches.warpgroup_steps import Step, Tile, operands, operands_of, template
from support.numbers.fp32_operands import OPERANDS, OWN, activations, errors, fused_chain, leaning
from support.problems.warpgroup_layers import moments_of

from wpk.device import CudaDevice
from wpk.dtypes import DType
from wpk.emulator import Emulator
from wpk.execution import BoundLaunch
from wpk.problems import Convolution, Epilogue, Matmul, MomentsMatmul, Tensor
from wpk.schedules.wgmma.tiles import WgmmaSchedule

REPETITIONS = 20
"""Launches of each case: what is not ordered may come out right now and then."""

CHAIN = 12
"""Launches one behind the other, each beginning before the one in front has ended."""

pytestmark = pytest.mark.gpu


@pytest.fixture(name="hopper")
def fixture_hopper(cuda: CudaDevice) -> CudaDevice:
    """The GPU, which must have wgmma."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    return cuda


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize(("problem", "schedule"), cases())
def test_agrees_with_float64(
    hopper: CudaDevice, problem: Convolution | Matmul, schedule: Tile
) -> None:
    memory = operands(problem, schedule, seed=4)
    step = Step(hopper, problem, schedule, memory)
    result = step.run().astype(np.float64)
    error = np.abs(result - memory.expected)
    moments = step.moments() if isinstance(problem, MomentsMatmul) else None
    step.free()
    assert (error <= memory.allowed).all(), f"{float((error / memory.allowed).max())} times too far"
    if isinstance(problem, MomentsMatmul):
        np.testing.assert_allclose(moments, moments_of(result, problem.kind), 1e-5, 1e-5)


MANY, DEEP = convolution(128, 256, 28, 3, 1, 32, HALF), convolution(512, 512, 7, 3, 1, 32, HALF)
STAGED_OVER_THE_RING = [
    (MANY, WgmmaSchedule(128, 128, 64, 2)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, share=1)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, share=2)),
    (MANY, WgmmaSchedule(128, 256, 64, 2)),
    (MANY, WgmmaSchedule(128, 256, 64, 2, early=1, share=2)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, persistent=132, pingpong=1)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, share=1, persistent=132, pingpong=1)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, share=2, persistent=132, pingpong=1)),
    (DEEP, WgmmaSchedule(128, 128, 64, 2, split=2, cluster=1)),
    (DEEP, WgmmaSchedule(128, 128, 64, 2, early=1, split=8, cluster=1)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, share=2, shared_by=4)),
    (DEEP, WgmmaSchedule(128, 128, 64, 2, early=1, split=2, cluster=1, share=1, shared_by=4)),
    (DEEP, WgmmaSchedule(128, 128, 64, 2, early=1, split=4, cluster=1, share=2)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, residual=1)),
    (MANY, WgmmaSchedule(128, 128, 64, 2, early=1, persistent=132, residual=1)),
    (MANY, WgmmaSchedule(64, 128, 64, 2, early=1, persistent=132, pingpong=1, residual=2)),
    (MANY, WgmmaSchedule(64, 128, 64, 2, early=1, share=2, persistent=132, residual=2)),
]
"""Whose sums take more shared memory than their tiles; of many blocks, several side by side on a multiprocessor."""


@pytest.mark.parametrize(("problem", "schedule"), STAGED_OVER_THE_RING, ids=str)
def test_many_blocks_give_what_a_longer_ring_gives(
    hopper: CudaDevice, problem: Convolution, schedule: WgmmaSchedule
) -> None:
    memory = operands(problem, schedule, seed=8)
    step, longer = (
        Step(hopper, problem, each, memory) for each in (schedule, replace(schedule, stages=4))
    )
    expected = longer.run()
    assert np.isfinite(expected.astype(np.float64)).all()
    for _ in range(REPETITIONS):
        np.testing.assert_array_equal(step.run(), expected)
    step.free()
    longer.free()


@pytest.mark.parametrize(("problem", "schedule"), cases())
def test_repeats_itself_and_agrees_with_the_emulator(
    hopper: CudaDevice, problem: Convolution | Matmul, schedule: Tile
) -> None:
    memory = operands(problem, schedule, seed=5)
    step = Step(hopper, problem, schedule, memory)
    first = step.run()
    for _ in range(REPETITIONS):
        np.testing.assert_array_equal(step.run(), first)
    step.free()
    emulated = Step(Emulator(), problem, schedule, memory).run().astype(np.float64)
    difference = np.abs(first.astype(np.float64) - emulated)
    assert (difference <= 2 * memory.allowed).all()


@pytest.mark.parametrize("schedule", [s for s in (*SCHEDULES, *HALO) if s.early], ids=str)
@pytest.mark.parametrize("name", ["256 of 14x14", "64 of 56x56"])
def test_a_chain_of_early_launches_gives_what_one_after_the_other_gives(
    hopper: CudaDevice, name: str, schedule: Tile
) -> None:
    """Each launch reads what the one in front wrote, as input and residual, and writes what the one before that read."""
    problem = PROBLEMS[name]
    if template(problem, schedule).why_illegal(problem, schedule, H200) is not None:
        pytest.skip("the schedule is not legal for this problem")
    memory = operands(problem, schedule, seed=6)
    # Small filters: values stay where fp16 holds them from launch to launch.
    x, packed, bias, residual = memory.inputs
    memory = replace(memory, inputs=(x, (packed * 0.02).astype(packed.dtype), bias, residual))
    step = Step(hopper, problem, schedule, memory)
    other = hopper.allocate(step.bytes)
    places = (step.output, other)

    def launches() -> list[BoundLaunch]:
        first = [step.bound(output=places[0])]
        rest = [
            step.bound(places[(i + 1) % 2], places[i % 2], places[(i + 1) % 2])
            for i in range(1, CHAIN)
        ]
        return first + rest

    for launch in launches():
        hopper.launch(replace(launch, attributes=()))
        hopper.synchronize()
    expected = step.read(places[(CHAIN - 1) % 2])
    assert np.isfinite(expected.astype(np.float64)).all()
    graph = hopper.capture(launches())
    for _ in range(REPETITIONS):
        graph.replay()
        np.testing.assert_array_equal(step.read(places[(CHAIN - 1) % 2]), expected)
    hopper.free(other)
    step.free()


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("depth", [32, 4608])
def test_strict_products_err_as_those_of_fp32(
    hopper: CudaDevice, name: str, depth: int, record: Callable[[str, object], None]
) -> None:
    """Over operands that are hard on it, beside a chain of fp32 fused multiply-adds (0019)."""
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    y = Tensor(DType.FP32, (0, 0, b.shape[1], 1))
    problem = replace(matmul(len(a), b.shape[1], depth, STRICT), y=y, epilogue=Epilogue())
    schedule = WgmmaSchedule(64, 16, 32, 2, split=1 if depth == 32 else 4)
    step = Step(hopper, problem, schedule, operands_of(problem, schedule, a, b, np.empty))
    error, chain = errors(step.run(), a, b), errors(fused_chain(a, b), a, b)
    step.free()
    record(f"fp32 by warpgroups: {name}, {depth}", {"units": error, "of a chain": chain})
    assert error <= chain + OWN


@pytest.mark.parametrize("depth", [8, 16, 1152])
def test_strict_products_lean_to_neither_side(
    hopper: CudaDevice, depth: int, record: Callable[[str, object], None]
) -> None:
    """Sums of a box are cut towards zero, by 1.3 units where it is whole; what is given back is a guess at it."""
    a, b = activations(depth)
    y = Tensor(DType.FP32, (0, 0, 128, 1))
    problem = replace(matmul(128, 128, depth, STRICT), y=y, epilogue=Epilogue())
    schedule = WgmmaSchedule(64, 64, 32, 4 if depth > 96 else 2)
    step = Step(hopper, problem, schedule, operands_of(problem, schedule, a, b, np.empty))
    found = leaning(step.run(), a, b)
    step.free()
    record(f"fp32 by warpgroups: leaning, {depth}", {"units": found})
    assert abs(found) <= 0.3
