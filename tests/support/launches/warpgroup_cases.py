"""What templates of warpgroups are tried on: problems of every kind that they take, and every kind of schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from subjects import problems

from support.launches.warpgroup_steps import Tile, template
from support.problems.warpgroup_layers import (
    by_columns,
    knowing_moments,
    limited,
    normed,
    with_moments,
)
from wpk.dtypes import DType, Precision
from wpk.problems import Convolution, Matmul, NormKind
from wpk.schedules.conv_halo import HaloSchedule
from wpk.schedules.wgmma.tiles import WgmmaSchedule
from wpk.targets.registry import find_target

H200 = find_target("h200")
TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}


def convolution(
    c: int, k: int, size: int, filter: int, stride: int, n: int, unit: Precision, groups: int = 1
) -> Convolution:
    """Same padding, with bias, residual and ReLU."""
    given: dict[str, Any] = {"stride": stride, "n": n, "precision": unit, "groups": groups}
    return problems.convolution(c, k, size, filter, **given, **TAIL)


def matmul(m: int, n: int, k: int, precision: Precision, *, constant: bool = True) -> Matmul:
    """A ``b`` that is no constant lies across the reduction."""
    return problems.matmul(m, n, k, precision=precision, constant=constant, **TAIL)


HALF, BRAIN, SINGLE, STRICT = Precision.FP16, Precision.BF16, Precision.TF32, Precision.FP32
PROBLEMS: dict[str, Convolution | Matmul] = {
    "64 of 56x56": convolution(64, 64, 56, 3, 1, 1, HALF),
    "128 of 28x28": convolution(128, 128, 28, 3, 1, 3, HALF),
    "256 of 14x14": convolution(256, 256, 14, 3, 1, 1, HALF),
    "512 of 7x7": convolution(512, 512, 7, 3, 1, 3, BRAIN),
    "stride 2": convolution(128, 256, 28, 3, 2, 2, HALF),
    "stride 2, 1x1": convolution(64, 128, 56, 1, 2, 1, BRAIN),
    "1x1": convolution(256, 64, 56, 1, 1, 1, HALF),
    "5x5, 72 channels": convolution(72, 40, 9, 5, 1, 5, HALF),
    "24 channels": convolution(24, 144, 13, 3, 1, 2, BRAIN),
    "two groups of 64": convolution(128, 192, 17, 3, 1, 3, HALF, groups=2),
    "three groups of 32, stride 2": convolution(96, 96, 15, 3, 2, 2, BRAIN, groups=3),
    "limits, 1x1": limited(convolution(448, 128, 14, 1, 1, 3, HALF), upper=False),
    "both limits, 1x1": limited(convolution(72, 64, 14, 1, 1, 3, BRAIN), upper=True),
    "tf32, limits, 1x1": limited(convolution(192, 128, 14, 1, 1, 3, SINGLE), upper=False),
    "fp32, limits, 1x1": limited(convolution(192, 128, 14, 1, 1, 3, STRICT), upper=True),
    "a product": matmul(100, 72, 200, HALF),
    "a layer of DistilBERT": matmul(128, 768, 3072, BRAIN),
    "four tiles of rows": matmul(197, 264, 1544, HALF),
    "layer-normed rows": normed(matmul(197, 264, 776, HALF), NormKind.LAYER),
    "root-mean-square-normed rows": normed(matmul(130, 136, 264, BRAIN), NormKind.RMS),
    "rows with known moments": knowing_moments(normed(matmul(197, 264, 768, HALF), NormKind.LAYER)),
    "root-mean-square-normed rows with known moments": knowing_moments(
        normed(matmul(130, 136, 288, BRAIN), NormKind.RMS)
    ),
    "rows with moments": with_moments(matmul(197, 384, 776, HALF), NormKind.LAYER),
    "rows with mean squares": with_moments(matmul(130, 160, 264, BRAIN), NormKind.RMS),
    "b across": matmul(130, 136, 264, HALF, constant=False),
    "by columns": by_columns(matmul(197, 264, 776, HALF)),
    "by columns, bias fp32": by_columns(matmul(197, 264, 776, BRAIN), DType.FP32),
    "by columns, tanh": by_columns(matmul(130, 136, 264, BRAIN), DType.BF16, "tanh"),
    "by columns, b across": by_columns(matmul(130, 136, 264, HALF, constant=False)),
    "by columns, layer-normed rows": normed(
        by_columns(matmul(197, 264, 776, HALF)), NormKind.LAYER
    ),
    "by columns, root-mean-square-normed rows": normed(
        by_columns(matmul(130, 136, 264, BRAIN), DType.FP32), NormKind.RMS
    ),
    "by columns, rows with known moments": knowing_moments(
        normed(by_columns(matmul(197, 264, 768, HALF)), NormKind.LAYER)
    ),
    "by columns, 3x3": by_columns(convolution(72, 264, 13, 3, 1, 3, HALF)),
    "by columns, 1x1": by_columns(convolution(256, 64, 56, 1, 1, 1, BRAIN), DType.FP32),
    "tf32, 64 of 56x56": convolution(64, 64, 56, 3, 1, 1, SINGLE),
    "tf32, 512 of 7x7": convolution(512, 512, 7, 3, 1, 3, SINGLE),
    "tf32, 1x1": convolution(256, 64, 56, 1, 1, 1, SINGLE),
    "tf32, stride 2": convolution(128, 256, 28, 3, 2, 2, SINGLE),
    "tf32, a layer of DistilBERT": matmul(128, 768, 3072, SINGLE),
    "fp32, 64 of 56x56": convolution(64, 64, 56, 3, 1, 1, STRICT),
    "fp32, 512 of 7x7": convolution(512, 512, 7, 3, 1, 3, STRICT),
    "fp32, 1x1": convolution(256, 64, 56, 1, 1, 1, STRICT),
    "fp32, 5x5, 36 channels": convolution(36, 20, 9, 5, 1, 5, STRICT),
    "fp32, a layer of DistilBERT": matmul(128, 768, 3072, STRICT),
}
SCHEDULES = [
    WgmmaSchedule(64, 64, 64, 4),
    WgmmaSchedule(64, 64, 64, 2, early=1),
    WgmmaSchedule(64, 32, 64, 3, split=3),
    WgmmaSchedule(64, 64, 128, 3, split=4, early=1),
    WgmmaSchedule(64, 16, 128, 2),
    WgmmaSchedule(128, 128, 64, 4),
    WgmmaSchedule(128, 256, 64, 2),
    WgmmaSchedule(128, 64, 128, 2, split=2, early=1),
    WgmmaSchedule(64, 64, 64, 2, split=4, cluster=1, early=1),
    WgmmaSchedule(128, 128, 64, 2, split=2, cluster=1),
    WgmmaSchedule(64, 32, 64, 4, split=8, cluster=1, early=1),
    WgmmaSchedule(64, 16, 256, 2, split=4, cluster=1, early=1),
    WgmmaSchedule(64, 64, 192, 3, split=3, cluster=1, early=1),
    WgmmaSchedule(64, 32, 256, 2),
    WgmmaSchedule(64, 64, 64, 3, share=1),
    WgmmaSchedule(64, 64, 128, 2, early=1, share=2),
    WgmmaSchedule(128, 128, 64, 4, early=1, share=1),
    WgmmaSchedule(128, 128, 64, 3, early=1, share=2),
    WgmmaSchedule(64, 96, 64, 3, early=1),
    WgmmaSchedule(192, 192, 64, 4, early=1),
    WgmmaSchedule(192, 192, 64, 3, early=1, share=1),
    WgmmaSchedule(192, 128, 64, 4, early=1, persistent=2),
    WgmmaSchedule(128, 112, 64, 2),
    WgmmaSchedule(64, 80, 64, 2, split=2, early=1),
    WgmmaSchedule(64, 48, 64, 2, split=3, cluster=1, early=1),
    WgmmaSchedule(64, 96, 64, 2, early=1, share=2),
    WgmmaSchedule(64, 192, 64, 2, early=1, persistent=2),
    WgmmaSchedule(64, 64, 64, 3, early=1, share=2, shared_by=4),
    WgmmaSchedule(64, 32, 128, 2, early=1, share=1, shared_by=4),
    WgmmaSchedule(64, 128, 64, 4, split=2, cluster=1, early=1, share=2, shared_by=4),
    WgmmaSchedule(128, 64, 128, 2, split=2, cluster=1, share=1, shared_by=4),
    WgmmaSchedule(64, 64, 128, 2, split=4, cluster=1, early=1, share=2),
    WgmmaSchedule(64, 64, 64, 4, split=3, early=1, share=2, shared_by=4),
    WgmmaSchedule(64, 64, 64, 4, early=1, persistent=2),
    WgmmaSchedule(128, 32, 128, 2, persistent=3),
    WgmmaSchedule(128, 128, 64, 3, early=1, persistent=1),
    WgmmaSchedule(64, 64, 64, 3, early=1, share=1, persistent=2),
    WgmmaSchedule(128, 64, 64, 2, share=2, persistent=4),
    WgmmaSchedule(64, 64, 64, 4, early=1, persistent=1, pingpong=1),
    WgmmaSchedule(128, 128, 64, 2, early=1, persistent=2, pingpong=1),
    WgmmaSchedule(64, 128, 64, 3, early=1, share=1, persistent=2, pingpong=1),
    WgmmaSchedule(128, 64, 64, 3, share=2, persistent=2, pingpong=1),
    WgmmaSchedule(64, 64, 64, 2, early=1, residual=1),
    WgmmaSchedule(128, 128, 64, 2, early=1, residual=1),
    WgmmaSchedule(128, 112, 64, 2, residual=1),
    WgmmaSchedule(64, 32, 64, 2, early=1, share=2, residual=1),
    WgmmaSchedule(64, 64, 64, 2, early=1, persistent=2, residual=1),
    WgmmaSchedule(128, 128, 64, 2, early=1, persistent=1, residual=1),
    WgmmaSchedule(64, 128, 64, 2, persistent=2, residual=2),
    WgmmaSchedule(64, 64, 64, 3, early=1, share=1, persistent=2, residual=2),
    WgmmaSchedule(64, 128, 64, 2, early=1, persistent=2, pingpong=1, residual=2),
    WgmmaSchedule(128, 64, 64, 2, share=2, persistent=2, pingpong=1, residual=2),
    WgmmaSchedule(128, 128, 64, 4, early=1, share=2, persistent=2, residual=1),
    WgmmaSchedule(192, 128, 64, 4, early=1, share=1, persistent=2),
    WgmmaSchedule(192, 192, 64, 3, early=1, persistent=1),
    WgmmaSchedule(128, 256, 64, 3, early=1, persistent=1),
]


HALO = [
    HaloSchedule(7, 9, 16),
    HaloSchedule(8, 8, 64, teams=2, early=1),
    HaloSchedule(4, 14, 32, teams=2, persistent=4, early=1),
    HaloSchedule(14, 14, 32, early=1),
    HaloSchedule(7, 14, 16, patches=2, persistent=16, early=1),
    HaloSchedule(2, 28, 32, teams=3, patches=2, persistent=8),
    HaloSchedule(8, 8, 16, teams=4, persistent=16, early=1),
    HaloSchedule(8, 8, 64, carry=1),
    HaloSchedule(8, 8, 32, teams=3, patches=2, carry=1, persistent=8, early=1),
]


@cache
def legal_schedules(name: str) -> list[Tile]:
    """Of both lists, those that are legal for a problem."""
    problem = PROBLEMS[name]
    # The same boxes, whatever an element takes.
    size = problem.precision.storage.bytes
    boxes = [replace(each, block_k=each.block_k * 2 // size) for each in SCHEDULES]
    halo = HALO if isinstance(problem, Convolution) else []
    return [each for among in filter(None, (boxes, halo)) for each in _legal(problem, among)]


def _legal(problem: Convolution | Matmul, schedules: Sequence[Tile]) -> list[Tile]:
    used = template(problem, schedules[0])
    if used.why_not(problem, H200) is not None:
        return []
    legal: list[Tile] = used.legal_among(schedules, problem, H200)
    return legal


@cache
def cases() -> list[Any]:
    """Every problem with every schedule that is legal for it, found once for all tests."""
    return [
        pytest.param(problem, each, id=f"{name}: {template(problem, each).name} {each}")
        for name, problem in PROBLEMS.items()
        for each in legal_schedules(name)
    ]
