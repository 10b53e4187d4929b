"""What models choose first is recorded by one command; problems and kernels for it are made without a GPU."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from record_spaces import LISTS, main
from spaces.dry_run import DryProblem, dry_run, gpu_seconds
from spaces.large_batch import LARGE_BATCH
from spaces.line_file import Known, problem_line, read_lines
from spaces.of_networks import network_problems
from spaces.probing import Probe
from spaces.problem_file import described, read_described, read_problems, write_problems
from spaces.problems import FP16, PROBLEMS
from spaces.sampling import carrying
from subjects.problems import convolution
from support.networks.drawn_weights import parse_model

from wpk.build import Compilation, CompilePool
from wpk.libraries import why_unknown
from wpk.performance import bound
from wpk.problems import Convolution, Elementwise, NormedMatmul
from wpk.search.models.shortlist import shortlist
from wpk.targets import find_target

H100 = find_target("h100")
NAME = "mobilenet_v2.1x1_7.fp16"
TINY = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 16, 6, 6] x, float[16, 16, 3, 3] w)
    => (float[2, 16, 6, 6] y, float[2, 16, 6, 6] z) {
    y = Conv<pads = [1, 1, 1, 1]>(x, w)  z = Sigmoid(x) }"""


def test_the_first_are_those_of_all_templates_together_and_the_others_are_drawn() -> None:
    problem = PROBLEMS[NAME]
    found = Probe(24, 12)(problem, H100)
    least = bound(problem, H100)
    ranked = sorted(
        (each.estimate, template.name, each.schedule.parameters())
        for template in carrying(problem, H100)
        for each in shortlist(problem, template, H100, least).first(24)
    )[:24]
    first = {(s.template.name, each.parameters()) for s in found for each in s.kept}
    assert first == {(name, parameters) for _, name, parameters in ranked}
    assert len(found) > 1, "several templates have some of the first"
    assert 10 <= sum(len(s.grid) for s in found) <= 14
    assert not any(set(s.kept) & set(s.grid) for s in found)
    for sample in found:
        told = sample.told(problem, H100)
        assert [told[each].rank for each in sample.kept] == list(range(len(sample.kept)))
        assert sorted(told[each].estimate for each in sample.kept) == [
            told[each].estimate for each in sample.kept
        ]
        assert any(told[each].rank is None for each in sample.grid) or len(sample.grid) < 3
    again = Probe(24, 12)(problem, H100)
    assert [s.grid for s in again] == [s.grid for s in found]
    assert [s.grid for s in Probe(24, 12, seed=1)(problem, H100)] != [s.grid for s in found]


def test_the_written_list_has_problems_that_can_be_judged() -> None:
    assert isinstance(LARGE_BATCH["vit.qkv_b32.fp16"], NormedMatmul)
    assert LISTS["large-batch"] == (LARGE_BATCH,)
    assert not set(LARGE_BATCH) & set(PROBLEMS)
    for name, problem in LARGE_BATCH.items():
        assert not list(problem.contradictions()), name
        assert why_unknown(problem) is None, name


def test_problems_go_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "problems.json"
    write_problems(path, LARGE_BATCH)
    assert read_problems(path) == LARGE_BATCH
    data = described(LARGE_BATCH["vit.qkv_b32.fp16"])
    with pytest.raises(SystemExit, match=r"problem .*kind.*fix: prepare the problems again"):
        read_described(data | {"kind": "mode"}, "some")
    path.write_text("[1]")
    with pytest.raises(SystemExit, match="holds no problems by name"):
        read_problems(path)
    with pytest.raises(SystemExit, match="holds no problems: "):
        read_problems(tmp_path / "none.json")


def test_a_network_is_prepared_without_what_nobody_could_judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(parse_model(TINY, "w"), tmp_path / "tiny.b2.onnx")
    every = network_problems("tiny.fp16.b2", tmp_path, H100)
    assert {type(each) for each in every.values()} >= {Convolution, Elementwise}
    prepared = tmp_path / "tiny.json"
    asked = ["--problems", "tiny.fp16.b2", "--models", str(tmp_path), "--prepare", str(prepared)]
    assert main(asked) == 0
    assert [type(each) for each in read_problems(prepared).values()] == [Convolution]
    assert "is left out: there is no reference" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"tiny names no network; fix: NETWORK\.PRECISION\.bBATCH"):
        network_problems("tiny", tmp_path, H100)


def test_a_dry_run_compiles_once_what_is_recorded_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems = tmp_path / "tiny.json"
    write_problems(problems, {"tiny.fp16.b2.0": convolution(16, 16, 6, n=2, precision=FP16)})
    asked = [
        "--problems",
        str(problems),
        "--first",
        "1",
        "--random",
        "1",
        "--dry",
        "--workers",
        "1",
    ]
    asked += ["--kernels", str(tmp_path / "kernels")]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "tiny.fp16.b2.0" in told
    assert "expected on a machine of 16 cores" in told
    (again,) = dry_run(read_problems(problems), H100, Probe(1, 1), tmp_path / "kernels", 1)
    assert (again.schedules, again.compile_seconds, dict(again.faults)) == (2, 0.0, {})


def test_a_dry_run_tells_what_spills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = CompilePool.compile

    def spilling(pool: CompilePool, sources: object) -> list[Compilation]:
        found = list(compiled(pool, sources))  # type: ignore[arg-type]
        resources = SimpleNamespace(spills=True, spill_store_bytes=8, spill_load_bytes=4)
        return [
            Compilation(e.source, e.status, SimpleNamespace(resources=resources), None, 0.0, False)  # type: ignore[arg-type]
            for e in found
        ]

    monkeypatch.setattr(CompilePool, "compile", spilling)
    problems = tmp_path / "tiny.json"
    write_problems(problems, {"tiny": convolution(16, 16, 6, n=2, precision=FP16)})
    asked = ["--problems", str(problems), "--first", "1", "--dry", "--workers", "1"]
    assert main([*asked, "--kernels", str(tmp_path / "kernels")]) == 1
    assert "spills" in capsys.readouterr().out


def test_measuring_waits_for_compiling_where_that_takes_longer() -> None:
    quick = DryProblem("quick", 48, {}, 14.0, 10.0, 1.0)
    slow = DryProblem("slow", 48, {}, 1400.0, 10.0, 1.0)
    ready, unready = gpu_seconds([quick], cores=16)
    assert ready == unready
    ready, unready = gpu_seconds([quick, slow], cores=16)
    assert np.isclose(ready, 6 + 22)
    assert np.isclose(unready, 6 + 101)


def test_an_output_is_asked_for() -> None:
    with pytest.raises(SystemExit, match=r"--output FOLDER is missing; fix: give it"):
        main(["--problems", "large-batch"])


def test_a_record_of_a_problem_that_nothing_says_is_refused(tmp_path: Path) -> None:

    problem = LARGE_BATCH["vit.up_b32.fp16"]
    path = tmp_path / "spaces-0.jsonl"
    path.write_text(json.dumps(problem_line("mine", problem)) + "\n")
    assert read_lines([path]).problem("mine") == problem
    with pytest.raises(SystemExit, match="does not say which problem that is"):
        Known().problem("mine")
