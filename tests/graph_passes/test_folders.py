"""Folders of passes stand above each other, as docs/adding_a_pass.md lists them, and tests lie as passes do."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSES = ROOT / "graph_passes"
PAGE = (ROOT / "docs" / "adding_a_pass.md").read_text(encoding="utf-8")
FOLDERS = [
    name
    for row in re.findall(r"^\| (`[\w/]+`.*?) \|", PAGE, re.M)
    for name in re.findall(r"[\w/]+", row)
]
"""From the ground up."""


def _folder(path: Path) -> str:
    return path.parent.relative_to(PASSES).as_posix()


def test_the_page_lists_every_folder_with_passes() -> None:
    modules = [path for path in PASSES.glob("*/**/*.py") if path.name != "__init__.py"]
    assert {_folder(path) for path in modules} == set(FOLDERS)


def test_a_folder_imports_only_those_listed_before_it() -> None:
    for name in FOLDERS:
        allowed = FOLDERS[: FOLDERS.index(name) + 1]
        for path in (PASSES / name).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
                below = module.removeprefix("wpk.graph_passes.").replace(".", "/")
                if module.startswith("wpk.graph_passes."):
                    assert {below, below.rpartition("/")[0]} & set(allowed), (path, module)


def test_tests_lie_in_folders_that_there_are() -> None:
    tests = Path(__file__).parent
    assert {
        path.parent.relative_to(tests).as_posix() for path in tests.glob("*/**/test_*.py")
    } <= set(FOLDERS)
