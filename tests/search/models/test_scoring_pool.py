"""Processes score what this process would, to the bit, and cost a run nothing but themselves."""

import logging
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.devices.processes import children
from support.networks import handwritten
from support.problems.products import matmul
from support.problems.registered import PROBLEMS

import wpk
from wpk.dtypes import Precision
from wpk.errors import ScheduleError
from wpk.problems import Problem
from wpk.process import ChildProcess
from wpk.progress import silent
from wpk.schedules.registry import TEMPLATES
from wpk.search.models.pruning import PUL, WAVES, Pruning
from wpk.search.models.scoring_answer import ScoredProblem
from wpk.search.models.scoring_pool import MANY_NODES, ScoringPool
from wpk.search.models.static_search import Shortlists, shortlist_problems
from wpk.targets.registry import find_target

pytestmark = pytest.mark.usefixtures("own_processes")

H200 = find_target("h200")
SOME = [matmul(m, 64, 96, precision=Precision.FP16) for m in (1, 40, 200, 40)]


def _here(problems: list[Problem], pruning: Pruning = WAVES) -> list[Shortlists]:
    return list(shortlist_problems(problems, TEMPLATES, H200, ["gemm_simt"], silent, pruning))


@pytest.mark.parametrize("pruning", [WAVES, PUL], ids=["waves", "pul"])
def test_processes_say_what_this_process_says_in_the_same_order(pruning: Pruning) -> None:
    told: list[tuple[int, int]] = []
    with ScoringPool(H200, ["gemm_simt"], pruning, processes=2) as pool:
        pool.begin(MANY_NODES)
        found = list(pool.shortlists(SOME, lambda stage, *of: told.append(of[:2])))
        again = list(pool.shortlists(SOME[:1], silent))
    assert [each.problem for each in found] == SOME[:3]
    assert found == _here(SOME, pruning)
    assert again == found[:1]
    assert found[0].templates[0].ranked == _here(SOME, pruning)[0].templates[0].ranked
    assert [each.template for each in found[0].refusals] == ["gemm_simt", "thin_wgmma"]
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_answer_holds_all_of_every_kind_of_shortlists(name: str) -> None:
    try:
        (found,) = shortlist_problems([PROBLEMS[name]], TEMPLATES, H200, (), silent)
    except ScheduleError:
        return  # nothing carries it
    again = ScoredProblem.of(found).shortlists(found.problem, H200)
    assert again == found
    for one, other in zip(again.templates, found.templates, strict=True):
        assert one.ranked == other.ranked
        assert list(one.kept.columns) == list(other.kept.columns)


def test_another_schedule_or_number_is_another_shortlist() -> None:
    (found,) = shortlist_problems(SOME[:1], TEMPLATES, H200, (), silent)
    kept = found.templates[0].kept
    for changed in (kept.estimate, next(iter(kept.columns.values()))):
        again = ScoredProblem.of(found)
        changed[-1] += 1
        assert again.shortlists(found.problem, H200) != found
        changed[-1] -= 1


def test_a_small_model_starts_no_process() -> None:
    before = children()
    with ScoringPool(H200, ["gemm_simt"], processes=2) as pool:
        pool.begin(MANY_NODES - 1)
        found = list(pool.shortlists(SOME, silent))
        assert children() == before
    assert found == _here(SOME)


def test_what_no_template_computes_is_refused_in_the_same_words() -> None:
    names = [each.name for each in TEMPLATES if each.name.startswith("gemm")]
    with pytest.raises(ScheduleError) as here:
        list(shortlist_problems(SOME, TEMPLATES, H200, names, silent))
    with ScoringPool(H200, names, processes=1) as pool:
        pool.begin(MANY_NODES)
        with pytest.raises(ScheduleError) as there:
            list(pool.shortlists(SOME, silent))
    assert (there.value.what, there.value.fix) == (here.value.what, here.value.fix)


def test_processes_that_die_cost_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    before = children()
    with ScoringPool(H200, ["gemm_simt"], processes=2) as pool:
        pool.begin(MANY_NODES)
        list(pool.shortlists(SOME[:1], silent))
        for child in children() - before:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.2)
        with caplog.at_level(logging.WARNING):
            found = list(pool.shortlists(SOME, silent))
    assert found == _here(SOME)
    assert "a process that scores schedules ended" in caplog.text


def test_leaving_ends_processes_and_what_they_do() -> None:
    before = children()
    many: list[Any] = [matmul(m, 2048, 2048, precision=Precision.FP32) for m in range(1, 400)]
    with ScoringPool(H200, processes=2) as pool:
        pool.begin(MANY_NODES)
        assert len(children() - before) == 2
        next(pool.shortlists(many, silent))
        begun = time.monotonic()
    assert children() == before
    assert time.monotonic() - begun < 5


def test_a_run_with_processes_writes_the_same_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_cubin: None
) -> None:
    model, plans = handwritten.write("channels_58", tmp_path), [tmp_path / "a", tmp_path / "b"]
    started: list[ChildProcess] = []

    def start() -> ChildProcess:
        started.append(ChildProcess("wpk.search.models.scoring_worker", errors=(ScheduleError,)))
        return started[-1]

    monkeypatch.setattr("wpk.search.models.scoring_pool._start", start)
    for plan, processes in zip(plans, (0, 2), strict=True):
        pool = partial(ScoringPool, processes=processes)
        monkeypatch.setattr("wpk.pipeline.from_model.ScoringPool", pool)
        monkeypatch.setattr("wpk.search.models.scoring_pool.MANY_NODES", 0)
        wpk.optimize(model, plan, target="h200", check="off")
        assert len(started) == processes
    assert plans[0].read_bytes() == plans[1].read_bytes()
    assert not any(each.is_alive for each in started)
