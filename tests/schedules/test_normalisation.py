"""Normalisation: numbers in float64 at odd shapes, masks, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Epilogue, Normalisation, Tensor
from wpk.problems.normalisation import NormKind
from wpk.schedules.normalisation import NormalisationSchedule, NormalisationTemplate
from wpk.targets.registry import find_target

TEMPLATE = NormalisationTemplate()
H200 = find_target("h200")
EPSILON = 1e-5


def contiguous(dtype: DType, *shape: int, padding: int = 0) -> Tensor:
    row = shape[-1] + padding
    strides = (*(int(np.prod(shape[i:-1])) * row for i in range(1, len(shape))), 1)
    alignment = next(a for a in (16, 8, 4, 2) if row * dtype.bytes % a == 0)
    return Tensor(dtype, strides, padding, alignment)


def normalise(kind: NormKind, v: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        if kind in (NormKind.SOFTMAX, NormKind.LOG_SOFTMAX):
            centred = v - v.max(-1, keepdims=True)
            total = np.exp(centred).sum(-1, keepdims=True)
            return np.exp(centred) / total if kind is NormKind.SOFTMAX else centred - np.log(total)
        mean = v.mean(-1, keepdims=True) if kind is NormKind.LAYER else 0.0
        return (v - mean) / np.sqrt(((v - mean) ** 2).mean(-1, keepdims=True) + EPSILON)


SCHEDULES = [
    (50, NormalisationSchedule(2, 32, 4, 1)),
    (50, NormalisationSchedule(1, 32, 1, 0)),
    (333, NormalisationSchedule(1, 64, 1, 1)),
    (1000, NormalisationSchedule(4, 256, 1, 1)),
    (1000, NormalisationSchedule(4, 128, 1, 0)),
    (3, NormalisationSchedule(1, 32, 8, 1)),
    (50, NormalisationSchedule(2, 8, 4, 1)),
    (29, NormalisationSchedule(1, 16, 6, 0)),
    (10, NormalisationSchedule(2, 4, 8, 1)),
]


@pytest.mark.parametrize("kind", NormKind)
@pytest.mark.parametrize(("cols", "schedule"), SCHEDULES, ids=str)
def test_agrees_with_float64(
    kind: NormKind, cols: int, schedule: NormalisationSchedule, fast_execution: Any
) -> None:
    x_tensor = contiguous(DType.FP32, 3, 5, cols)
    problem = Normalisation(
        kind, Extent(2, "n"), (2, 5), cols, EPSILON, Operand(0), (x_tensor,), x_tensor, Epilogue()
    )
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    x = np.random.default_rng(0).normal(3.0, 2.0, (3, 5, cols)).astype(np.float32)
    memory = [fast_execution.memory(x_tensor, x)]
    y = fast_execution.run(TEMPLATE, problem, schedule, memory, x.shape, {"n": 3})
    expected = normalise(kind, x.astype(np.float64))
    # exp of a difference of up to 16: its rounding counts 16 times; sums grow with sqrt(cols).
    scale = np.maximum(np.abs(expected), 1.0 if kind is not NormKind.SOFTMAX else 0.0)
    bound = 4 * 2.0**-24 * (16 + np.sqrt(cols)) * scale
    assert (np.abs(y - expected) <= bound).all()


@pytest.mark.parametrize("cached", [0, 1])
def test_attention_mask_in_the_prologue(cached: int, execution: Any) -> None:
    n, heads, queries, keys = 2, 3, 4, 50
    scores = contiguous(DType.FP16, n, heads, queries, keys, padding=6)
    mask = Tensor(DType.FP32, (keys, 0, 0, 1), alignment=4)
    prologue = apply("Add", apply("Mul", Operand(0), Scalar(0.125)), Operand(1))
    problem = Normalisation(
        NormKind.SOFTMAX,
        Extent(n),
        (n, heads, queries),
        keys,
        0.0,
        prologue,
        (scores, mask),
        scores,
        Epilogue(),
    )
    assert TEMPLATE.why_not(problem, H200) is None
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, heads, queries, keys)).astype(np.float16)
    hidden = np.where(np.arange(keys) < 31, 0.0, -np.inf).astype(np.float32)
    masks = np.stack([hidden, np.full(keys, -np.inf, np.float32)])
    memory = [execution.memory(scores, x), masks]
    schedule = NormalisationSchedule(8, 32, 2, cached)
    y = execution.run(TEMPLATE, problem, schedule, memory, x.shape)
    expected = normalise(NormKind.SOFTMAX, x.astype(np.float64) * 0.125 + masks[:, None, None])
    np.testing.assert_allclose(y[0], expected[0], rtol=2.0**-11 + 2.0**-19, atol=1e-7)
    assert np.isnan(expected[1]).all(), "a row that is masked altogether is NaN in ONNX"
    assert np.isnan(y[1]).all()


def test_layer_norm_with_residual_scale_and_shift(
    execution: Any, assert_close: Callable[..., None]
) -> None:
    rows, cols = 5, 96
    x_tensor, vector = contiguous(DType.BF16, rows, cols), Tensor(DType.FP32, (0, 1))
    tail = apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1))
    problem = Normalisation(
        NormKind.LAYER,
        Extent(rows, "n", 5),
        (rows,),
        cols,
        EPSILON,
        apply("Add", Operand(0), Operand(1)),
        (x_tensor, x_tensor),
        x_tensor,
        Epilogue(tail, (vector, vector)),
    )
    rng = np.random.default_rng(2)
    # A mean far from zero: E[v^2] - E[v]^2 in fp32 would lose the variance.
    a, b = (rng.normal(c, 1.0, (2 * rows, cols)).astype(x_tensor.dtype.numpy) for c in (300, 200))
    scale, shift = (rng.standard_normal(cols).astype(np.float32) for _ in range(2))
    memory = [execution.memory(x_tensor, a), execution.memory(x_tensor, b), scale, shift]
    schedule = NormalisationSchedule(1, 96, 1, 1)
    y = execution.run(TEMPLATE, problem, schedule, memory, a.shape, {"n": 2})
    normalised = normalise(NormKind.LAYER, a.astype(np.float64) + b.astype(np.float64))
    expected = normalised * scale + shift
    # The mean, 500, is known to fp32's precision; the deviations are about 2.
    magnitude = np.abs(scale) * (np.abs(normalised) + 250.0) + np.abs(shift)
    assert_close(y, expected, magnitude, out=2.0**-8, multiply=2.0**-24, reduction=cols)


@pytest.mark.parametrize(
    "schedule",
    [
        NormalisationSchedule(8, 16, 4, 1, early=1),
        NormalisationSchedule(8, 8, 8, 1, early=1),
        NormalisationSchedule(4, 8, 4, 0, early=1),
        NormalisationSchedule(8, 32, 2, 1, early=1),
    ],
    ids=str,
)
def test_rows_that_share_a_warp_end_with_the_last_one(
    schedule: NormalisationSchedule, checking_execution: Any, assert_close: Callable[..., None]
) -> None:
    """ConvNeXt's layer norm, whose scale and shift are loaded before the kernel in front has ended."""
    cols, rows = 96, 13
    x_tensor = contiguous(DType.FP16, rows, cols)
    vector = Tensor(DType.FP32, (0, 1), alignment=16, constant=True)
    tail = apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1))
    problem = Normalisation(
        NormKind.LAYER,
        Extent(rows, "n"),
        (rows,),
        cols,
        EPSILON,
        Operand(0),
        (x_tensor,),
        x_tensor,
        Epilogue(tail, (vector, vector)),
    )
    assert TEMPLATE.why_illegal(problem, schedule, H200) is None
    rng = np.random.default_rng(3)
    for n in (rows, rows + 4):
        x = rng.normal(1.0, 2.0, (n, cols)).astype(np.float16)
        scale, shift = (rng.standard_normal(cols).astype(np.float32) for _ in range(2))
        memory = [checking_execution.memory(x_tensor, x), scale, shift]
        y = checking_execution.run(TEMPLATE, problem, schedule, memory, x.shape, {"n": n})
        normalised = normalise(NormKind.LAYER, x.astype(np.float64))
        expected = normalised * scale + shift
        magnitude = np.abs(scale) * (np.abs(normalised) + 1.0) + np.abs(shift)
        assert_close(y, expected, magnitude, out=2.0**-11, multiply=2.0**-24, reduction=cols)


def test_refuses_in_words() -> None:
    tensor = contiguous(DType.FP32, 3, 50)
    problem = Normalisation(
        NormKind.LAYER, Extent(3), (3,), 50, EPSILON, Operand(0), (tensor,), tensor, Epilogue()
    )
    assert TEMPLATE.why_not(problem, H200) is None
    deep = replace(problem, outer=(3, 1, 1, 1))
    assert "4 outer axes, at most 3" in str(TEMPLATE.why_not(deep, H200))
    assert TEMPLATE.why_not(replace(problem, cols=0), H200) == "rows are empty"
    padded = replace(problem, y=Tensor(DType.FP32, (1, 4), padding=1))
    assert "does not pad" in str(TEMPLATE.why_not(padded, H200))
    words = TEMPLATE.why_illegal(problem, NormalisationSchedule(1, 64, 2, 1), H200)
    assert words == "only rows of a warp or less share a block (threads=64, rows=2)"
    words = TEMPLATE.why_illegal(problem, NormalisationSchedule(2, 16, 1, 1), H200)
    assert words == "a block has whole warps (threads=16, rows=1)"
    words = TEMPLATE.why_illegal(problem, NormalisationSchedule(2, 24, 4, 1), H200)
    assert "a row belongs to whole warps, or to 4, 8 or 16 lanes of one" in str(words)
    words = TEMPLATE.why_illegal(problem, NormalisationSchedule(1, 4, 8, 1), H200)
    assert "a lane that shares a warp's rows has at most 4 vectors of each" in str(words)
    words = TEMPLATE.why_illegal(problem, NormalisationSchedule(2, 256, 1, 1), H200)
    assert words == "more than a warp's threads have vectors of a row of 50 (vector=2, threads=256)"
    long = replace(problem, cols=5000)
    words = TEMPLATE.why_illegal(long, NormalisationSchedule(1, 32, 1, 1), H200)
    assert words == "a thread keeps at most 64 values (vector=1, threads=32, cached=1)"
