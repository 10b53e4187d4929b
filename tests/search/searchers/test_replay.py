"""Recordings: written, read, refused; and what a replay does."""

from pathlib import Path
from typing import Any

import pytest
from support.plans.candidates import kernel

from wpk.errors import ScheduleError
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.searchers.replay import (
    RECORDED,
    Recording,
    best_so_far,
    read_recording,
    replay,
    write_recording,
)
from wpk.trial import Status, Trial


def _recording() -> Recording:
    names = ("block", "stages")
    trials = (
        Trial(
            kernel("conv_mma", (("block", 64), ("stages", 2)), RECORDED),
            Status.OK,
            (1.25e-05, 1.5e-05, 1.3e-05),
        ),
        Trial(
            kernel("conv_mma", (("block", 128), ("stages", 2)), RECORDED),
            Status.WRONG_RESULT,
            detail="error 3.0 > 0.1",
        ),
        Trial(kernel("conv_mma", (("block", 128), ("stages", 4)), RECORDED), Status.OK, (9e-06,)),
    )
    return Recording("NVIDIA H200", "conv", {"n": 1.0, "c_in": 64.0}, "conv_mma", names, trials)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    for name in ("one.jsonl", "one.jsonl.xz"):
        path = tmp_path / name
        write_recording(_recording(), path)
        assert read_recording(path) == _recording()
    assert path.read_bytes().startswith(b"\xfd7zXZ")


@pytest.mark.parametrize("kept", [0, 10, 200], ids=["empty", "no header", "cut off"])
def test_a_damaged_compressed_recording_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "one.jsonl.xz"
    write_recording(_recording(), path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ScheduleError, match="cannot be read"):
        read_recording(path)


def test_the_format_is_the_documented_one(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    write_recording(_recording(), path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        (
            '{"device": "NVIDIA H200", "problem": {"name": "conv", "features": '
            '{"n": 1.0, "c_in": 64.0}}, "template": "conv_mma", "parameters": ["block", "stages"]}'
        ),
        '{"schedule": [64, 2], "seconds": [1.25e-05, 1.5e-05, 1.3e-05], "status": "ok"}',
        (
            '{"schedule": [128, 2], "seconds": [], "status": "wrong_result", '
            '"detail": "error 3.0 > 0.1"}'
        ),
        '{"schedule": [128, 4], "seconds": [9e-06], "status": "ok"}',
    ]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda lines: [*lines[:3], lines[3][:20]], "line 4"),
        (lambda lines: [lines[0], lines[1].replace("[64, 2]", "[64]")], "line 2"),
        (lambda lines: [lines[0], lines[1].replace('"ok"', '"fine"')], "'fine'"),
        (lambda lines: [lines[0].replace('"device"', '"machine"')], "line 1.*'device'"),
        (lambda lines: ["[]"], "line 1"),
        (lambda lines: [""], "line 1"),
    ],
    ids=["cut off", "too few values", "unknown status", "no device", "no header", "empty"],
)
def test_a_damaged_recording_is_refused_with_its_line(
    tmp_path: Path, damage: Any, words: str
) -> None:
    path = tmp_path / "one.jsonl"
    write_recording(_recording(), path)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(damage(lines)), encoding="utf-8")
    with pytest.raises(ScheduleError, match=words):
        read_recording(path)


def test_a_recording_of_nothing_has_no_space() -> None:
    nothing = Recording("none", "conv", {}, "none", ("block",), ())
    with pytest.raises(ScheduleError, match="no RecordedSchedule to search"):
        nothing.space  # noqa: B018 - the property raises


def test_a_replay_answers_with_what_was_recorded() -> None:
    recording = _recording()
    trials = replay(RandomSearch(recording.space, 1), recording, 10, batch=2)
    assert sorted(trials, key=recording.trials.index) == list(recording.trials)
    assert recording.best == 9e-06


def test_the_curve_falls_and_failures_leave_it_as_it_is() -> None:
    assert best_so_far(_recording().trials) == [1.3e-05, 1.3e-05, 9e-06]
    assert best_so_far([]) == []


def test_recordings_are_of_one_gpu_and_have_every_schedule_once(beds: list[Recording]) -> None:
    assert {bed.device for bed in beds} == {"NVIDIA H200 (sm_90)"}
    for bed in beds:
        assert (
            bed.space.size
            == len(bed.trials)
            == len({trial.candidate.configuration for trial in bed.trials})
        )
        assert all(trial.status is Status.OK for trial in bed.trials)
