"""What random numbers do not show: rounding to tf32, and that infinities stay where they belong."""

from dataclasses import replace
from typing import Any

import numpy as np
from subjects import problems

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules import packings
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule

MMA = MmaSchedule(block_m=32, block_n=16, block_k=16, warps_m=1, warps_n=1, stages=2)
SIMT = SimtSchedule(32, 16, 16, 4, 4, row_major=0, padding=0, prefetch=1)
SPLIT = ConvMmaTemplate()
ULP = 2.0**-10  # of tf32 at 1


def convolution(precision: Precision, c: int, size: int) -> Convolution:
    """3 x 3 without padding, channels-last, one filter."""
    plain = problems.convolution(c, 1, size, pads=0, precision=precision)
    x = replace(plain.x, alignment=precision.storage.bytes * (4 if c % 4 == 0 else 1))
    y = problems.channels_last(DType.FP32, 1, plain.p, plain.q)
    return replace(plain, x=x, y=y)


def execute(
    execution: Any, template: Any, problem: Convolution, schedule: Any, x: np.ndarray
) -> np.ndarray:
    w = np.ones((1, problem.c, 3, 3), problem.precision.storage.numpy)
    packed = packings.pack(template.packing(problem, schedule), w, problem)
    memory = [execution.memory(problem.x, x), packed]
    return execution.run(template, problem, schedule, memory, (1, 1, problem.p, problem.q))


def test_tf32_rounds_inputs_to_nearest(checking_execution: Any) -> None:
    problem = convolution(Precision.TF32, 4, 3)
    x = np.full((1, 4, 3, 3), 1 + 0.75 * ULP, np.float32)
    y = execute(checking_execution, ConvMmaTemplate(), problem, MMA, x)
    assert y.item() == 36 * (1 + ULP)


def test_tf32_rounds_both_computed_operands(checking_execution: Any) -> None:
    tensor = Tensor(DType.FP32, (0, 0, 16, 1))
    problem = Matmul(
        *(Precision.TF32, (Extent(1), 1), Extent(16), 16, 16, tensor, tensor, False, tensor),
        Epilogue(),
    )
    a = np.full((1, 1, 16, 16), 1 + 0.75 * ULP, np.float32)
    b = np.full((1, 1, 16, 16), 1 - 0.25 * ULP, np.float32)  # half a unit below 1: away, to 1
    memory = [checking_execution.memory(tensor, values) for values in (a, b)]
    y = checking_execution.run(GemmMmaTemplate(), problem, MMA, memory, (1, 1, 16, 16))
    assert (y == 16 * (1 + ULP)).all()


def test_an_infinite_input_reaches_only_the_outputs_that_read_it(checking_execution: Any) -> None:
    for template, schedule, precision in (
        (ConvMmaTemplate(), MMA, Precision.FP16),
        (SPLIT, MMA, Precision.FP32),
        (ConvSimtTemplate(), SIMT, Precision.FP32),
    ):
        # 9 taps of 5 channels end within a step: what follows them must not be read.
        problem = convolution(precision, 5, 8)
        x = np.ones((1, 5, 8, 8), problem.x.dtype.numpy)
        x[0, 2, 4, 4] = np.inf
        y = execute(checking_execution, template, problem, schedule, x)
        reads = np.zeros((6, 6), bool)
        reads[2:5, 2:5] = True
        seen = np.isnan if template is SPLIT else np.isposinf  # split_fp32.cuh
        np.testing.assert_array_equal(seen(y[0, 0]), reads)
        assert (y[0, 0][~reads] == 45).all()
