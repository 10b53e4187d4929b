"""The code in the documentation runs, and the commands in it exist."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from dataclasses import fields
from functools import cache
from io import StringIO
from pathlib import Path

import onnx
import pytest

from wpk.cli.main import COMMANDS, main
from wpk.options import SearchOptions

ROOT = Path(__file__).parents[2]
CACHE_ACTIONS = ("show", "prune", "clear", "export", "import")
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


def test_the_look_at_warpgroups_registers_runs(tmp_path: Path) -> None:
    (code,) = _blocks(ROOT / "docs" / "wgmma_kernel.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "256 {} is refused: one to three consumer warpgroups have 64 rows each" in done.stdout


def test_the_example_searcher_passes_its_test(tmp_path: Path) -> None:
    code = "\n\n".join(_blocks(ROOT / "docs" / "adding_a_searcher.md", "python"))
    code = code.replace("REPLAY", str(ROOT / "tests" / "replay"))
    (tmp_path / "test_page.py").write_text(code, encoding="utf-8")
    _run_tests(tmp_path)


def test_the_example_template_passes_its_tests(tmp_path: Path) -> None:
    page = ROOT / "docs" / "adding_a_template.md"
    package = tmp_path / "path" / "wpk"
    shutil.copytree(ROOT / "wpk", package)
    (header,), (template, tests) = _blocks(page, "cpp"), _blocks(page, "python")
    (package / "schedules" / "negate.cuh").write_text(header, encoding="utf-8")
    (package / "schedules" / "negate.py").write_text(template, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_negate.py").write_text(tests, encoding="utf-8")
    _run_tests(tmp_path / "tests", tmp_path / "path")


def test_the_example_problem_passes_its_tests(tmp_path: Path) -> None:
    page, package = ROOT / "docs" / "adding_a_problem.md", _copy_package(tmp_path / "path")
    problem, rule, template, tests = _blocks(page, "python")
    (header,) = _blocks(page, "cpp")
    for file, code in {
        "problems/running_sum.py": problem,
        "lowering/anchors/running_sum.py": rule,
        "schedules/running_sum.py": template,
        "schedules/running_sum.cuh": header,
    }.items():
        (package / file).write_text(code, encoding="utf-8")
    for file, line in _listed(page):
        _list(package / file, line)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_running_sum.py").write_text(tests, encoding="utf-8")
    _run_tests(tmp_path / "tests", tmp_path / "path")


def _listed(page: Path) -> list[tuple[str, str]]:
    """The rows of a page's table of lines: a file, and what to write there."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^\| `wpk/([\w/.]+)` \|.*\| `(.*)` \|$", text, flags=re.MULTILINE)


def _list(file: Path, line: str) -> None:
    """Write a line where a file lists its like, and import what it names."""
    text, entry = file.read_text(encoding="utf-8"), re.search(r"(\w+)\(\),$", line)
    if entry is None:
        text = f"{text}{line}\n"
    else:
        if named := re.match(r'"\w+": ', line):  # it takes the place of another rule
            text = re.sub(rf"^ *{named[0]}.*\n", "", text, flags=re.MULTILINE)
        name, package = entry[1], ".".join(file.parts[file.parts.index("path") + 1 : -1])
        text = re.sub(r"^(RULES|TEMPLATES)\b.*\n", rf"\g<0>    {line}\n", text, flags=re.MULTILINE)
        text = f"from {package}.running_sum import {name}\n{text}"
    file.write_text(text, encoding="utf-8")


def test_the_example_operators_pass_their_tests(tmp_path: Path) -> None:
    page, package = ROOT / "docs" / "adding_an_operator.md", _copy_package(tmp_path / "path")
    for change in _blocks(page, "diff"):
        _withdraw(change, package.parent)
    for change in _blocks(page, "diff"):
        _apply(change, package.parent)
    tests = package.parent / "tests"
    for name in ("operators/test_rows.py", "schedules/test_expression_header.py"):
        (tests / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / "tests" / name, tests / name)
    (code,) = _blocks(page, "python")
    (tests / "test_page.py").write_text(code, encoding="utf-8")
    _run_tests(tests, package.parent)


def _copy_package(path: Path) -> Path:
    """The package as it is installed, in a folder of its own."""
    package = path / "wpk"
    for folder, place in (("wpk", "."), ("graph_passes", "graph_passes"), ("search", "search")):
        shutil.copytree(ROOT / folder, package / place, dirs_exist_ok=True)
    return package


def _read_change(change: str, root: Path) -> tuple[Path, str, str]:
    """The file of a change, and its lines before and behind it."""
    title, *lines = change.splitlines()
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] in f" {sign}") for sign in "-+"
    )
    return root / title.removeprefix("--- "), before, after


def _withdraw(change: str, root: Path) -> None:
    """Take a change back that the package has already, as the page says of it."""
    path, before, after = _read_change(change, root)
    text = path.read_text(encoding="utf-8")
    if after.strip() and text.count(after) == 1:
        path.write_text(text.replace(after, before), encoding="utf-8")


def _apply(change: str, root: Path) -> None:
    """Make a change of one file: lines that stay, go (-) and come (+); what stays and goes stands there once."""
    path, before, after = _read_change(change, root)
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path}: {before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_links_lead_somewhere() -> None:
    leads_nowhere = []
    for page in PAGES:
        links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        local = [link for link in links if not link.startswith("https://")]
        leads_nowhere += [(page, link) for link in local if not (page.parent / link).exists()]
    assert not leads_nowhere


def test_files_that_are_named_exist() -> None:
    missing = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`((?:wpk|docs|tests|graph_passes|search|scripts)/[\w./]+)`", text)
        named += re.findall(r"^    (scripts/\w+)", text, flags=re.MULTILINE)
        missing += [(page, name) for name in named if not (ROOT / name).exists()]
    assert not missing


@cache
def _help_options(command: str) -> frozenset[str]:
    """The options of a command and of its own commands, without those that all have."""
    shown = _help(command)
    if command == "cache":
        shown += "".join(_help(command, action) for action in CACHE_ACTIONS)
    common = {"-h", "--help", "-v", "--verbose", "-q", "--quiet", "--log-file"}
    return frozenset(re.findall(r"(?<=[\s\[])(--?[a-z][\w-]*)", shown)) - common


def _help(*command: str) -> str:
    with redirect_stdout(StringIO()) as told, pytest.raises(SystemExit):
        main([*command, "--help"])
    return told.getvalue().split("\noptions:\n")[1]


def _wpk(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "wpk", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _commands(page: Path) -> list[str]:
    """Indented commands of wpk, their continuation lines joined."""
    text = re.sub(r"\n {6,}", " ", page.read_text(encoding="utf-8"))
    return re.findall(r"^    (?:\.venv/bin/)?wpk (.*)$", text, flags=re.MULTILINE)


def test_options_in_commands_are_known_to_the_command_line() -> None:
    for page in PAGES:
        for line in _commands(page):
            command = line.split()[0]
            for option in re.findall(r"(?<=[\s\[])(--?[a-z][\w-]*)", line):
                assert option in _help_options(command), f"{page}: wpk {command} {option}"


def test_the_page_on_using_names_every_command_and_option() -> None:
    section = (ROOT / "docs" / "using.md").read_text(encoding="utf-8").split("\n## Commands\n")[1]
    overview = section.split("\n## ")[0]
    for command in COMMANDS:
        lines = re.findall(
            rf"^    wpk {command} (.*(?:\n {{6,}}.*)*)", overview, flags=re.MULTILINE
        )
        assert len(lines) == (1 if command != "cache" else 4)
        line = " ".join(lines)
        named = set(re.findall(r"(?<=[\s\[])(--?[a-z][\w-]*)", f" {line}"))
        short = {"-o"} if "-o" in named else set()
        assert named - short == _help_options(command) - {"-o", "--output"}, command


def test_the_page_on_using_names_every_choice_of_search_in_the_order_of_the_help() -> None:
    (line,) = (each for each in _commands(ROOT / "docs" / "using.md") if "--search " in each)
    (option,) = (each for each in fields(SearchOptions) if each.name == "search")
    assert f"[--search {'|'.join(option.metadata['choices'])}]" in line


@pytest.mark.slow
def test_the_commands_and_the_code_of_the_readme_run(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        agraph (float[1, 3, 224, 224] input) => (float[1, 3, 4, 4] output) {
            small = MaxPool <kernel_shape = [56, 56], strides = [56, 56]> (input)
            output = Relu (small)
        }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    start = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## On a GPU\n")[0]
    ran = re.findall(r"^    wpk (.*)$", start, flags=re.MULTILINE)
    assert [line.split()[0] for line in ran] == ["optimize", "verify", "run"]
    for line in ran:
        _wpk(tmp_path, *line.split())
    assert (tmp_path / "model.html").is_file()
    assert (tmp_path / "y.npz").is_file()
    (code,) = _blocks(ROOT / "README.md", "python")
    code += "\nassert outputs['output'].shape == (1, 3, 4, 4)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("no git checkout: an sdist has no list of tracked files")
    found = [
        name
        for name in tracked.stdout.splitlines()
        if name != Path(__file__).relative_to(ROOT).as_posix()
        and (ROOT / name).is_file()
        and re.search(rb"(?<![\w.])/(?:work|tmp|home|root)/\w", (ROOT / name).read_bytes())
        and not name.endswith(".zip")
    ]
    assert not found
