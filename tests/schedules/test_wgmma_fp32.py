"""Strict fp32 by warpgroups: as exact as fp32 over operands that are hard on it (0019), on the emulator."""

from dataclasses import replace

import numpy as np
import pytest
from support.launches.warpgroup_steps import Step, operands_of
from support.numbers.fp32_operands import OPERANDS, OWN, SIZE, Array, errors, fused_chain, normal

from wpk.dtypes import DType, Precision
from wpk.emulator import Emulator
from wpk.extent import Extent
from wpk.problems import Epilogue, Matmul, Tensor
from wpk.schedules.wgmma.tiles import WgmmaSchedule


def product(a: Array, b: Array, precision: Precision, constant: bool) -> Array:
    """What warpgroups make of two matrices; ``b`` may be constant."""
    depth = len(b)
    x, y = Tensor(DType.FP32, (0, 0, depth, 1)), Tensor(DType.FP32, (0, 0, SIZE, 1))
    w = y if constant else Tensor(DType.FP32, (0, 0, 1, depth))
    sizes = ((Extent(1), 1), Extent(SIZE), SIZE, depth)
    problem = Matmul(precision, *sizes, x, w, constant, y, Epilogue())
    schedule = WgmmaSchedule(64, 16, 64, 2, split=2 if depth > 64 else 1)
    memory = operands_of(problem, schedule, a, b, np.empty)
    if not constant:
        memory = replace(memory, inputs=(a, b.T))  # along the reduction
    return Step(Emulator(), problem, schedule, memory).run()


def error(name: str, depth: int, precision: Precision, constant: bool) -> tuple[float, float]:
    """Of warpgroups and of a chain of fused multiply-adds, in units."""
    a, b = OPERANDS[name](np.random.default_rng(depth), depth)
    return errors(product(a, b, precision, constant), a, b), errors(fused_chain(a, b), a, b)


@pytest.mark.parametrize("name", OPERANDS)
@pytest.mark.parametrize("depth", [8, 32, 200, pytest.param(4608, marks=pytest.mark.slow)])
def test_errors_are_those_of_fp32(name: str, depth: int) -> None:
    found, chain = error(name, depth, Precision.FP32, constant=True)
    assert found <= chain + OWN
    assert found <= 4 * (1 + np.sqrt(depth)), "as wpk.checks holds strict fp32"


def test_constants_keep_all_bits_but_the_last() -> None:
    """Two bits would be lost if the unit cut them as they are; what is given back is one more at most."""
    a, b = np.eye(SIZE, dtype=np.float32), normal(np.random.default_rng(3), SIZE, SIZE)
    result = product(a, b, Precision.FP32, constant=True)
    lost = np.rint((np.abs(b) - np.abs(result)) / np.spacing(np.abs(b)))
    assert lost.min() >= -2
    assert lost.max() <= 1


def test_products_of_two_activations_are_as_exact() -> None:
    found, chain = error("positive", 200, Precision.FP32, constant=False)
    assert found <= chain + OWN


def test_single_products_of_tf32_would_be_seen() -> None:
    found, chain = error("positive", 200, Precision.TF32, constant=True)
    assert found > chain + OWN
