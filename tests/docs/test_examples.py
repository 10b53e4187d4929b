"""The code in the documentation runs, and the commands in it exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PASS_PAGE = ROOT / "docs" / "adding_a_pass.md"
TEMPLATE_PAGE = ROOT / "docs" / "adding_a_template.md"


def _python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", [PASS_PAGE, TEMPLATE_PAGE], ids=lambda page: page.stem)
def test_the_tests_on_the_page_pass(page: Path, tmp_path: Path) -> None:
    blocks = _python_blocks(page)
    assert blocks
    (tmp_path / "test_page.py").write_text("\n\n".join(blocks), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
    ]
    done = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


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
