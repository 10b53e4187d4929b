"""Products of normalised rows: numbers on the emulator against float64, ragged rows, large means, outliers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.problems.warpgroup_layers import matmul

from wpk.build import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.libraries.definition import normalise
from wpk.problems import Matmul, NormedMatmul, NormKind, Tensor
from wpk.schedules import packings
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.mma_tiles import MmaSchedule
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

Array = NDArray[Any]
MMA, WGMMA, H200 = GemmMmaTemplate(), GemmWgmmaTemplate(), find_target("h200")
TILE = WgmmaSchedule(block_m=64, block_n=64, block_k=64, stages=2)
SMALL = MmaSchedule(block_m=32, block_n=32, block_k=32, warps_m=2, warps_n=2, stages=3)
EPSILON = 1e-5
SUMS = Tensor(DType.FP32, (0, 0, 0, 1), constant=True)


def normed(
    m: int,
    n: int,
    k: int,
    kind: NormKind = NormKind.LAYER,
    precision: Precision = Precision.FP16,
    **given: Any,
) -> NormedMatmul:
    """With bias, residual and ReLU behind."""
    plain = matmul(m, n, k, precision=precision, **given)
    sums = SUMS if kind is NormKind.LAYER else None
    return NormedMatmul(**vars(plain), kind=kind, epsilon=EPSILON, sums=sums)


def rows_of(problem: Matmul, mean: float = 0.0, seed: int = 0) -> Array:
    """Rows of unit variance around different means up to ``mean``, with channels far from the others."""
    shape = (problem.batch[0].value, problem.batch[1], problem.m.value, problem.k)
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal(shape)
    rows[..., [0, problem.k // 2]] *= 20
    rows += mean * rng.uniform(-1, 1, (*shape[:3], 1))
    return rows.astype(problem.a.dtype.numpy)


def check(
    execution: Any, template: Any, problem: NormedMatmul, schedule: Any, mean: float = 0.0
) -> None:
    """Execute, and compare with float64: what may differ are roundings of sums in fp32, and that of the output."""
    assert template.why_not(problem, H200) is None
    assert template.why_illegal(problem, schedule, H200) is None
    rng, storage = np.random.default_rng(1), problem.precision.storage.numpy
    a = rows_of(problem, mean)
    b = (rng.standard_normal((problem.k, problem.n)) / np.sqrt(problem.k) + 0.01).astype(storage)
    memory = [
        execution.memory(problem.a, a),
        packings.pack(template.packing(problem, schedule), b, problem),
    ]
    shape = (*a.shape[:3], problem.n)
    operands = [
        np.broadcast_to(rng.standard_normal(shape[-1:] if t.strides[2] == 0 else shape), shape).astype(t.dtype.numpy)
        for t in problem.epilogue.operands
    ]
    memory += [execution.memory(t, o) for t, o in zip(problem.epilogue.operands, operands, strict=True)]
    a, b = a.astype(np.float64), b.astype(np.float64)
    if problem.sums is not None:
        memory.append(b.sum(axis=0).astype(np.float32))
    y = execution.run(template, problem, schedule, memory, shape, {})
    wide = [each.astype(np.float64) for each in operands]
    from wpk.libraries.definition import finish, row_scales

    exact = normalise(a, problem) @ b
    terms = (np.abs(a) * row_scales(a, problem)) @ np.abs(b)
    error = 4 * 2.0**-24 * (np.sqrt(problem.k) + problem.k / 16) * terms
    reference = finish(problem.epilogue, exact, wide)
    allowed = error + problem.y.dtype.unit_roundoff * np.abs(reference) + 2.0**-22 * sum(map(np.abs, wide))
    worst = float((np.abs(y - reference) / allowed).max())
    assert worst <= 1, worst


@pytest.mark.parametrize("kind", [NormKind.LAYER, NormKind.RMS])
def test_x(kind, checking_execution):
    check(checking_execution, WGMMA, normed(50, 40, 136, kind), TILE)
    check(checking_execution, MMA, normed(50, 40, 136, kind), SMALL)
