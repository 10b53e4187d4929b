"""Attention on the GPU: schedules from all over the space against float64, and what each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.launches.early_chains import Bench
from support.launches.early_kernels import Case, operands
from support.problems.attentions import HARD_SWISH, attention

from wpk.device import CudaDevice
from wpk.dtypes import ASKED, DType, Precision
from wpk.libraries.attention_reference import attend
from wpk.problems import Attention, Windows
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

EVERY = 3
"""One of so many legal schedules is executed."""

LENGTH, SAMPLES, REPETITIONS = 32, 9, 5
H200 = find_target("h200")
PROBLEMS = {
    "128 tokens": {"queries": 128, "keys": 128, "depth": 64, "batch": (1, 12)},
    "128 tokens, 8 sentences": {"queries": 128, "keys": 128, "depth": 64, "batch": (8, 12)},
    "197 tokens, 4 images": {"queries": 197, "keys": 197, "depth": 64, "batch": (4, 12)},
    "1214 tokens": {"queries": 1214, "keys": 1214, "depth": 64, "batch": (1, 12), "scale": 0.125},
    "odd": {"queries": 77, "keys": 131, "depth": 40, "batch": (2, 3)},
    "wide heads": {"queries": 100, "keys": 200, "depth": 128, "batch": (1, 4)},
    "rolled windows": {
        "queries": 49,
        "keys": 49,
        "depth": 32,
        "batch": (8, 12),
        "added": DType.FP16,
        "windows": Windows(14, 14, 7, 7, shift=(3, 3)),
    },
    "windows across": {
        "queries": 49,
        "keys": 49,
        "depth": 32,
        "batch": (8, 4),
        "windows": Windows(28, 14, 7, 7, across=True),
    },
    "a hard swish and a residual behind": {
        "queries": 49,
        "keys": 196,
        "depth": 32,
        "width": 128,
        "batch": (1, 8),
        "ending": HARD_SWISH,
        "added": DType.FP16,
    },
}


def schedules(problem: Attention) -> Iterator[Case]:
    """Cases of all templates."""
    reads, written = problem.accesses()
    inputs = tuple(each.sizes for each in reads if each is not None)
    for name in ("attention_mma", "attention_simt", "attention_wgmma"):
        template = TEMPLATE_OF[name]
        if template.why_not(problem, H200) is not None:
            continue
        _, legal = template.space(problem, H200)
        for row in range(0, len(legal["early"]), EVERY):
            chosen = dict(template.schedule(legal, row).parameters())
            del chosen["early"]
            yield Case(name, problem, chosen, inputs, written.sizes)


def reference(case: Case) -> tuple[Any, Any]:
    """What `operands` should give, and the error that is allowed."""
    drawn = [
        np.lib.stride_tricks.as_strided(
            memory, shape, [stride * memory.itemsize for stride in tensor.strides]
        ).astype(np.float64)
        for memory, shape, tensor in zip(
            operands(case, seed=1),
            case.inputs,
            (each.tensor for each in case.problem.accesses()[0]),
            strict=True,
        )
    ]
    return attend(case.problem, *drawn[:3], drawn[3:])


def result(bench: Bench, case: Case) -> Any:
    """The output over its domain, in float64."""
    y = case.problem.y
    flat = bench.device.read(bench.output, bench.bytes).view(y.dtype.numpy)
    strides = [stride * y.dtype.bytes for stride in y.strides]
    return np.lib.stride_tricks.as_strided(flat, case.output, strides).astype(np.float64)


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("name", PROBLEMS)
def test_schedules_agree_with_float64(cuda: CudaDevice, name: str, precision: Precision) -> None:
    cases = list(schedules(attention(precision=precision, **PROBLEMS[name])))
    wanted, allowed = reference(cases[0])
    for case in cases:
        bench = Bench(cuda, case)
        cuda.launch(bench.kernel())
        worst = float((np.abs(result(bench, case) - wanted) / allowed).max())
        assert worst <= 1, f"{case.template} {case.schedule}: {worst} times too far"


@pytest.mark.timed
@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("name", PROBLEMS)
def test_schedules_repeat_themselves_and_what_they_take(
    cuda: CudaDevice, record: Callable[[str, object], None], name: str, precision: Precision
) -> None:
    rows = []
    for case in schedules(attention(precision=precision, **PROBLEMS[name])):
        bench = Bench(cuda, case)
        cuda.launch(bench.kernel())
        first = result(bench, case)
        for _ in range(REPETITIONS):
            cuda.launch(bench.kernel())
            np.testing.assert_array_equal(result(bench, case), first)
        rows.append({"us": _microseconds(cuda, bench), "schedule": case.schedule})
    rows.sort(key=lambda row: row["us"])
    record(f"attention.{name}.{precision.value}", {"fastest": rows[:8]})
    assert rows


def _microseconds(cuda: CudaDevice, bench: Bench) -> float:
    """Of a launch in a chain of itself, as an engine has it; the median."""
    launch = bench.kernel()
    if cuda.capability < (9, 0):
        launch = replace(launch, attributes=())
    graph = cuda.capture([launch] * LENGTH)
    samples = sorted(cuda.seconds(graph) / LENGTH * 1e6 for _ in range(SAMPLES))
    return samples[SAMPLES // 2]
