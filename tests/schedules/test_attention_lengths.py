"""Attention whose queries and keys a run decides: one kernel at several lengths, each against float64."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, plant
from support.problems.attentions import attention

from wpk.codec import decode, encode
from wpk.dtypes import ASKED, DType, Precision
from wpk.emulator import EmulatorError
from wpk.extent import Extent
from wpk.libraries.attention_reference import attend
from wpk.problems import Attention, Problem, Tensor
from wpk.schedules.attention_mma import AttentionMmaSchedule, AttentionMmaTemplate
from wpk.schedules.attention_simt import AttentionSimtSchedule, AttentionSimtTemplate
from wpk.schedules.wgmma.attention import AttentionWgmmaSchedule, AttentionWgmmaTemplate
from wpk.targets.registry import find_target

MMA, SIMT, WGMMA = AttentionMmaTemplate(), AttentionSimtTemplate(), AttentionWgmmaTemplate()
H200 = find_target("h200")
SCHEDULES = (
    (MMA, AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)),
    (MMA, AttentionMmaSchedule(warps_m=1, warps_n=1, block_n=32, stages=4)),
    (SIMT, AttentionSimtSchedule(warps=3)),
    (WGMMA, AttentionWgmmaSchedule(warpgroups=1, block_n=16, stages=2)),
)
SIZES = ((1, 1, 1), (1, 7, 7), (2, 64, 64), (3, 33, 33), (5, 17, 17), (2, 1, 50), (2, 50, 1))
"""Batch, queries, keys."""


def free_attention(
    batch: int, queries: int, keys: int, precision: Precision, *, masked: bool = True
) -> Attention:
    """A problem tuned at these sizes, all of which are free."""
    fixed = attention(queries, keys, 16, precision=precision, batch=(batch, 2), scale=0.5)
    if masked:
        fixed = attention(
            *(queries, keys, 16),
            precision=precision,
            batch=(batch, 2),
            mask=(keys, 0, 0, 1),
            scale=0.5,
            zero=True,
        )
        (mask,) = fixed.scores.operands
        fixed = replace(fixed, scores=replace(fixed.scores, operands=(replace(mask, alignment=4),)))

    def apart(tensor: Tensor, rows: int) -> Tensor:
        return replace(tensor, strides=(rows * tensor.strides[2], *tensor.strides[1:]))

    lengths = Extent(queries, "Q"), Extent(keys, "K")
    return replace(
        fixed,
        batch=(Extent(batch, "N"), 2),
        q=apart(fixed.q, queries),
        k=apart(fixed.k, keys),
        v=apart(fixed.v, keys),
        y=apart(fixed.y, queries),
        free_queries=lengths[0],
        free_keys=lengths[1],
    )


def run(execution: Any, template: Any, schedule: Any, precision: Precision, sizes: Any) -> float:
    """Return the largest error at these sizes, over what rounding explains; tuned elsewhere."""
    batch, queries, keys = sizes
    tuned, at = (
        free_attention(2, 24, 40, precision),
        free_attention(batch, queries, keys, precision),
    )
    for one, other in zip(
        template.instantiate(tuned, schedule), template.instantiate(at, schedule), strict=True
    ):
        assert one.digest == other.digest  # one kernel, whatever it was tuned at
    rng = np.random.default_rng(0)
    drawn, memory = [], []
    for tensor, rows in ((at.q, queries), (at.k, keys), (at.v, keys)):
        values = rng.standard_normal((batch, 2, rows, 16)).astype(tensor.dtype.numpy)
        memory.append(execution.memory(tensor, values))
        drawn.append(values.astype(np.float64))
    masks = np.where(rng.random((batch, 1, 1, keys)) < 0.3, -np.inf, 0.0).astype(np.float32)
    masks[0] = -np.inf if keys > 1 else 0.0
    wide = np.broadcast_to(masks, (batch, 2, queries, keys))
    memory.append(execution.memory(at.scores.operands[0], wide))
    dims = {"N": batch, "Q": queries, "K": keys}
    # Memory is laid out as `at` says; the launch is the tuned problem's.
    launched = replace(tuned, y=at.y)
    y = execution.run(template, launched, schedule, memory, (batch, 2, queries, 16), dims)
    reference, tolerance = attend(at, *drawn, [wide.astype(np.float64)])
    assert not np.isnan(y).any()
    return float((np.abs(y - reference) / tolerance).max())


@pytest.mark.parametrize("sizes", SIZES)
def test_agrees_with_float64_at_every_length(sizes: Any, fast_execution: Any) -> None:
    for template, schedule in SCHEDULES:
        assert run(fast_execution, template, schedule, Precision.FP16, sizes) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("precision", ASKED)
@pytest.mark.parametrize("sizes", SIZES)
def test_agrees_in_every_precision_under_checks(
    sizes: Any, precision: Precision, checking_execution: Any
) -> None:
    problem = free_attention(*sizes, precision)
    for template, schedule in SCHEDULES:
        if template.why_not(problem, H200) is None:
            assert run(checking_execution, template, schedule, precision, sizes) <= 1


FAULTS = (
    Fault("queries of another matrix", change("first_query", "queries_", "keys_")),
    Fault("keys of another matrix", change("first_key", "keys_", "queries_")),
    Fault("keys behind the last one count", change("last_key", "lengths.keys()", "99999")),
    Fault(
        "rows behind the last one are written", change("last_query", "lengths.queries()", "99999")
    ),
)


@pytest.mark.every_combination
@pytest.mark.parametrize(("template", "schedule"), [SCHEDULES[0], SCHEDULES[-1]])
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_is_seen(
    fault: Fault, template: Any, schedule: Any, checking_execution: Any
) -> None:
    try:
        error = run(
            checking_execution, plant(template, fault), schedule, Precision.FP16, (3, 33, 20)
        )
    except (EmulatorError, AssertionError):
        return
    assert not error <= 1


def test_says_what_is_read_and_comes_back_from_a_file() -> None:
    problem = free_attention(2, 24, 40, Precision.FP16)
    assert decode(encode(problem, Problem), Problem, "problem") == problem
    assert list(problem.contradictions()) == []
    (q, k, _, mask), y = problem.accesses()
    dims = {"N": 3, "Q": 5, "K": 7}
    assert q is not None
    assert k is not None
    assert mask is not None
    assert q.span_bytes(dims) == y.span_bytes(dims) == 3 * 5 * 32 * 2
    assert k.span_bytes(dims) == 3 * 7 * 32 * 2
    assert mask.span_bytes(dims) == 3 * 7 * 4
    assert list(problem.odd_siblings()) == []


def test_fixed_lengths_are_written_as_they_were() -> None:
    fields = encode(attention(16, 16, 16), Problem)
    assert "free_queries" not in fields
    assert "free_keys" not in fields


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"free_keys": None}, "is missing beside it"),
        ({"free_keys": Extent(41, "K")}, "which no length decides"),
        ({"y": Tensor(DType.FP16, (999, 16, 32, 1))}, "matrices do not follow each other"),
    ],
)
def test_a_forged_problem_contradicts_itself(change: dict[str, Any], words: str) -> None:
    problem = replace(free_attention(2, 24, 40, Precision.FP16), **change)
    assert any(words in what for _, what in problem.contradictions())
