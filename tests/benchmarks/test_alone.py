"""Benchmarks run where the tests are not: nothing under ``tests`` is imported by them."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _names_of_tests() -> set[str]:
    """What tests import from the folders that pytest puts on the path, and ``tests`` itself."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = options["tool"]["pytest"]["ini_options"]["pythonpath"]
    mine = [ROOT / folder for folder in folders if folder.split("/")[0] == "tests"]
    modules = {path.stem for folder in mine for path in folder.glob("*.py")}
    packages = {path.parent.name for folder in mine for path in folder.glob("*/__init__.py")}
    return modules | packages | {"tests"}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def test_benchmarks_import_nothing_of_the_tests() -> None:
    scripts = list((ROOT / "benchmarks").rglob("*.py"))
    assert scripts
    assert not {(path.name, name) for path in scripts for name in _imported(path)} & {
        (path.name, name) for path in scripts for name in _names_of_tests()
    }


def test_the_names_of_the_tests_are_found() -> None:
    assert {"support", "fuzzing", "conftest", "tests"} <= _names_of_tests()
    assert "support" in set(_imported(ROOT / "tests" / "conftest.py"))
