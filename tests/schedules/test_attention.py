"""Attention's templates: numbers in float64 at odd shapes, masks, empty rows, legality."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.build.nvrtc import load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.errors import CompileError
from wpk.expression import Acc, Expression, Operand, Scalar, apply, evaluate
from wpk.extent import Extent
from wpk.problems import Epilogue, Tensor
from wpk.problems.attention import Attention
from wpk.schedules.attention_mma import AttentionMmaSchedule, AttentionMmaTemplate
from wpk.schedules.attention_simt import AttentionSimtSchedule, AttentionSimtTemplate
from wpk.targets.registry import find_target

MMA, SIMT = AttentionMmaTemplate(), AttentionSimtTemplate()
TARGET = find_target("h200")
SCHEDULE = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)
U = 2.0**-24


def heads_inside(dtype: DType, batch: int, rows: int, heads: int, size: int) -> Tensor:
    """Heads of a projection: (batch, row, head, element) in memory, as (batch, head, row, element)."""
    strides = (0 if batch == 1 else rows * heads * size, 0 if heads == 1 else size, heads * size, 1)
    alignment = next(a for a in (16, 8, 4, 2) if heads * size * dtype.bytes % a == 0)
    return Tensor(dtype, strides, 0, min(alignment, 16 if size * dtype.bytes % 16 == 0 else 2))


def attention(
    queries: int,
    keys: int,
    depth: int,
    *,
    precision: Precision = Precision.FP16,
    batch: tuple[int, int] = (2, 3),
    width: int | None = None,
    mask: tuple[int, ...] | None = None,
    scale: float = 1.0,
    zero: bool = False,
) -> Attention:
    """A problem; ``mask`` gives the strides of an fp32 tensor that is added to the scores."""
    dtype, d = precision.storage, depth if width is None else width
    scores: Expression = Acc() if scale == 1.0 else apply("Mul", Acc(), Scalar(scale))
    operands: tuple[Tensor, ...] = ()
    if mask is not None:
        scores = apply("Add", scores, Operand(0))
        operands = (Tensor(DType.FP32, mask, 0, 16 if keys % 4 == 0 else 4),)
    return Attention(
        precision=precision,
        batch=(Extent(batch[0]), batch[1]),
        queries=queries,
        keys=keys,
        depth=depth,
        width=d,
        q=heads_inside(dtype, batch[0], queries, batch[1], depth),
        k=heads_inside(dtype, batch[0], keys, batch[1], depth),
        v=heads_inside(dtype, batch[0], keys, batch[1], d),
        scores=Epilogue(scores, operands),
        empty_rows_are_zero=zero,
        y=heads_inside(dtype, batch[0], queries, batch[1], d),
    )


def check(
    execution: Any,
    template: Any,
    problem: Attention,
    schedule: Any,
    *,
    masks: Any = None,
    spread: float = 1.0,
    leading: int | None = None,
) -> None:
    """Executes on random data and holds the result against float64, as the checks' error bounds do."""
    rng = np.random.default_rng(0)
    batch = (leading or problem.batch[0].value, problem.batch[1])
    drawn, memory = [], []
    for tensor, rows, columns in (
        (problem.q, problem.queries, problem.depth),
        (problem.k, problem.keys, problem.depth),
        (problem.v, problem.keys, problem.width),
    ):
        values = (rng.standard_normal((*batch, rows, columns)) * spread).astype(tensor.dtype.numpy)
        memory.append(execution.memory(tensor, values))
        drawn.append(values.astype(np.float64))
    shape = (*batch, problem.queries, problem.keys)
    wide = []
    if masks is not None:
        (tensor,) = problem.scores.operands
        memory.append(execution.memory(tensor, np.broadcast_to(masks, shape)))
        wide.append(np.broadcast_to(masks, shape).astype(np.float64))
    dims = {problem.leading.free: batch[0]} if problem.leading.free else {}
    y = execution.run(
        template, problem, schedule, memory, (*batch, problem.queries, problem.width), dims
    )
    reference, tolerance = expected(problem, *drawn, wide)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(reference))
    error = np.abs(np.nan_to_num(y - reference))
    worst = float((error / tolerance).max())
    assert worst <= 1, f"the largest error is {worst:.3g} times what rounding explains"


def expected(problem: Attention, q: Any, k: Any, v: Any, wide: Any) -> tuple[Any, Any]:
    """The result in float64, and what rounding explains (the rules of wpk/checks/error_bounds.py)."""
    narrow = problem.precision.storage.bytes == 2
    u = 0.0 if narrow else problem.precision.multiply_roundoff
    cut = 2 * U / 8 if problem.precision is not Precision.FP32 else 0.0
    products = 4 * (u + U * np.sqrt(problem.depth)) + cut * problem.depth
    error = products * (np.abs(q) @ np.abs(k).swapaxes(-1, -2))
    scores = evaluate(problem.scores.expression, q @ k.swapaxes(-1, -2), wide)
    scaled = evaluate(problem.scores.expression, error, [np.zeros_like(w) for w in wide])
    finite = np.where(np.isfinite(scores), scores, 0.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(scaled) + 2 * U * np.abs(finite)
        largest = scores.max(-1, keepdims=True)
        exponentials = np.exp(scores - largest)
        p = exponentials / exponentials.sum(-1, keepdims=True)
        depth = np.where(np.isfinite(scores), np.abs(scores - largest), 0.0)
    if problem.empty_rows_are_zero:
        p = np.where(np.isnan(p), 0.0, p)
    relative = 2 * error.max(-1, keepdims=True) + 4 * U * (np.sqrt(problem.keys) + depth + 4)
    rounded = problem.precision.storage.unit_roundoff if narrow else u
    of_p = p * (relative + rounded) + (2.0**-25 if narrow else 2.0**-149)
    products = 4 * (u + U * np.sqrt(problem.keys)) + cut * problem.keys
    tolerance = of_p @ np.abs(v) + products * (p @ np.abs(v))
    reference = p @ v
    rounding = problem.y.dtype.unit_roundoff * np.abs(reference) + 2.0**-25
    return reference, np.nan_to_num(tolerance + rounding, nan=1.0)


CASES: dict[str, dict[str, Any]] = {
    "one tile": {"queries": 16, "keys": 16, "depth": 16, "batch": (1, 1)},
    "many steps": {"queries": 50, "keys": 150, "depth": 32},
    "odd everything": {"queries": 33, "keys": 77, "depth": 40, "batch": (1, 2)},
    "values of another size": {"queries": 17, "keys": 40, "depth": 64, "width": 24},
    "wide heads": {"queries": 20, "keys": 33, "depth": 128, "batch": (1, 1)},
    "a query": {"queries": 1, "keys": 65, "depth": 64, "scale": 0.125},
}
FAST = [("many steps", Precision.FP16), ("many steps", Precision.FP32), ("odd everything", "tf32")]


@pytest.mark.parametrize(("case", "precision"), FAST)
def test_tensor_cores_agree_with_float64(case: str, precision: str, fast_execution: Any) -> None:
    check(fast_execution, MMA, attention(precision=Precision(precision), **CASES[case]), SCHEDULE)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", list(Precision))
def test_all_sizes_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, checking_execution: Any
) -> None:
    problem = attention(precision=precision, **CASES[case])
    schedule = replace(SCHEDULE, warps_m=1, warps_n=1, stages=1) if case == "one tile" else SCHEDULE
    check(checking_execution, MMA, problem, schedule)
    check(fast_execution, SIMT, problem, AttentionSimtSchedule(warps=2))


def test_ordinary_cores_agree_with_float64_on_tensors_that_lie_in_any_way(
    checking_execution: Any,
) -> None:
    problem = attention(5, 43, 7, width=9, precision=Precision.FP16, batch=(2, 1))
    assert MMA.why_not(problem, TARGET) is not None
    across = Tensor(DType.FP16, (43 * 7, 0, 1, 43), 0, 2)
    problem = replace(problem, k=across, y=replace(problem.y, strides=(80, 0, 16, 1), padding=7))
    check(checking_execution, SIMT, problem, AttentionSimtSchedule(warps=4))


@pytest.mark.parametrize("template", [MMA, SIMT])
@pytest.mark.parametrize("zero", [False, True])
def test_masks_empty_rows_and_large_scores(template: Any, zero: bool, fast_execution: Any) -> None:
    """-inf everywhere gives no number, or 0 where the graph says so; -inf in front is no more than 0."""
    queries, keys = 20, 70
    problem = attention(queries, keys, 32, mask=(0, 0, keys, 1), scale=0.5, zero=zero)
    masks = np.zeros((queries, keys), np.float32)
    masks[np.triu_indices(queries, 1, keys)] = -np.inf
    masks[3] = -np.inf
    masks[5] = np.finfo(np.float32).min
    masks[6, :60] = -np.inf  # the first steps of the row are empty
    masks[7] = np.linspace(-300, 300, keys)  # every step scales the earlier ones to nothing
    schedule = SCHEDULE if template is MMA else AttentionSimtSchedule(warps=3)
    check(fast_execution, template, problem, schedule, masks=masks, spread=2.0)


def test_takes_a_free_batch(fast_execution: Any) -> None:
    problem = attention(18, 34, 16, batch=(1, 2))
    strides = {"q": 18 * 32, "k": 34 * 32, "v": 34 * 32, "y": 18 * 32}
    tensors = {
        name: replace(getattr(problem, name), strides=(s, *getattr(problem, name).strides[1:]))
        for name, s in strides.items()
    }
    problem = replace(problem, batch=(Extent(1, "N"), 2), **tensors)
    for template, schedule in ((MMA, SCHEDULE), (SIMT, AttentionSimtSchedule(warps=2))):
        check(fast_execution, template, problem, schedule, leading=3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": 4}, "a ring of 4 steps of 2 x 16 of 77 keys"),
        ({"warps_n": 8, "stages": 1}, "8 warps of 16 keys, there are 77"),
        ({"warps_m": 4}, "4 warps of 16 queries, there are 33"),
        ({"block_n": 24}, "24 keys of a warp are no multiple of 16"),
        ({"early": 2}, "early is 0 or 1, not 2"),
        ({"warps_m": 1, "warps_n": 1, "block_n": 128, "stages": 1}, "copies more than 16 pieces"),
    ],
)
def test_says_why_a_schedule_is_illegal(change: dict[str, int], words: str) -> None:
    problem = attention(33, 77, 40)
    assert MMA.why_illegal(problem, SCHEDULE, TARGET) is None
    assert words in str(MMA.why_illegal(problem, replace(SCHEDULE, **change), TARGET))


@pytest.mark.slow
def test_what_is_legal_compiles_without_spilling() -> None:
    for precision in (Precision.FP16, Precision.FP32):
        problem = attention(128, 128, 64, precision=precision, mask=(0, 0, 128, 1), batch=(1, 12))
        _, legal = MMA.space(problem, TARGET)
        for row in range(0, len(legal["warps_m"]), 5):
            schedule = MMA.schedule(legal, row)
            (source,) = MMA.instantiate(problem, schedule)
            resources = load_nvrtc().compile(source, TARGET.arch).resources
            # ptxas may give up a word to have as many registers as another block wants.
            assert resources.spill_store_bytes <= 16, schedule


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": 4}, "the ring has one step at least, and no more than there are"),
        ({"block_n": 24}, "whole pairs of tiles of 8 keys"),
        ({"early": 2}, "early is 0 or 1"),
    ],
)
def test_what_is_illegal_does_not_compile(change: dict[str, int], words: str) -> None:
    (source,) = MMA.instantiate(attention(33, 77, 40), replace(SCHEDULE, **change))
    with pytest.raises(CompileError, match=words):
        load_nvrtc().compile(source, TARGET.arch)
