"""Checkouts with a history: of today's package, to which commits are added, and the one that tests lie in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from rows.base import EARLIER
from subjects.earlier import FOLDERS, ROOT

_AUTHOR = ["-c", "user.name=wpk", "-c", "user.email=wpk@example.com"]


class Checkout:
    """A checkout of the package's folders alone."""

    def __init__(self, root: Path) -> None:
        """Copy them, as they are, to where no commit is yet."""
        self.root = root
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=ignored)
        self._git("init", "--quiet")

    def commit(self, subject: str) -> str:
        """Commit all that lies there; the commit's hash, abbreviated."""
        self._git("add", "--all")
        self._git(*_AUTHOR, "commit", "--quiet", "--message", subject)
        return self._git("rev-parse", "HEAD")[:8]

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def edit(path: Path, old: str, new: str) -> None:
    """Replace a piece of a file's text that stands once."""
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
    path.write_text(text.replace(old, new))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout of today's package, without a commit."""
    return Checkout(tmp_path / "checkout")


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which git sees the history of the tests' own checkout, as far as it has the commit of rows."""
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--absolute-git-dir", f"{EARLIER}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(f"the history has no commit {EARLIER}: {found.stderr.strip()}")
    monkeypatch.setenv("GIT_DIR", found.stdout.splitlines()[0])
    folder = tmp_path / "history"
    folder.mkdir()
    return folder
