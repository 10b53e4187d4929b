"""Attention by warpgroups: numbers in float64 under every check, refusals, machine code, planted faults."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.beside_products import computed_beside
from support.machine_code.compiled_units import H200, NEAR
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import touched_in_flight
from support.numbers.attention_numbers import check_attention
from support.problems.attentions import attention

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.performance import bound, estimate
from wpk.problems import Attention, Windows
from wpk.schedules.attention_mma import AttentionMmaTemplate
from wpk.schedules.wgmma.attention import AttentionWgmmaSchedule, AttentionWgmmaTemplate
from wpk.targets.registry import find_target

WGMMA = AttentionWgmmaTemplate()
SCHEDULE = AttentionWgmmaSchedule(warpgroups=2, block_n=32, stages=2, pingpong=1, early=1)
ALONE = replace(SCHEDULE, warpgroups=1, pingpong=0)

CASES: dict[str, tuple[dict[str, Any], AttentionWgmmaSchedule]] = {
    "a tile": (
        {"queries": 128, "keys": 32, "depth": 16, "batch": (1, 1)},
        replace(SCHEDULE, stages=1, pingpong=0),
    ),
    "197 tokens": ({"queries": 197, "keys": 197, "depth": 64, "scale": 0.125}, SCHEDULE),
    "odd everything": ({"queries": 131, "keys": 77, "depth": 40, "batch": (3, 1)}, SCHEDULE),
    "narrow heads": (
        {"queries": 70, "keys": 50, "depth": 32, "width": 16, "scale": 0.25},
        replace(SCHEDULE, block_n=16, stages=4, pingpong=0),
    ),
    "wide values": (
        {"queries": 129, "keys": 83, "depth": 16, "width": 128, "batch": (1, 2)},
        replace(SCHEDULE, warpgroups=3),
    ),
    "80 elements": (
        {"queries": 33, "keys": 97, "depth": 80, "batch": (1, 3)},
        replace(ALONE, block_n=48, early=0),
    ),
    "registers handed over": (
        {"queries": 190, "keys": 300, "depth": 128, "width": 96, "batch": (1, 1), "scale": 0.1},
        replace(SCHEDULE, block_n=144),
    ),
    "all keys in one step": (
        {"queries": 150, "keys": 139, "depth": 72, "width": 40, "batch": (3, 1), "scale": 0.2},
        AttentionWgmmaSchedule(2, 144, 1, 0, 1),
    ),
    "one step of three": (
        {"queries": 190, "keys": 187, "depth": 64, "batch": (2, 2), "scale": 0.125},
        AttentionWgmmaSchedule(3, 192, 1, 0, 1),
    ),
    "a query": (
        {"queries": 1, "keys": 65, "depth": 64, "scale": -0.125},
        replace(ALONE, stages=3),
    ),
}


OF_BF16 = ("odd everything", "narrow heads")


@pytest.mark.parametrize(
    ("case", "precision"),
    [
        *((case, Precision.FP16) for case in CASES),
        *((case, Precision.BF16) for case in OF_BF16),
    ],
)
def test_agrees_with_float64_under_every_check(
    case: str, precision: Precision, checking_execution: Any
) -> None:
    sizes, schedule = CASES[case]
    problem = attention(precision=precision, **sizes)
    if case != "narrow heads":  # whose steps are shorter than those that are tried
        assert WGMMA.why_illegal(problem, schedule, H200) is None
    check_attention(checking_execution, WGMMA, problem, schedule)


@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16])
def test_adds_causal_masks_and_biases(dtype: DType, checking_execution: Any) -> None:
    queries, keys = 70, 85
    problem = attention(queries, keys, 32, batch=(2, 2), mask=(0, 0, keys, 1), scale=0.3, width=24)
    (mask,) = problem.scores.operands
    mask = replace(mask, dtype=dtype, alignment=dtype.bytes)
    problem = replace(problem, scores=replace(problem.scores, operands=(mask,)))
    masks = np.random.default_rng(1).standard_normal((queries, keys)).astype(dtype.numpy)
    masks[np.triu_indices(queries, 1, keys)] = -np.inf
    check_attention(checking_execution, WGMMA, problem, SCHEDULE, masks=masks)


def test_adds_masks_where_one_step_has_all_keys(checking_execution: Any) -> None:
    queries, keys = 70, 128
    schedule = AttentionWgmmaSchedule(2, 128, 1, 0, 1)
    problem = attention(queries, keys, 32, batch=(2, 2), mask=(0, 0, keys, 1), scale=0.3, width=24)
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    masks = np.random.default_rng(2).standard_normal((queries, keys)).astype(np.float32)
    masks[np.triu_indices(queries, 1, keys)] = -np.inf
    check_attention(checking_execution, WGMMA, problem, schedule, masks=masks)


def _lying_apart(problem: Attention) -> Attention:
    """Queries, keys and values beside each other in one row, the keys' matrices all one."""
    q, k, v = problem.q, problem.k, problem.v
    row = 3 * problem.batch[1] * problem.depth
    rows = (problem.queries * row, problem.depth, row, 1)
    return replace(
        problem,
        q=replace(q, strides=rows),
        k=replace(k, strides=(0, *rows[1:])),
        v=replace(v, strides=(problem.keys * row, 0, row, 1)),
    )


def test_tensors_may_lie_apart_and_be_broadcast(checking_execution: Any) -> None:
    problem = _lying_apart(attention(70, 70, 24, batch=(2, 3)))
    assert WGMMA.why_not(problem, H200) is None
    rng = np.random.default_rng(5)
    drawn = [rng.standard_normal((2, 3, 70, 24)).astype(np.float16) for _ in range(3)]
    drawn[1][1] = drawn[1][0]
    drawn[2][:, 1:] = drawn[2][:, :1]
    check_attention(checking_execution, WGMMA, problem, SCHEDULE, drawn=drawn)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (attention(64, 64, 64, precision=Precision.FP32), "values of fp32 lie across"),
        (attention(64, 64, 36), "k has a stride of 72 bytes; tensor copies need multiples of 16"),
        (attention(64, 64, 264), "heads of 264 and 264, at most 256"),
        (
            attention(16, 16, 16, windows=Windows(8, 8, 4, 4), batch=(4, 1)),
            "rows of windows lie apart",
        ),
        (
            replace(attention(64, 64, 64), k=replace(attention(64, 64, 64).k, dtype=DType.FP32)),
            "k is fp32; tensor copies bring fp16 as it lies",
        ),
    ],
)
def test_says_what_it_does_not_compute(problem: Attention, words: str) -> None:
    if words.startswith("k has"):
        problem = replace(problem, q=replace(problem.q, strides=(0, 64, 128, 1), alignment=16))
    assert words in str(WGMMA.why_not(problem, H200))


def test_only_hopper_has_warpgroups() -> None:
    words = str(WGMMA.why_not(attention(64, 64, 64), find_target("sm_80")))
    assert "no products of warpgroups" in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 1}, "one warpgroup takes no turns"),
        ({"pingpong": 2}, "pingpong is 0 or 1"),
        ({"warpgroups": 4}, "a block has 1 to 3 consumers"),
        ({"block_n": 40}, "whole slices of 16 keys"),
        ({"stages": 5}, "no more than there are steps"),
        ({"early": 2}, "early is 0 or 1"),
    ],
)
def test_what_is_illegal_is_said_and_does_not_compile(changes: dict[str, int], words: str) -> None:
    problem = attention(197, 130, 64)
    schedule = replace(SCHEDULE, **changes)
    assert words in str(WGMMA.why_illegal(problem, schedule, H200))
    (source,) = WGMMA.instantiate(problem, schedule)
    with pytest.raises(CompileError, match=words):
        load_nvrtc().compile(source, H200.arch)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"warpgroups": 3, "block_n": 128}, "at most 160 registers: more would spill"),
        ({"pingpong": 0, "warpgroups": 1, "block_n": 192, "stages": 4}, "bytes of shared memory"),
        ({"warpgroups": 3}, "each warpgroup has some of the 128 queries"),
    ],
)
def test_says_what_does_not_fit(changes: dict[str, int], words: str) -> None:
    queries = 128 if words.startswith("each") else 1500
    problem = attention(queries, 1500, 128)
    assert words in str(WGMMA.why_illegal(problem, replace(SCHEDULE, **changes), H200))


@pytest.mark.parametrize(
    ("depth", "masked", "schedule"),
    [
        (64, False, AttentionWgmmaSchedule(1, 128, 2, 0, 1)),
        (128, False, AttentionWgmmaSchedule(2, 128, 2, 1, 1)),
        (64, True, AttentionWgmmaSchedule(3, 48, 2, 1, 1)),
    ],
    ids=str,
)
def test_machine_code_keeps_its_registers(
    depth: int, masked: bool, schedule: AttentionWgmmaSchedule, tmp_path: Path
) -> None:
    mask = (0, 0, 1214, 1) if masked else None
    problem = attention(1214, 1214, depth, batch=(1, 12), scale=0.125, mask=mask)
    (source,) = WGMMA.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    estimated = WGMMA.work(problem, schedule.columns(), H200).registers[0]
    assert abs(kernel.resources.registers - estimated) <= NEAR
    counted = count_tensor_core_instructions(kernel.cubin)[source.entry]
    assert set(counted) == {"hgmma.f16"}
    assert "serialized" not in kernel.log
    assert "setmaxnreg" not in kernel.log
    text = listing(kernel.cubin, tmp_path)
    assert touched_in_flight(text) == []
    weights = 64 * schedule.block_n // 128
    assert computed_beside(text, "MUFU.EX2") >= weights, "a step's weights are beside the products"


@pytest.mark.parametrize(
    ("tokens", "schedule"),
    [(197, AttentionWgmmaSchedule(1, 112, 2, 0, 1)), (128, AttentionWgmmaSchedule(2, 64, 2, 0, 1))],
    ids=str,
)
def test_of_two_steps_the_second_is_weighed_beside_the_first_ones_products(
    tokens: int, schedule: AttentionWgmmaSchedule, tmp_path: Path
) -> None:
    """Without a loop around them ptxas moves them about the most."""
    problem = attention(tokens, tokens, 64, batch=(32, 12), scale=0.125)
    (source,) = WGMMA.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert "serialized" not in kernel.log
    weights = computed_beside(listing(kernel.cubin, tmp_path), "MUFU.EX2")
    assert weights >= 64 * (tokens - schedule.block_n) // 128


@pytest.mark.slow
@pytest.mark.parametrize("step", [121, pytest.param(5, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("depth", [64, 128])
def test_what_is_legal_compiles_without_spilling(depth: int, step: int) -> None:
    for mask in (None, (0, 0, 400, 1)):
        problem = attention(400, 400, depth, mask=mask, batch=(1, 12))
        _, legal = WGMMA.space(problem, H200)
        for row in range(0, len(legal["stages"]), step):
            schedule = WGMMA.schedule(legal, row)
            (source,) = WGMMA.instantiate(problem, schedule)
            kernel = load_nvrtc().compile(source, H200.arch)
            assert not kernel.resources.spills, schedule
            assert "serialized" not in kernel.log, schedule


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize(
    ("keys", "depth"),
    [(64, 32), (64, 128), (128, 64), (128, 128), (144, 64), (176, 64), (192, 32), (192, 64)],
)
def test_one_step_keeps_scores_in_registers_until_they_are_weights(
    keys: int, depth: int, groups: int
) -> None:
    """No values are added up meanwhile: three eighths fewer than where steps follow each other."""
    problem = attention(192, keys, depth, batch=(32, 12), scale=0.125)
    schedule = AttentionWgmmaSchedule(groups, keys, 1, 0, 1)
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    (source,) = WGMMA.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, H200.arch)
    assert not kernel.resources.spills
    estimated = WGMMA.work(problem, schedule.columns(), H200).registers[0]
    assert abs(kernel.resources.registers - estimated) <= NEAR


@pytest.mark.parametrize("tokens", [197, 256])
def test_two_steps_have_the_registers_that_they_are_mixed_in(tokens: int) -> None:
    """Two warpgroups of 128 keys a step are handed registers then; without, they spilled."""
    problem, schedule = (
        attention(tokens, tokens, 64, scale=0.125),
        AttentionWgmmaSchedule(2, 128, 2),
    )
    assert WGMMA.why_illegal(problem, schedule, H200) is None
    (source,) = WGMMA.instantiate(problem, schedule)
    assert not load_nvrtc().compile(source, H200.arch).resources.spills


def test_two_steps_of_three_warpgroups_have_fewer_keys() -> None:
    schedule = AttentionWgmmaSchedule(3, 112, 2)
    assert WGMMA.why_illegal(attention(256, 256, 64), schedule, H200) is None, "three steps"
    reason = WGMMA.why_illegal(attention(197, 197, 64), schedule, H200)
    assert "at most 160 registers: more would spill" in str(reason)


def _fastest(template: Any, problem: Attention) -> float:
    _, columns = template.space(problem, H200)
    seconds = estimate(template.work(problem, columns, H200), bound(problem, H200), H200)
    return float(seconds.min())


def test_models_expect_it_where_tokens_are_many() -> None:
    long = attention(1500, 1500, 64, batch=(4, 12), scale=0.125)
    mma = AttentionMmaTemplate()
    assert _fastest(WGMMA, long) < 0.8 * _fastest(mma, long)


FAULTS = [
    Fault("queries are multiplied before they are there", drop("queries_awaited")),
    Fault("tiles are multiplied before they are there", drop("tiles_awaited")),
    Fault("first scores are read before they are there", drop("first_scores_awaited")),
    Fault("scores are read before they are there", drop("scores_awaited")),
    Fault("weights are written while products read them", drop("values_added")),
    Fault("the last values are read before they are added", drop("last_values_added")),
    Fault("a group does not pass its turn on", drop("turn_passed_on")),
    Fault("keys are not released", drop("keys_released")),
    Fault("a stage is filled while others read it", drop("stage_acquired")),
    Fault("barriers are used before they are there", drop("barriers_ready")),
    Fault("staged rows are read before they are there", drop("rows_staged")),
    Fault("what was summed before is not scaled down", drop("values_rescaled")),
    Fault("keys behind the last one count", change("last_key", "lengths.keys()", "9999")),
    Fault("powers of e are those of two", change("scale_folded", "1.4426950408889634f", "1.0f")),
    Fault(
        "a fragment's rows are exchanged", change("weights_packed", "pair[i % 2 * 2]", "pair[0]")
    ),
    Fault("a consumer has another's rows", change("rows_of_consumer", "group *", "0 *")),
    Fault("slices lie elsewhere", change("slice_across", "slice *", "2 * slice *")),
    Fault(
        "the second box of a row is the first",
        change("slice_along", "slice * 32 / swizzle", "0 * slice"),
    ),
]


CASES_OF_FAULTS = [
    *((fault, 72) for fault in FAULTS),
    (Fault("results are staged over tiles that others read", drop("tiles_free")), 16),
]
"""With the size of a head: queries of two boxes a row; and few bytes of them, so that staging begins over values."""


@pytest.mark.parametrize(
    ("fault", "depth"), CASES_OF_FAULTS, ids=[fault.name for fault, _ in CASES_OF_FAULTS]
)
def test_a_planted_fault_is_seen(fault: Fault, depth: int, checking_execution: Any) -> None:
    """Two consumers, a last step of few keys, more steps than stages."""
    problem = attention(75, 150, depth, width=80, batch=(1, 1), scale=0.25)
    with pytest.raises((AssertionError, EmulatorError)):
        check_attention(checking_execution, plant(WGMMA, fault), problem, SCHEDULE)
