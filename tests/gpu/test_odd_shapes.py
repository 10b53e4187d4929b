"""On the GPU, right schedules are right on odd shapes too, and one that is wrong only there is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, plant
from support.networks import handwritten
from support.plans.candidates import kernel
from support.problems import attentions

from wpk.build import CompilePool, KernelCache
from wpk.candidate import Candidate
from wpk.dtypes import ASKED, Precision
from wpk.lowering.model import lower_model
from wpk.problems import Problem
from wpk.schedules.attention_mma import AttentionMmaSchedule
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.targets.registry import find_target
from wpk.trial_bench.compile_ahead import CompileAhead, KernelOrder
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.odd_shapes import OddShapes

pytestmark = pytest.mark.gpu

H200 = find_target("h200")
SCHEDULES = 2
"""Of every template for every problem."""


@contextmanager
def _odd(folder: Path) -> Iterator[OddShapes]:
    with (
        CompilePool(H200.arch, cache=KernelCache(folder)) as pool,
        CompileAhead(H200, pool.submit) as ahead,
        GpuLease() as lease,
    ):
        yield OddShapes(H200, lease, ahead)


def _wanted(problem: Problem) -> Iterator[KernelOrder]:
    """Schedules of every template from all over its space, the same at every call."""
    for template in TEMPLATES:
        fits = isinstance(problem, template.problem_type)
        if fits and template.why_not(problem, H200) is None:
            _, columns = template.space(problem, H200)
            rows = len(next(iter(columns.values())))
            drawn = np.random.default_rng(rows).choice(rows, min(SCHEDULES, rows), replace=False)
            for row in drawn:
                schedule = template.schedule(columns, int(row))
                yield KernelOrder(problem, Candidate(template.maker, schedule.parameters()))


@pytest.mark.parametrize("precision", list(ASKED))
def test_no_right_schedule_is_called_wrong(
    precision: Precision, tmp_path: Path, record: Callable[[str, Any], None]
) -> None:
    problems: dict[Problem, None] = {}
    for name in handwritten.TEXTS:
        lowered = lower_model(handwritten.write(name, tmp_path), {}, precision)
        problems |= dict.fromkeys(o.problem for o in lowered.program.operators)
    wanted = list(dict.fromkeys(each for problem in problems for each in _wanted(problem)))
    with _odd(tmp_path) as odd:
        odd.expect(wanted)
        verdicts = {each: odd.verdict(each) for each in wanted}
    checked = Counter(each.candidate.maker.name for each, v in verdicts.items() if not v.unchecked)
    record(f"odd_shapes.{precision}", {"schedules": len(wanted), "checked": dict(checked)})
    assert {str(w): v.wrong for w, v in verdicts.items() if v.wrong} == {}
    assert {"conv_mma", "conv_simt", "gemm_simt", "attention_simt"} <= set(checked)


def test_keys_behind_the_last_one_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "attention_mma"
    fault = Fault("", change("last_key", "lengths.keys()", "Shape::keys * 99"))
    monkeypatch.setitem(TEMPLATE_OF, name, plant(TEMPLATE_OF[name], fault))
    schedule = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)
    problem = attentions.attention(64, 64, 32)
    with _odd(tmp_path) as odd:
        verdict = odd.verdict(KernelOrder(problem, kernel(name, schedule.parameters())))
    assert verdict.wrong.startswith("on the odd shape attention")
