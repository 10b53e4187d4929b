"""The code in the documentation runs, and the commands in it exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def _run_tests(folder: Path, path: Path | None = None) -> None:
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            folder,
        ],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_the_example_pass_passes_its_tests(tmp_path: Path) -> None:
    code = "\n\n".join(_blocks(ROOT / "docs" / "adding_a_pass.md", "python"))
    (tmp_path / "test_page.py").write_text(code, encoding="utf-8")
    _run_tests(tmp_path)


def test_the_example_template_passes_its_tests(tmp_path: Path) -> None:
    page = ROOT / "docs" / "adding_a_template.md"
    package = tmp_path / "path" / "wpk"
    shutil.copytree(ROOT / "wpk", package, ignore=shutil.ignore_patterns("__pycache__"))
    (header,), (template, tests) = _blocks(page, "cpp"), _blocks(page, "python")
    (package / "schedules" / "negate.cuh").write_text(header, encoding="utf-8")
    (package / "schedules" / "negate.py").write_text(template, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_negate.py").write_text(tests, encoding="utf-8")
    _run_tests(tmp_path / "tests", tmp_path / "path")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith("https://")]
    assert not [link for link in local if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:wpk|docs|tests|graph_passes|search|scripts)/[\w./]+)`", text)
    named += re.findall(r"^    (scripts/\w+)", text, flags=re.MULTILINE)
    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_in_commands_are_known_to_the_command_line(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for command, rest in re.findall(r"^    wpk (\w+) (.*)$", text, flags=re.MULTILINE):
        shown = subprocess.run(
            [sys.executable, "-m", "wpk", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for option in re.findall(r"(?<=\s)(--?[a-z][\w-]*)", f" {rest}"):
            assert option in shown, f"wpk {command} {option}"
