"""Strict fp32 by warpgroups: as exact as fp32 over operands that are hard on it (0019), on the emulator."""

from dataclasses import replace

import numpy as np
import pytest
from fp32_operands import OPERANDS, OWN, SIZE, errors, fused_chain
from warpgroup_steps import Step, operands_of

from wpk.dtypes import DType, Precision
from wpk.emulator.emulator import Emulator
from wpk.extent import Extent
from wpk.problems import Epilogue, Matmul, Tensor
from wpk.schedules.wgmma_tiles import WgmmaSchedule


def error(name: str, depth: int, precision: Precision, constant: bool) -> tuple[float, float]:
    """Of warpgroups and of a chain of fused multiply-adds, in units."""
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    x, y = Tensor(DType.FP32, (0, 0, depth, 1)), Tensor(DType.FP32, (0, 0, SIZE, 1))
    w = y if constant else Tensor(DType.FP32, (0, 0, 1, depth))
    sizes = ((Extent(1), 1), Extent(SIZE), SIZE, depth)
    problem = Matmul(precision, *sizes, x, w, constant, y, Epilogue())
    schedule = WgmmaSchedule(64, 16, 64, 2, split=2 if depth > 64 else 1)
    memory = operands_of(problem, schedule, a, b, np.empty)
    if not constant:
        memory = replace(memory, inputs=(a, b.T))  # along the reduction
    result = Step(Emulator(), problem, schedule, memory).run()
    return errors(result, a, b), errors(fused_chain(a, b), a, b)


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("depth", [8, 32, 200, pytest.param(4608, marks=pytest.mark.slow)])
def test_errors_are_those_of_fp32(name: str, depth: int) -> None:
    found, chain = error(name, depth, Precision.FP32, constant=True)
    assert found <= chain + OWN
    assert found <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def test_products_of_two_activations_are_as_exact() -> None:
    found, chain = error("positive", 200, Precision.FP32, constant=False)
    assert found <= chain + OWN


def test_single_products_of_tf32_would_be_seen() -> None:
    found, chain = error("positive", 200, Precision.TF32, constant=True)
    assert found > chain + OWN
