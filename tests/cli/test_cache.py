"""What is kept: shown, cleared, exported and imported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plans.candidates import kernel

from wpk.options import BuildOptions, SearchOptions
from wpk.plan.plan_file import read_plan
from wpk.problems import Matmul
from wpk.search.loop.cache_folder import CacheFolder
from wpk.search.store.key import Setup, StoreKey
from wpk.search.store.records import RunRequest, RunState
from wpk.search.store.store import TuningStore
from wpk.search.store.summary import summarize
from wpk.trial import Regime, Status, Trial

Command = Callable[..., Any]

SETUP = Setup("h200", "sm_90a", "nvrtc 13.0.88", "13.0")
REQUEST = RunRequest("net.onnx", "0" * 64, BuildOptions("h200", "fp16"), SearchOptions("genetic"))


@pytest.fixture
def problem(plan: Path) -> Matmul:
    found = read_plan(plan).plan.steps[0].operator.problem
    assert isinstance(found, Matmul)
    return found


@pytest.fixture
def folder(tmp_path: Path, problem: Matmul) -> Path:
    """A cache with three trials of two templates and targets, in one run that was interrupted."""
    places = CacheFolder(tmp_path / "cache")
    with TuningStore(places.store) as store:
        run = store.begin_run(0, REQUEST)
        key = StoreKey(problem, kernel("gemm_simt", version="1").maker, SETUP)
        other = StoreKey(
            problem,
            kernel("gemm_mma", version="2").maker,
            Setup("a100", "sm_80", "nvrtc 13.0.88", "12.8"),
        )
        wrong = Trial(kernel("gemm_simt", (("block", 16),)), Status.WRONG_RESULT, (), "off by one")
        for each, trial in (
            (key, Trial(kernel("gemm_simt", (("block", 8),)), Status.OK, (1e-6, 2e-6))),
            (key, wrong),
            (other, Trial(kernel("gemm_mma", (("block", 8),), 2), Status.OK, (3e-6,))),
        ):
            store.record(run.id, each, trial, Regime.WARM)
        store.end_run(run.id, RunState.INTERRUPTED)
    return places.path


def _trials(folder: Path) -> int:
    with TuningStore(CacheFolder(folder).store) as store:
        return summarize(store).trials


def test_show_counts_trials_by_template_status_and_run(wpk: Command, folder: Path) -> None:
    result = wpk("cache", "show", "--cache", folder)
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0][-4:] == ["problems", "trials", "ok", "wrong_result"]
    (simt,) = [line for line in lines if line[:1] == ["gemm_simt"]]
    assert simt[-4:] == ["1", "2", "1", "1"]  # problems, trials, ok, wrong
    (total,) = [line for line in lines if line[:1] == ["all"]]
    assert total == ["all", "3", "2", "1"]
    assert "interrupted  net.onnx  h200    fp16" in result.out
    assert "trials   3 of 1 problems in 1 runs" in result.out


def test_show_of_nothing_makes_nothing(wpk: Command, tmp_path: Path) -> None:
    result = wpk("cache", "show", "--cache", tmp_path / "none")
    assert result.code == 0
    assert "does not exist" in result.out
    assert not (tmp_path / "none").exists()


def test_clear_names_what_would_go_and_removes_it_only_with_yes(
    wpk: Command, refused: Command, folder: Path
) -> None:
    message = refused("cache", "clear", "--cache", folder)
    assert "would remove 3 trials of gemm_mma, gemm_simt on a100, h200" in message
    assert _trials(folder) == 3
    assert wpk("cache", "clear", "--cache", folder, "--yes").code == 0
    assert _trials(folder) == 0


def test_clear_of_one_target_leaves_the_others(wpk: Command, folder: Path) -> None:
    assert wpk("cache", "clear", "--cache", folder, "--target", "a100", "--yes").code == 0
    assert _trials(folder) == 2
    again = wpk("cache", "clear", "--cache", folder, "--target", "a100")
    assert again.code == 0
    assert "nothing" in again.out


def test_clear_removes_kernels_and_nothing_else_in_their_folder(
    wpk: Command, model: Path, tmp_path: Path
) -> None:
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--target", "h200", "--check", "off"]
    assert wpk(*command, "--cache", tmp_path / "cache").code == 0
    kernels = tmp_path / "cache" / "cubin"
    (kernels / "mine").mkdir()
    (kernels / "mine" / "letter.txt").write_text("keep")
    assert len(list(kernels.iterdir())) > 1
    assert wpk("cache", "clear", "--cache", tmp_path / "cache", "--yes").code == 0
    assert [path.name for path in kernels.iterdir()] == ["mine"]
    assert (kernels / "mine" / "letter.txt").read_text() == "keep"


def test_what_was_exported_is_imported_once(wpk: Command, folder: Path, tmp_path: Path) -> None:
    lines, other = tmp_path / "t.jsonl", tmp_path / "other"
    assert "3 trials" in wpk("cache", "export", lines, "--cache", folder).out
    command = ["cache", "import", lines, "--cache", other, "--keep-foreign"]
    assert "3 trials added" in wpk(*command).out
    assert "0 trials added" in wpk(*command).out
    assert _trials(other) == 3


def test_a_damaged_export_adds_nothing(refused: Command, folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"tuning_store": 0}\n')
    assert "schema 0" in refused("cache", "import", lines, "--cache", folder)
    lines.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in refused("cache", "import", lines, "--cache", folder)
    assert "No such file" in refused("cache", "import", tmp_path / "none", "--cache", folder)
    assert _trials(folder) == 3


def test_an_export_that_cannot_be_written_leaves_nothing(
    refused: Command, folder: Path, tmp_path: Path
) -> None:
    assert "cannot be written" in refused(
        "cache", "export", tmp_path / "no" / "t.jsonl", "--cache", folder
    )
    assert "there are no trials" in refused(
        "cache", "export", tmp_path / "t.jsonl", "--cache", tmp_path / "none"
    )
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["export"], "required: FILE.jsonl"),
        (["show", "x.jsonl"], "unrecognized arguments: x.jsonl"),
        (["show", "--yes"], "unrecognized arguments: --yes"),
        (["clear", "--keep-foreign"], "unrecognized arguments: --keep-foreign"),
    ],
)
def test_options_of_another_action_are_wrong_usage(
    refused: Command, arguments: list[str], words: str
) -> None:
    assert words in refused("cache", *arguments, code=2)
