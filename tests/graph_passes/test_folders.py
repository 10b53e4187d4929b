"""Folders of passes stand above each other, as docs/adding_a_pass.md lists them."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding_a_pass.md").read_text(encoding="utf-8")
FOLDERS = [
    name for row in re.findall(r"^\| (`\w+`.*?) \|", PAGE, re.M) for name in re.findall(r"\w+", row)
]


def test_the_page_lists_every_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "graph_passes").glob("*/__init__.py")}
    assert set(FOLDERS) == folders


def test_a_folder_imports_only_those_listed_before_it() -> None:
    for path in (ROOT / "graph_passes").glob("*/*.py"):
        allowed = FOLDERS[: FOLDERS.index(path.parent.name) + 1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module is not None and module.startswith("wpk.graph_passes."):
                assert module.split(".")[2] in allowed, f"{path} imports {module}"
