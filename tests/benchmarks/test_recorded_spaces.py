"""Parts of schedule spaces: what is recorded, in what order, and what is read back."""

import io
import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from spaces.line_file import Header, cut_to_whole_lines, read_lines, trial_line
from spaces.problems import FP16, PROBLEMS, TIERS, network_of
from spaces.recorded import read_spaces
from spaces.recorder import FINALISTS, Recorder, _in_turn, shares, space_of
from spaces.sampling import MOST_KEPT, MOST_OF_GRID, Sample, grid_rows, samples
from subjects.problems import convolution
from support.devices.dummy_gpu import DummyGpu
from teach_store import teach

from wpk.candidate import Candidate, Maker
from wpk.schedules import TEMPLATE_OF
from wpk.search.loop.lessons import Lessons
from wpk.search.models import PROMISING
from wpk.search.store import Setup
from wpk.targets import find_target
from wpk.trial import Regime, Status, Trial

H100 = find_target("h100")
NAME = "mobilenet_v2.1x1_7.fp16"
MAKER = Maker("conv_mma", "8")


@pytest.fixture(scope="module")
def sampled() -> list[Sample]:
    """Of one problem, all templates."""
    return samples(PROBLEMS[NAME], H100)


def test_several_networks_have_many_spaces() -> None:
    assert len({network_of(name) for name in TIERS[0]}) >= 6
    assert not set(TIERS[0]) & set(TIERS[1])
    assert {str(problem.precision) for problem in PROBLEMS.values()} == {"fp16", "fp32", "tf32"}


def test_a_sample_holds_what_production_tries_first_and_a_grid(sampled: list[Sample]) -> None:
    mma = next(each for each in sampled if each.template.name == "conv_mma")
    simt = next(each for each in sampled if each.template.name == "conv_simt")
    assert mma.legal > MOST_OF_GRID >= len(mma.grid) >= MOST_OF_GRID / 2
    assert len(mma.kept) == min(MOST_KEPT, mma.survivors)
    assert len(simt.kept) < simt.survivors
    assert not simt.grid
    again = next(s for s in samples(PROBLEMS[NAME], H100) if s.template.name == "conv_mma")
    assert (again.kept, again.grid) == (mma.kept, mma.grid)


def test_a_grid_holds_all_that_is_legal_of_its_values() -> None:
    generator = np.random.default_rng(3)
    axes = np.meshgrid(*(np.arange(n) for n in (5, 4, 6, 3)), indexing="ij")
    table = np.stack([axis.ravel() for axis in axes], axis=1)
    table = table[table.sum(axis=1) % 5 != 0]
    columns = dict(zip("abcd", table.T, strict=True))
    rows = grid_rows(columns, 60, generator)
    assert 30 <= len(rows) <= 60
    values = [set(table[rows, axis].tolist()) for axis in range(4)]
    inside = [all(v in values[axis] for axis, v in enumerate(row)) for row in table.tolist()]
    assert np.flatnonzero(inside).tolist() == rows.tolist()
    assert grid_rows(columns, 10**6, generator).tolist() == list(range(len(table)))


def test_the_promising_come_first_and_every_schedule_once(sampled: list[Sample]) -> None:
    (sample,) = (each for each in sampled if each.template.name == "conv_mma")
    space = space_of(NAME, PROBLEMS[NAME], sample, H100)
    chunks = space.chunks()
    every = [each for chunk in chunks for each in chunk]
    assert [c.configuration for c in chunks[0]] == [s.parameters() for s in sample.kept[:PROMISING]]
    assert len(every) == len(set(every)) == len(set(sample.kept) | set(sample.grid))
    space.trials = {each: Trial(each, Status.OK, (1e-6,)) for each in chunks[0] + chunks[2]}
    assert [each for chunk in space.chunks() for each in chunk] == [
        each for each in every if each not in space.trials
    ]


def test_spaces_take_turns(sampled: list[Sample]) -> None:
    found = [space_of(NAME, PROBLEMS[NAME], sample, H100) for sample in sampled]
    turns = [space.sample.template.name for space, _ in _in_turn(found)]
    assert turns[: len(found)] == [sample.template.name for sample in sampled]
    assert len(set(turns[len(found) : 2 * len(found)])) == len(found)


def _header() -> Header:
    return Header(NAME, "conv_mma", "8", ("m", "n"), 900, 30, ((1, 2),), ((3, 4), (5, 6)))


def _line(values: tuple[int, int], seconds: tuple[float, ...], turn: int, bad: bool = False) -> str:
    candidate = Candidate(MAKER, tuple(zip(("m", "n"), values, strict=True)))
    status = Status.WRONG_RESULT if bad else Status.OK
    return json.dumps(trial_line(_header().key, Trial(candidate, status, seconds), turn)) + "\n"


def test_later_rounds_take_the_place_of_the_sweep_and_a_failure_stays(tmp_path: Path) -> None:
    path = tmp_path / "spaces-0.jsonl"
    lines = [
        json.dumps({"device": "a GPU", "target": "h100"}) + "\n",
        json.dumps(_header().line()) + "\n",
        *(_line((1, 2), (3e-6, 3e-6), 0), _line((3, 4), (2e-6,), 0), _line((5, 6), (1e-6,), 0)),
        *(_line((1, 2), (1e-6,), 1), _line((5, 6), (), 1, bad=True), _line((1, 2), (2e-6,), 2)),
    ]
    path.write_text("".join(lines) + '{"of": "cut o')
    known = read_lines([path])
    assert known.headers == {_header().key: _header()}
    assert known.machines[0]["device"] == "a GPU"
    found = {
        tuple(v for _, v in each.configuration): trial
        for each, trial in known.trials(_header(), MAKER).items()
    }
    assert found[1, 2].seconds == (1e-6, 2e-6)
    assert found[3, 4].seconds == (2e-6,)
    assert found[5, 6].status is Status.WRONG_RESULT
    cut_to_whole_lines(path)
    assert path.read_text() == "".join(lines)
    path.write_text('{"of": "cut o\n' + lines[0])
    with pytest.raises(SystemExit, match=r"line 1 of .* is damaged"):
        read_lines([path])


def test_a_record_of_other_schedules_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "spaces-0.jsonl"
    path.write_text(json.dumps(_header().line()) + "\n")
    known = read_lines([path])
    known.require_same(_header())
    with pytest.raises(SystemExit, match="other schedules or another version"):
        known.require_same(Header(NAME, "conv_mma", "9", ("m", "n"), 900, 30, (), ()))


class _Output(io.StringIO):
    name = "spaces-0.jsonl"


def test_the_recorder_measures_and_goes_on(tmp_path: Path) -> None:
    name, problem = "tiny.conv.fp16", convolution(16, 16, 6, precision=FP16, relu=True)
    (mma,) = (s for s in samples(problem, H100) if s.template.name == "conv_mma")
    few = replace(mma, kept=mma.kept[:2], grid=mma.grid[:1])

    def opened() -> Any:
        gpu = DummyGpu(lambda *_: (2e-6, 2e-6))
        gpu.name, gpu.capability = "NVIDIA H100 80GB HBM3 (sm_90)", (9, 0)
        gpu.facts = SimpleNamespace(driver="580", clock=1.98e9)  # type: ignore[assignment]
        return gpu

    def record(before: str) -> str:
        path = tmp_path / "spaces-0.jsonl"
        path.write_text(before)
        output = _Output()
        end = time.monotonic() + 100
        known = read_lines([path])
        Recorder(output, known, end, opened, lambda *_: [few], "abc").record(
            [{name: problem}], workers=1
        )
        return before + output.getvalue()

    first = record("")
    rows = [json.loads(line) for line in first.splitlines()]
    about = {"device": "NVIDIA H100 80GB HBM3 (sm_90)", "driver": "580", "target": "h100"}
    assert rows[0] == about | {"most_mhz": 1980.0, "commit": "abc"}
    assert [row["problem"] for row in rows if "is" in row] == [name]
    swept = [row for row in rows if row.get("round") == 0]
    assert len(swept) == len({tuple(row["schedule"]) for row in swept}) == 3 <= FINALISTS
    assert {row["status"] for row in swept} == {"ok"}
    assert [row["rank"] for row in swept[:2]] == [0, 1]
    assert swept[0]["estimate"] <= swept[1]["estimate"]
    assert sum(row.get("round", 0) > 0 for row in rows) == 6
    again = [json.loads(line) for line in record(first)[len(first) :].splitlines()]
    assert not [row for row in again if row.get("round") == 0 or "space" in row or "is" in row]
    path = tmp_path / "spaces-0.jsonl"
    path.write_text(first)
    (space,) = read_spaces(tmp_path)
    assert (space.problem, len(space.kept), len(space.grid)) == (problem, 2, 1)


def test_a_store_is_taught_what_was_recorded(tmp_path: Path) -> None:
    template = TEMPLATE_OF["conv_mma"]
    _, columns = template.space(PROBLEMS[NAME], H100)
    schedules = [template.schedule(columns, row).parameters() for row in range(3)]
    values = [tuple(v for _, v in each) for each in schedules]
    names = tuple(name for name, _ in schedules[0])
    header = Header(
        NAME, "conv_mma", template.maker.version, names, 900, 30, (values[0],), (values[1],)
    )
    trials = [
        Trial(Candidate(template.maker, schedules[0]), Status.OK, (2e-6,)),
        Trial(Candidate(template.maker, schedules[1]), Status.WRONG_RESULT, (), "differs"),
        Trial(Candidate(template.maker, schedules[2]), Status.OK, (1e-6,)),
    ]
    lines = [{"device": "a GPU", "target": "h100"}, header.line()]
    lines += [trial_line(header.key, trial, 0) for trial in trials]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "spaces-0.jsonl").write_text(text)
    (tmp_path / "machine.json").write_text('{"nvrtc": "13.0", "driver": "580"}')
    store = tmp_path / "trials.sqlite"
    assert teach(tmp_path, store) == 3
    setup = Setup(
        "h100", H100.arch, "13.1", "590"
    )  # another compiler and driver learn all the same
    experience = Lessons(store, H100, setup, Regime.WARM, "").of(template)
    assert experience is not None
    (lesson,) = experience.lessons
    assert lesson.features == PROBLEMS[NAME].features()
    assert sorted(lesson.costs.tolist()) == [1e-6, 2e-6, np.inf]
    assert lesson.best(1) == [dict(schedules[2])]


def test_problems_are_dealt_out_to_gpus_in_turn() -> None:
    problem = convolution(16, 16, 6, precision=FP16)
    tiers = [dict.fromkeys(("a", "b", "c"), problem), {"d": problem}]
    assert [[list(tier) for tier in mine] for mine in shares(tiers, 2)] == [
        [["a", "c"], ["d"]],
        [["b"], []],
    ]
