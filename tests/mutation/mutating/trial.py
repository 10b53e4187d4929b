"""Run tests on mutants, each in a copy of the checkout in which one module has changed."""

from __future__ import annotations

import compileall
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mutating.coverage import Stage, stages
from mutating.mutants import Mutant

_GENERATED = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".hypothesis")
_OF_THE_CHECKOUT = (".git", ".venv", "build")  # below the root, `build` is a package
_PACKAGES = {"wpk": "wpk", "search": "wpk/search", "graph_passes": "wpk/graph_passes"}
_MARKS = "not exhaustive and not gpu and not trt and not sanitized"
_FAILED = (1, 2)  # pytest: a test failed; a module could not be imported
_MARGIN_SECONDS, _SLOWER = 60.0, 4.0


def _without_links(folder: str, names: list[str]) -> set[str]:
    """Links to the folders that `_PACKAGES` copies in their places, and what Python generated."""
    links = {name for name in names if (Path(folder) / name).is_symlink()}
    return links | _GENERATED(folder, names)


class BrokenTestsError(Exception):
    """Tests fail without a mutant: they could tell nothing."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        killed: Whether a test failed, or did not end.
        by: The tests that noticed; all that were asked where none did.
        how: "failed" or "timeout", or nothing.
        seconds: That took.
    """

    killed: bool
    by: str
    how: str
    seconds: float


@dataclass
class Limits:
    """How long tests take without a mutant, found when they are first asked; threads may share it."""

    known: dict[Stage, float] = field(default_factory=dict)
    _locks: defaultdict[Stage, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock)
    )

    def of(self, stage: Stage, copy: Copy) -> float:
        """Seconds after which a mutant counts as killed.

        Raises:
            BrokenTestsError: A test fails.
        """
        with self._locks[stage]:
            if stage not in self.known:
                begin = time.monotonic()
                status, said = copy.test(stage, None)
                if status != 0:
                    raise BrokenTestsError(f"without a mutant {' '.join(stage)} fails:\n{said}")
                self.known[stage] = time.monotonic() - begin
            return _SLOWER * self.known[stage] + _MARGIN_SECONDS


def copied(root: Path, folder: Path, count: int) -> list[Copy]:
    """Copies of a checkout in a folder; the first is compiled, and the others are made from it."""
    first = folder / "0"
    tree, site = first / "tree", first / "site"
    tree.mkdir(parents=True)
    for each in root.iterdir():
        if each.is_dir() and each.name not in _OF_THE_CHECKOUT:
            shutil.copytree(each, tree / each.name, ignore=_GENERATED)
        elif each.is_file():
            shutil.copy2(each, tree)
    for source, target in _PACKAGES.items():
        shutil.copytree(root / source, site / target, ignore=_without_links)
    compileall.compile_dir(site, quiet=2)
    for number in range(1, count):
        shutil.copytree(first, folder / str(number))
    return [Copy(root, folder / str(number)) for number in range(count)]


class Copy:
    """A copy of the checkout, with the package as it would be installed, for one mutant at a time."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Take a copy of ``root`` that lies in ``folder``: see `copied`."""
        self._root, self._tree, self._site = root, folder / "tree", folder / "site"

    def tried(self, mutant: Mutant, limits: Limits, *, wider: bool = True) -> Outcome:
        """Ask the mutant's tests, stage by stage, until one fails."""
        begin, asked = time.monotonic(), stages(self._root, mutant.path, wider=wider)
        for stage in asked:
            limit = limits.of(stage, self)
            status = self._tested_with(mutant, stage, limit)
            if status in _FAILED or status is None:
                how = "timeout" if status is None else "failed"
                return Outcome(True, " ".join(stage), how, time.monotonic() - begin)
        names = ", ".join(" ".join(stage) for stage in asked)
        return Outcome(False, names, "", time.monotonic() - begin)

    def _tested_with(self, mutant: Mutant, stage: Stage, limit: float) -> int | None:
        module = self._site / mutant.path
        text = module.read_bytes()
        for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*"):
            compiled.unlink()  # it could pass for that of the mutant
        try:
            module.write_bytes(mutant.applied(text))
            return self.test(stage, limit)[0]
        finally:
            module.write_bytes(text)

    def test(self, stage: Stage, limit: float | None) -> tuple[int | None, str]:
        """The exit status of pytest, None where it did not end, and what it said last."""
        others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        path = os.pathsep.join([str(self._site), *(each for each in others if each)])
        paths = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = {**os.environ, **paths, **threads, "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", _MARKS]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *stage],
                cwd=self._tree, env=environment, capture_output=True, text=True, check=False,
                timeout=limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
