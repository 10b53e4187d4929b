"""The pages on GPUs: the way onto one, and the file that describes one."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import onnx
import pytest
from support.networks.drawn_weights import parse_model

from wpk.plan.plan_file import read_plan
from wpk.targets import Target, as_file, find_target, load_target

ROOT = Path(__file__).parents[2]
README, GPU, TARGETS = (ROOT / name for name in ("README.md", "docs/gpu.md", "docs/targets.md"))


def _section() -> str:
    return README.read_text(encoding="utf-8").split("\n## On a GPU\n")[1].split("\n## ")[0]


def _commands(text: str) -> list[str]:
    return re.findall(r"^ {4}(\S.*)$", text, flags=re.MULTILINE)


def test_the_readmes_way_onto_a_gpu_is_two_commands_and_the_pages_are_the_same() -> None:
    first, second = _commands(_section())
    assert first == "scripts/environment gpu"
    assert second.startswith(".venv/bin/wpk optimize model.onnx -o model.plan ")
    assert _commands(GPU.read_text(encoding="utf-8"))[:2] == [first, second]


def test_the_script_names_the_options_that_the_pages_name() -> None:
    script = (ROOT / "scripts" / "environment").read_text(encoding="utf-8")
    pages = _section() + GPU.read_text(encoding="utf-8")
    named = {
        option
        for line in re.findall(r"scripts/environment (.*)", pages)
        for option in re.findall(r"--[a-z-]+", line)
    }
    assert named == {"--into", "--no-driver"}
    assert all(re.search(rf"^ {{4}}{option}\)", script, flags=re.MULTILINE) for option in named)


def test_nobody_is_told_to_install_an_extra_of_a_package_that_no_index_has() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git checkout: an sdist has no list of tracked files")
    advice = re.compile(rb"pip install ['\"]?wpk\b")
    files = (ROOT / name for name in listed.stdout.split())
    found = [path for path in files if path.is_file() and advice.search(path.read_bytes())]
    assert not found


def test_the_page_names_every_key_of_a_target_file_once() -> None:
    table = TARGETS.read_text(encoding="utf-8").split("| key | unit |")[1].split("\n\n")[0]
    assert set(_keys(table)) == set(as_file(find_target("h200")))
    assert len(_keys(table)) == len(set(_keys(table)))


def _keys(table: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)


def test_the_pages_file_is_a_target(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", TARGETS.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "rtx3080ti.toml"
    path.write_text(text, encoding="utf-8")
    target: Target = load_target(path)
    assert target.sm_count == 80
    assert dict(target.sources)["global_bandwidth"] == "the maker's specifications"
    assert tomllib.loads(text)["base"] == "rtx3080"


def _optimize(folder: Path, *more: str) -> None:
    """Run the second command of the README's section in a folder, with the Python that runs this."""
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 40] x, float[40, 24] w) => (float[2, 24] y)'
    onnx.save(
        parse_model(f"{text} {{ a = MatMul(x, w)  y = Relu(a) }}", "w"), folder / "model.onnx"
    )
    arguments = _commands(_section())[1].split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "wpk", *arguments, *more],
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "model.plan").is_file()
    assert (folder / "model.html").is_file()


@pytest.mark.slow
def test_the_second_command_runs_for_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    _optimize(tmp_path, "--target", "l4", "--search", "static")


@pytest.mark.gpu
@pytest.mark.timed
def test_the_second_command_measures_on_the_gpu_that_is_here(tmp_path: Path) -> None:
    _optimize(tmp_path, "--cache", str(tmp_path / "cache"))
    assert read_plan(tmp_path / "model.plan").plan.measurement is not None
