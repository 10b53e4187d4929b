"""The wpk of an earlier commit, beside today's: packed by git, and unpacked where it is run.

All that a commit's wpk is are three folders, of which nothing is built: whoever has them in front of its import path
runs that wpk, with the packages that are installed today.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

from rows.base import RowError

FOLDERS = ("wpk", "search", "graph_passes")
"""Links in the first lead to the others."""

ROOT = Path(__file__).parents[2]

_HASH = re.compile(r"[0-9a-f]{7,40}")


def commit_id(text: str) -> str:
    """A commit's hash, whole or abbreviated: a name that moves would make other rows of the same.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not _HASH.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no hash of a commit: 7 to 40 of 0-9a-f")
    return text


def archive_of(commit: str, root: Path = ROOT) -> Path:
    """Where a checkout keeps a commit's archive."""
    return root / "build" / "earlier" / f"{commit}.tar.gz"


def packed(commit: str, root: Path = ROOT) -> Path:
    """The archive of a commit's wpk, written where there is none.

    Args:
        commit: Its hash, whole or abbreviated.
        root: A checkout with that commit in its history, or a copy of one with the archive.

    Raises:
        RowError: There is neither, or the archive is another commit's.
    """
    path = archive_of(commit, root)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            written = Path(folder, path.name)
            _pack(commit, written, root)
            written.replace(path)
    held = _commit_in(path)
    if not held.startswith(commit):
        raise RowError(f"{path} is of commit {held or 'none'}, not of {commit}\n  fix: remove it")
    return path


def unpacked(commit: str, folder: Path, root: Path = ROOT) -> Path:
    """A folder that holds a commit's wpk, put on the import path by `first_on_path`.

    Args:
        commit: Its hash, whole or abbreviated.
        folder: Where it is unpacked, unless it lies there already.
        root: See `packed`.

    Raises:
        RowError: See `packed`.
    """
    package = folder / commit
    if package.is_dir():
        return package
    archive = packed(commit, root)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch, commit)
        with tarfile.open(archive) as tar:
            tar.extractall(whole, filter="data")
        try:
            whole.rename(package)
        except OSError:
            if not package.is_dir():  # else another row was faster
                raise
    return package


def first_on_path(package: Path) -> dict[str, str]:
    """Environment of commands that import what a folder holds before anything else."""
    others = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(package.resolve()), *([others] if others else [])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def _pack(commit: str, path: Path, root: Path) -> None:
    command = ["git", "-C", str(root), "archive", "--format=tar.gz", f"--output={path}", commit]
    try:
        subprocess.run([*command, *FOLDERS], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        raise RowError(
            f"there is no {archive_of(commit, root)}, and git cannot write it here: {said}\n"
            f"  fix: python benchmarks/pack_earlier.py {commit} in a checkout with the whole "
            "history, and copy the file to that place"
        ) from error


def _commit_in(path: Path) -> str:
    """What git says in an archive's head (git-get-tar-commit-id)."""
    with tarfile.open(path) as tar:
        return tar.pax_headers.get("comment", "")
