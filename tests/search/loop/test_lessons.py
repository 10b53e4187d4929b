"""What the store knows of other problems becomes lessons."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from subjects.problems import matmul

from wpk.candidate import Candidate
from wpk.performance import bound
from wpk.problems import Matmul
from wpk.schedules import TEMPLATE_OF
from wpk.search.loop.lessons import Lessons
from wpk.search.models.shortlist import predict
from wpk.search.store import Setup, Stage, StoreKey, TuningStore, measured_by_others
from wpk.targets import find_target
from wpk.trial import Regime, Status, Trial

H200 = find_target("h200")
SETUP = Setup("h200", H200.arch, "13.0", "580")
TEMPLATE = TEMPLATE_OF["gemm_mma"]
WARM = Regime.WARM


def _record(store: TuningStore, run: str, problem: Matmul, count: int, **changes: object) -> None:
    """The first schedules of a template, each a microsecond slower than the one before."""
    _, columns = TEMPLATE.space(problem, H200)
    key = StoreKey(problem, TEMPLATE.maker, replace(SETUP, **changes))  # type: ignore[arg-type]
    for row in range(count):
        candidate = Candidate(TEMPLATE.maker, TEMPLATE.schedule(columns, row).parameters())
        store.record(run, key, Trial(candidate, Status.OK, (1e-6 * (1 + row),)), WARM)


def test_other_runs_teach_each_problem(tmp_path: Path) -> None:
    path, (small, large) = tmp_path / "t.sqlite", (matmul(64, 256, 256), matmul(128, 512, 512))
    with TuningStore(path) as store:
        before, now = store.begin_run(1).id, store.begin_run(2).id
        _record(store, before, small, 3)
        _record(store, before, large, 2)
        _record(store, now, large, 5)  # its own, and so known as such
        _record(store, before, small, 9, target="a100", arch="sm_80")
        failed = Candidate(TEMPLATE.maker, (("nothing", 1),))
        key = StoreKey(matmul(32, 32, 32), TEMPLATE.maker, SETUP)
        store.record(before, key, Trial(failed, Status.WRONG_RESULT), WARM, Stage.SEARCH)
        found = measured_by_others(store, TEMPLATE.maker, SETUP, WARM, now)
        assert {problem: len(trials) for problem, trials in found.items()} == {
            small: 3,
            large: 2,
            key.problem: 1,
        }
        cold = measured_by_others(store, TEMPLATE.maker, SETUP, Regime.COLD, now)
        assert list(cold) == [key.problem]
    experience = Lessons(path, H200, SETUP, WARM, now).of(TEMPLATE)
    assert experience is not None
    (lesson,) = (each for each in experience.lessons if each.features == small.features())
    assert sorted(lesson.costs.tolist()) == [1e-6, 2e-6, 3e-6]
    schedule = TEMPLATE.schedule(lesson.columns, 0)
    told = predict(small, TEMPLATE, schedule, H200, bound(small, H200)).estimate
    assert np.isclose(lesson.estimates[0], told)
    assert len(experience.lessons) == 2  # what failed alone teaches nothing


def test_an_empty_store_teaches_nothing(tmp_path: Path) -> None:
    lessons = Lessons(tmp_path / "t.sqlite", H200, SETUP, WARM, "")
    assert lessons.of(TEMPLATE) is None
