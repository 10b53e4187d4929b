"""A run lives as long as the block that it is entered for."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.devices.gpus import H200

from wpk.errors import EngineError
from wpk.options import BuildOptions, SearchOptions
from wpk.search.loop import runs
from wpk.search.loop.budget import EFFORTS, Budget
from wpk.search.loop.tuning import Tuning
from wpk.search.store.records import RunRecord, RunRequest, RunState
from wpk.search.store.store import TuningStore

REQUEST = RunRequest("m.onnx", "0" * 64, BuildOptions("h200"), SearchOptions(seed=3))


@pytest.fixture
def tuning(tmp_path: Path) -> Tuning:
    return Tuning("auto", EFFORTS[1], Budget(seconds=60.0), 3, tmp_path / "trials.sqlite", H200)


def state(tuning: Tuning) -> RunState:
    with TuningStore(tuning.store) as store:
        return store.runs()[-1].state


def test_a_run_is_finished_when_its_block_is(tuning: Tuning) -> None:
    told: list[RunRecord] = []
    with runs.entered(tuning, REQUEST, on_run=told.append) as (limited, run):
        assert (limited, run.seed, run.request) == (tuning, 3, REQUEST)
        assert told == [run]
        assert state(tuning) is RunState.RUNNING
    assert state(tuning) is RunState.FINISHED


@pytest.mark.parametrize(
    ("error", "left"),
    [(KeyboardInterrupt, RunState.INTERRUPTED), (RuntimeError, RunState.FAILED)],
)
def test_a_run_that_breaks_off_says_how_and_can_be_gone_on_with(
    tuning: Tuning, error: type[BaseException], left: RunState
) -> None:
    with pytest.raises(error), runs.entered(tuning, REQUEST):
        raise error
    assert state(tuning) is left
    earlier = runs.find_same_run(tuning.store, "2", REQUEST)
    with runs.entered(tuning, REQUEST, earlier) as (limited, run):
        assert run.id == earlier.id
        assert limited.budget == Budget(seconds=60.0)  # no trial has cost any of it
    assert state(tuning) is RunState.FINISHED


def test_a_run_is_resumed_with_its_own_options_only(tuning: Tuning) -> None:
    with runs.entered(tuning, REQUEST):
        pass
    asked = runs.recall(tuning.store, "2")
    assert (asked["target"], asked["seed"], asked["effort"]) == ("h200", 3, 1)
    other = RunRequest(
        "n.onnx", "1" * 64, BuildOptions("h200", skip_passes=("b", "a")), SearchOptions(seed=4)
    )
    with pytest.raises(EngineError) as refused:
        runs.find_same_run(tuning.store, "2", other)
    for words in ("digest is 1111", "--skip-pass is ('a', 'b'), the run has ()", "--seed is 4"):
        assert words in str(refused.value)
