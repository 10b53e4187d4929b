"""What the command line does about slips, and what it says on the way."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["optimise", "m.onnx"], "optimize"),
        (["cache", "shw"], "show"),
        (["optimize", "m.onnx", "--precision", "fp61"], "fp16"),
        (["optimize", "m.onnx", "--serach", "static"], "--search"),
        (["run", "m.plan", "--device", "cuda"], "gpu"),
    ],
)
def test_what_was_probably_meant_is_named(wpk: Command, arguments: list[str], meant: str) -> None:
    result = wpk(*arguments)
    assert result.code == 2
    assert f"did you mean {meant}" in result.err
    assert len(result.err.splitlines()) == 2


def test_help_comes_in_groups(wpk: Command) -> None:
    text = wpk("optimize", "--help").out
    for title in ("what the plan is for:", "how it is searched:", "how it is checked:"):
        assert f"\n{title}\n" in text
    assert "--unused" in wpk("cache", "prune", "--help").out
    assert "--unused" not in wpk("cache", "clear", "--help").out


def test_the_fix_is_printed_once(wpk: Command, tmp_path: Path) -> None:
    assert wpk("run", tmp_path / "none.plan").err.count("fix:") == 1


def test_a_dry_run_needs_no_other_command_line(wpk: Command, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.plan"
    result = wpk("optimize", model, "-o", output, "--target", "h200", "--dry-run")
    assert result.code == 0
    assert "nothing was compiled, measured or written" in result.out
    assert not output.exists()


def test_files_in_each_others_place_are_told(
    refused: Command, model: Path, plan: Path, tmp_path: Path
) -> None:
    assert "they are swapped" in refused("verify", model, plan, code=2)
    assert "is an ONNX model, and a plan is asked for" in refused("run", model)
    command = ("optimize", plan, "-o", tmp_path / "x.plan", "--target", "h200")
    assert "is a plan of wpk, and an ONNX model is asked for" in refused(*command)
    saved = tmp_path / "net.pt"
    saved.write_bytes(b"\x80\x02}q\x00.")
    assert "is a file of PyTorch" in refused("optimize", saved, *command[2:])


def test_bench_on_the_cpu_points_elsewhere(wpk: Command, plan: Path) -> None:
    result = wpk("bench", plan, "--device", "cpu")
    assert result.code == 2
    assert "wpk run PLAN --device cpu" in result.err


def test_quiet_says_what_was_written_only(wpk: Command, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.plan"
    command = ("optimize", model, "-o", output, "--target", "h200", "--check", "off")
    result = wpk(*command, "--quiet")
    assert (result.out, result.err) == (f"plan: {output}\n", "")
    assert "compiling kernels" in wpk(*command).err


def test_verbose_tells_the_causes_of_a_failure(wpk: Command, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"no zip")
    target = tmp_path / "t.toml"
    target.write_text("name = ")
    command = ("optimize", path, "-o", tmp_path / "x.plan", "--target", target)
    assert "cause:" not in wpk(*command).err
    told = wpk(*command, "-v").err
    assert "wpk: cause: TOMLDecodeError" in told
    assert "wpk: raised in " in told


def test_a_log_file_holds_every_stage(wpk: Command, model: Path, tmp_path: Path) -> None:
    log = tmp_path / "wpk.log"
    command = ("optimize", model, "-o", tmp_path / "m.plan", "--target", "h200", "--check", "off")
    assert wpk(*command, "--quiet", "--log-file", log).code == 0
    assert "compiling kernels" in log.read_text()
    result = wpk(*command, "--log-file", tmp_path / "none" / "wpk.log")
    assert result.code == 2
    assert "cannot be written" in result.err


def test_pruning_removes_what_was_used_least_recently(
    wpk: Command, model: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    command = ("optimize", model, "-o", tmp_path / "m.plan", "--target", "h200", "--check", "off")
    assert wpk(*command, "--cache", cache).code == 0
    kernels = sorted((cache / "cubin").iterdir())
    assert len(kernels) > 1
    long_ago = time.time() - 40 * 86400
    for file in kernels[0].iterdir():
        os.utime(file, (long_ago, long_ago))
    (cache / "cubin" / "mine").mkdir()
    assert "removed 0 of" in wpk("cache", "prune", "--cache", cache).out
    assert "removed 1 of" in wpk("cache", "prune", "--cache", cache, "--unused", "30d").out
    assert not kernels[0].exists()
    assert (
        f"removed {len(kernels) - 1} of"
        in wpk("cache", "prune", "--cache", cache, "--keep", "0B").out
    )
    assert [each.name for each in (cache / "cubin").iterdir()] == ["mine"]
    assert wpk("cache", "prune", "--cache", cache, "--keep", "much").code == 2
