"""Locks: what is refused, and what a rebuilt plan is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def lock(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lock of the model's plan, written beside it: ``m.plan``."""
    from wpk.cli.main import main

    folder = tmp_path_factory.mktemp("lock")
    command = ["optimize", model, "-o", folder / "m.plan", "--target", "h200"]
    command += ["--lock", folder / "m.lock"]
    assert main([str(each) for each in command]) == 0
    return folder / "m.lock"


def _edited(source: Path, path: Path, **changes: Any) -> Path:
    data = json.loads(source.read_text())
    path.write_text(json.dumps({**data, **changes}))
    return path


def test_a_rebuilt_plan_is_the_same_to_the_byte(
    wpk: Command, model: Path, lock: Path, tmp_path: Path
) -> None:
    again, relocked = tmp_path / "m.plan", tmp_path / "m.lock"
    command = ["optimize", model, "-o", again, "--from-lock", lock, "--lock", relocked]
    assert wpk(*command, "--cache", tmp_path / "cache").code == 0
    assert again.read_bytes() == lock.with_suffix(".plan").read_bytes()
    assert relocked.read_bytes() == lock.read_bytes()


def test_a_lock_is_read_by_people(lock: Path) -> None:
    lines = lock.read_text().splitlines()
    (schedule,) = [line for line in lines if '["block_m", ' in line]
    assert '["split", ' in schedule


def test_options_may_repeat_what_the_lock_says(
    wpk: Command, model: Path, lock: Path, tmp_path: Path
) -> None:
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--from-lock", lock]
    same = ["--target", "h200", "--precision", "fp32", "--check", "off"]
    assert wpk(*command, *same).code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--precision", "fp16"], "--precision is fp16, locked is fp32"),
        (["--target", "a100"], r"the lock is for h200 (sm_90a), asked is a100 (sm_80)"),
        (["--skip-pass", "layout"], "--skip-pass is"),
        (["--shapes", "x:2x8"], "--shapes is"),
    ],
)
def test_a_lock_of_another_plan_is_refused(
    refused: Command, model: Path, lock: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    plan = tmp_path / "m.plan"
    assert words in refused("optimize", model, "-o", plan, "--from-lock", lock, *options)
    assert not plan.exists()


def test_a_lock_of_another_model_is_refused(
    refused: Command, other_model: Path, lock: Path, tmp_path: Path
) -> None:
    message = refused("optimize", other_model, "-o", tmp_path / "m.plan", "--from-lock", lock)
    assert "locked is small.onnx" in message


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("wpk", "0.0.9", "written by wpk 0.0.9 with nvrtc "),
        ("compiler", "nvrtc 12.0-1", "with nvrtc 12.0-1, this is wpk "),
        ("lock", 2, "has schema 2, this wpk"),
        ("plan", "0" * 64, "locked is 000000000000"),
        ("checks", [], "plan.json would have the digest"),
        ("steps", [], "0 steps, 2 entries of evidence"),
        ("precision", "fp7", "field lock.precision: 'fp7' is none of"),
    ],
)
def test_a_lock_that_cannot_be_kept_is_refused_in_words(
    refused: Command, model: Path, lock: Path, tmp_path: Path, field: str, value: Any, words: str
) -> None:
    edited, plan = _edited(lock, tmp_path / "edited.lock", **{field: value}), tmp_path / "m.plan"
    message = refused("optimize", model, "-o", plan, "--from-lock", edited)
    assert words in message
    assert not plan.exists()


def test_an_edited_choice_is_refused_naming_the_operator(
    refused: Command, model: Path, lock: Path, tmp_path: Path
) -> None:
    steps = json.loads(lock.read_text())["steps"]
    steps[1]["candidate"]["configuration"][1][1] *= 2
    edited = _edited(lock, tmp_path / "edited.lock", steps=steps)
    message = refused("optimize", model, "-o", tmp_path / "m.plan", "--from-lock", edited)
    assert f"operator '{steps[1]['operator']}' has kernels" in message


def test_what_is_no_lock_is_refused(refused: Command, model: Path, tmp_path: Path) -> None:
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--from-lock"]
    assert "cannot be read" in refused(*command, tmp_path / "none")
    (tmp_path / "no.lock").write_text("[1, 2]")
    assert "no lock file" in refused(*command, tmp_path / "no.lock")
    (tmp_path / "no.lock").write_bytes(b"\xff\x00")
    assert "no JSON" in refused(*command, tmp_path / "no.lock")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--from-lock", "x", "-o", "p", "--seed", "1"],
            "--from-lock searches nothing, and --seed",
        ),
        (
            ["--from-lock", "x", "-o", "p", "--skip-template", "gemm_simt"],
            "--from-lock searches nothing, and --skip-template",
        ),
        (["--dry-run", "--from-lock", "x"], "--from-lock searches nothing that --dry-run"),
        ([], "required: -o/--output"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    refused: Command, model: Path, options: list[str], words: str
) -> None:
    assert words in refused("optimize", model, *options, code=2)


@pytest.mark.parametrize("option", ["-o", "--lock", "--report"])
def test_a_folder_that_is_missing_is_refused_before_the_work(
    refused: Command, model: Path, tmp_path: Path, option: str
) -> None:
    there, missing = tmp_path / "m.plan", tmp_path / "missing" / "m.json"
    options = ["-o", missing] if option == "-o" else ["-o", there, option, missing]
    command = ["optimize", model, "--target", "h200", "--cache", tmp_path / "cache", *options]
    assert "cannot be written: No such file or directory" in refused(*command)
    assert list(tmp_path.iterdir()) == []


def test_a_preview_without_a_gpu_says_what_would_be_compiled(
    wpk: Command, model: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    result = wpk("optimize", model, "--dry-run", "--target", "h200", "--cache", cache)
    assert result.code == 0
    assert "kernels to compile, none to measure" in result.out
    assert not cache.exists()
