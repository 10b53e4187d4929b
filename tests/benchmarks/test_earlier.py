"""The wpk of an earlier commit: packed where its history is, run where it is not."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pack_earlier
import pytest
from rows.base import RowError
from subjects.earlier import FOLDERS, archive_of, commit_id, first_on_path, packed, unpacked
from support.commits.checkouts import Checkout, edit

_SAY_WHERE = "import wpk.search, wpk.graph_passes, wpk; print(wpk.search.__path__[0])"


def test_a_packed_commit_runs_from_a_copy_without_a_history(
    checkout: Checkout, tmp_path: Path
) -> None:
    edit(checkout.root / "wpk/version.py", 'VERSION = "', 'VERSION = "old ')
    commit = checkout.commit("the version")
    archive = packed(commit, checkout.root)
    copy = tmp_path / "copy"
    archive_of(commit, copy).parent.mkdir(parents=True)
    shutil.copy(archive, archive_of(commit, copy))
    package = unpacked(commit, tmp_path / "packages", copy)
    assert {path.name for path in package.iterdir()} == set(FOLDERS)
    say = f"{_SAY_WHERE}; print(wpk.__version__)"
    for folder in (tmp_path, Path(__file__).parents[2]):  # in a checkout of another commit, too
        done = subprocess.run(
            [sys.executable, "-c", say],
            env=first_on_path(package),
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        where, version = done.stdout.splitlines()
        assert Path(where).resolve() == package / "search"
        assert version.startswith("old ")
    assert unpacked(commit, tmp_path / "packages", tmp_path / "nowhere") == package


def test_a_commit_that_is_nowhere_is_an_error_that_says_how_to_get_it(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.commit("another one")
    with pytest.raises(
        RowError, match=r"(?s)no .*1234567\.tar\.gz.*not a valid object.*fix: .*pack_earlier"
    ):
        packed("1234567", checkout.root)
    with pytest.raises(RowError, match=r"(?s)no .*1234567\.tar\.gz.*fix: "):
        unpacked("1234567", tmp_path / "packages", tmp_path)
    assert not list(tmp_path.rglob("*.tar.gz"))
    assert not (tmp_path / "packages").exists()


def test_an_archive_of_another_commit_is_not_unpacked(checkout: Checkout, tmp_path: Path) -> None:
    commit = checkout.commit("the right name")
    packed(commit, checkout.root).rename(archive_of("1234567", checkout.root))
    with pytest.raises(RowError, match=rf"is of commit {commit}\w+, not of 1234567\n  fix: remove"):
        unpacked("1234567", tmp_path / "packages", checkout.root)


@pytest.mark.parametrize(
    "text", ["HEAD", "main", "bfc01f", "BFC01FC0", "bfc01fc0~1", "../bfc01fc0"]
)
def test_only_a_hash_names_a_commit(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no hash of a commit"):
        commit_id(text)
    assert commit_id("bfc01fc0") == "bfc01fc0"


def test_what_was_on_the_path_stays_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/others")
    assert first_on_path(tmp_path)["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/others"
    monkeypatch.delenv("PYTHONPATH")
    assert first_on_path(tmp_path)["PYTHONPATH"] == str(tmp_path)


def test_the_command_says_what_it_wrote_or_why_not(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit = checkout.commit("to be packed")
    monkeypatch.setattr(pack_earlier, "ROOT", checkout.root)
    monkeypatch.setattr(pack_earlier, "packed", lambda commit: packed(commit, checkout.root))
    assert pack_earlier.main([commit]) == 0
    assert capsys.readouterr().out == f"build/earlier/{commit}.tar.gz\n"
    assert archive_of(commit, checkout.root).is_file()
    assert pack_earlier.main(["1234567"]) == 1
    assert "fix: " in capsys.readouterr().err
