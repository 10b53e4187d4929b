"""Killing, resuming and sharing a store, with a tuning that needs no GPU."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rows.base import RowError
from rows.trials import FILE, all_trials, damage, measured_again, over_bound
from rows.tuning import kill_while_tuning, run_together
from support.plans import stored_trials
from support.plans.stored_trials import write_trials

from wpk.search.store.records import RunState, Stage
from wpk.search.store.store import TuningStore


def tuner(store: Path, count: int, pause: float) -> list[str]:
    return [sys.executable, stored_trials.__file__, str(store), str(count), str(pause)]


def never() -> float:
    return 60.0


def test_a_killed_tuning_keeps_its_trials(tmp_path: Path) -> None:
    store = tmp_path / FILE
    killed = kill_while_tuning(tuner(store, 100_000, 0.02), store, 0.4, never)
    after = all_trials(store)
    assert len(killed.trials) >= 2
    assert killed.trials == {trial.uid for trial in after}
    assert damage(store) == []
    with TuningStore(store) as opened:
        assert [run.state for run in opened.runs()] == [RunState.RUNNING]


def test_a_tuning_that_ends_before_the_kill_was_not_killed(tmp_path: Path) -> None:
    store = tmp_path / FILE
    with pytest.raises(RowError, match="exit code 0 before it was killed"):
        kill_while_tuning(tuner(store, 1, 0.0), store, 30.0, never)


def test_measuring_again_what_the_store_held_is_noticed(tmp_path: Path) -> None:
    store = tmp_path / FILE
    write_trials(store, [2.0, 3.0])
    before = frozenset(trial.uid for trial in all_trials(store))
    write_trials(store, [2.0], Stage.FINAL)
    assert measured_again(before, all_trials(store)) == []
    write_trials(store, [2.0, 3.0, 4.0])
    again = measured_again(before, all_trials(store))
    assert [trial.schedule for trial in again] == [
        (("block_m", 0),),
        (("block_m", 1),),
    ]


def test_two_tunings_fill_one_store(tmp_path: Path) -> None:
    store = tmp_path / FILE
    seen = run_together([tuner(store, 20, 0.02)] * 2, store, never)
    trials = all_trials(store)
    assert len(trials) == 40
    assert seen <= {trial.uid for trial in trials}
    assert len({trial.run for trial in trials}) == 2
    assert damage(store) == []


def test_a_tuning_that_fails_beside_another_is_told(tmp_path: Path) -> None:
    store = tmp_path / FILE
    commands = [tuner(store, 3, 0.0), [sys.executable, "-c", "raise SystemExit(3)"]]
    with pytest.raises(RowError, match=r"exit codes \[0, 3\]"):
        run_together(commands, store, never)


def test_a_damaged_store_is_told(tmp_path: Path) -> None:
    store = tmp_path / FILE
    write_trials(store, [2.0] * 50)
    assert damage(store) == []
    with closing(sqlite3.connect(store)) as other:
        other.execute("DELETE FROM problems")
        other.commit()
    assert len(damage(store)) == 50


@pytest.mark.parametrize("multiples", [(1.0, 5.0), (0.5,)])
def test_times_are_told_as_multiples_of_the_bound(
    tmp_path: Path, multiples: tuple[float, ...]
) -> None:
    store = tmp_path / FILE
    write_trials(store, multiples)
    assert [ratio for ratio, _ in over_bound(store)] == pytest.approx(multiples)


def test_no_store_holds_no_trials(tmp_path: Path) -> None:
    assert all_trials(tmp_path / FILE) == ()
    assert not (tmp_path / FILE).exists()
