"""Norms that blocks of a cluster share: numbers in float64 at odd shapes, rows of several lines, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.performance import bound
from wpk.performance.estimate import estimate
from wpk.problems import Epilogue, Normalisation, Tensor
from wpk.problems.normalisation import NormKind
from wpk.schedules.normalisation import NormalisationTemplate
from wpk.schedules.normalisation_cluster import (
    LEAST_ELEMENTS,
    NormalisationClusterSchedule,
    NormalisationClusterTemplate,
)
from wpk.targets.registry import find_target

TEMPLATE, H200 = NormalisationClusterTemplate(), find_target("h200")
EPSILON = 1e-5
FOUR = NormalisationClusterSchedule(vector=2, threads=32, blocks=4, cached=1, early=1)
ONE = NormalisationClusterSchedule(vector=1, threads=96, blocks=1, cached=0)


def groups(dtype: DType, groups: int, lines: int, cols: int, padding: int = 0) -> Tensor:
    """Groups of channels of an image whose channels are neighbours: (image, group, pixel, channel)."""
    channels = groups * cols + padding
    alignment = 16 if channels * dtype.bytes % 16 == 0 and cols * dtype.bytes % 16 == 0 else 4
    return Tensor(dtype, (lines * channels, cols, channels, 1), padding, alignment)


def normalised(kind: NormKind, v: np.ndarray) -> np.ndarray:
    """Of the two last axes together."""
    if kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX):
        below = v - v.max((-2, -1), keepdims=True)
        total = np.exp(below).sum((-2, -1), keepdims=True)
        return np.exp(below) / total if kind is NormKind.SOFTMAX else below - np.log(total)
    mean = v.mean((-2, -1), keepdims=True) if kind is NormKind.LAYER else 0.0
    squares = ((v - mean) ** 2).mean((-2, -1), keepdims=True)
    return np.asarray((v - mean) / np.sqrt(squares + EPSILON))


@pytest.mark.parametrize("kind", NormKind)
@pytest.mark.parametrize(
    "schedule", [FOUR, replace(FOUR, cached=0, blocks=2, threads=64), ONE], ids=str
)
def test_groups_agree_with_float64(
    kind: NormKind, schedule: NormalisationClusterSchedule, checking_execution: Any
) -> None:
    """Three images of two groups, of which each has 37 pixels and 6 channels."""
    x = groups(DType.FP32, 2, 37, 6)
    problem = Normalisation(
        kind, Extent(2, "n"), (2, 2), 6, EPSILON, Operand(0), (x,), x, Epilogue(), lines=37
    )
    assert TEMPLATE.why_not(problem, H200) is None
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    values = np.random.default_rng(0).normal(3.0, 2.0, (3, 2, 37, 6)).astype(np.float32)
    memory = [checking_execution.memory(x, values)]
    y = checking_execution.run(TEMPLATE, problem, schedule, memory, values.shape, {"n": 3})
    expected = normalised(kind, values.astype(np.float64))
    scale = np.maximum(np.abs(expected), 1.0 if kind is not NormKind.SOFTMAX else 0.0)
    assert (np.abs(y - expected) <= 4 * 2.0**-24 * (16 + np.sqrt(37 * 6)) * scale).all()


def test_one_padded_group_with_what_follows(
    checking_execution: Any, assert_close: Callable[..., None]
) -> None:
    """A norm of whole images, 21 pixels of 37 channels in rows of 40, with scale, shift and a shortcut."""
    n, lines, cols = 2, 21, 37
    x = replace(groups(DType.FP16, 1, lines, cols, padding=3), alignment=16)
    vector = Tensor(DType.FP16, (0, 0, 0, 1), alignment=4, constant=True)
    scaled = apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1))
    tail = Epilogue(apply("Relu", apply("Add", scaled, Operand(2))), (vector, vector, x))
    problem = Normalisation(
        NormKind.LAYER, Extent(n), (n, 1), cols, EPSILON, Operand(0), (x,), x, tail, lines=lines
    )
    rng = np.random.default_rng(1)
    shape = (n, 1, lines, cols)
    values, shortcut = (rng.normal(each, 1.0, shape).astype(np.float16) for each in (30, 0))
    scale, shift = (rng.standard_normal(cols).astype(np.float16) for _ in range(2))
    memory = [checking_execution.memory(x, values), scale, shift]
    memory.append(checking_execution.memory(x, shortcut))
    schedule = replace(FOUR, vector=8, threads=32)
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    y = checking_execution.run(TEMPLATE, problem, schedule, memory, shape)
    rows = normalised(NormKind.LAYER, values.astype(np.float64))
    expected = np.maximum(rows * scale + shift + shortcut, 0)
    magnitude = np.abs(scale) * (np.abs(rows) + 30.0) + np.abs(shift) + np.abs(shortcut)
    assert_close(y, expected, magnitude, out=2.0**-11, multiply=2.0**-24, reduction=lines * cols)


def test_refuses_in_words() -> None:
    x = groups(DType.FP32, 2, 37, 6)
    problem = Normalisation(
        NormKind.LAYER, Extent(2), (2, 2), 6, EPSILON, Operand(0), (x,), x, Epilogue(), lines=37
    )
    assert problem.words() == "layer norm, 4 rows of 37\N{MULTIPLICATION SIGN}6"
    assert "a row has 37 lines" in str(NormalisationTemplate().why_not(problem, H200))
    row = Tensor(DType.FP32, (LEAST_ELEMENTS, 1))
    long = Normalisation(
        NormKind.RMS, Extent(2), (2,), LEAST_ELEMENTS, 0.0, Operand(0), (row,), row, Epilogue()
    )
    assert TEMPLATE.why_not(long, H200) is None
    short = replace(long, cols=LEAST_ELEMENTS - 1)
    assert "work for one block" in str(TEMPLATE.why_not(short, H200))
    words = str(TEMPLATE.why_illegal(long, replace(FOUR, vector=1, blocks=3), H200))
    assert words.startswith("a row has 1, 2, 4, 8 or 16 blocks")
    idle = replace(FOUR, vector=4, threads=1024, blocks=8, early=0)
    assert "more threads than the row has vectors" in str(TEMPLATE.why_illegal(long, idle, H200))
    kept = replace(FOUR, vector=1, threads=32, blocks=1, early=0)
    assert "a thread keeps at most 64" in str(TEMPLATE.why_illegal(long, kept, H200))


def test_clusters_are_used_where_they_exist() -> None:
    x = groups(DType.FP16, 1, 3136, 64)
    problem = Normalisation(
        NormKind.LAYER, Extent(1), (1,), 64, EPSILON, Operand(0),
        (replace(x, strides=x.strides[1:]),), replace(x, strides=x.strides[1:]), Epilogue(), lines=3136,
    )  # fmt: skip
    blocks = {
        name: set(TEMPLATE.space(problem, find_target(name))[1]["blocks"].tolist())
        for name in ("h200", "rtx5090", "a100")
    }
    assert blocks == {"h200": {1, 2, 4, 8, 16}, "rtx5090": {1, 2, 4, 8}, "a100": {1}}
    times = [
        float(
            estimate(TEMPLATE.work(problem, schedule.columns(), H200), bound(problem, H200), H200)[
                0
            ]
        )
        for schedule in (replace(FOUR, vector=8, threads=512, blocks=each) for each in (8, 2))
    ]
    assert times[0] < times[1], "more blocks share a long way"
