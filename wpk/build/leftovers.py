"""What lies in the cache folders, and how long it was not used: so that they need not grow for ever."""

import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wpk.errors import CompileError


@dataclass(frozen=True)
class Kept:
    """A file or folder of a cache that can be made again.

    Attributes:
        path: Of it.
        bytes: Of all its files.
        used: When it was last written or read, in seconds since 1970; read to a day, as file systems
            note it.
    """

    path: Path
    bytes: int
    used: float


def described(paths: Iterable[Path]) -> list[Kept]:
    """What is known of files and folders of a cache; those that another process removed are left out.

    Raises:
        CompileError: One cannot be read.
    """
    try:
        return [each for each in map(_described, paths) if each is not None]
    except OSError as error:
        raise CompileError(
            f"the cache cannot be read: {error}", fix="check the folder's permissions"
        ) from error


def prune(
    kept: Sequence[Kept], *, keep_bytes: int | None, unused_seconds: float | None
) -> list[Kept]:
    """Remove what was not used for long, and what was used least recently beyond a size.

    Args:
        kept: What there is.
        keep_bytes: How much may stay; None for any.
        unused_seconds: What was not used for longer goes; None for no limit.

    Returns:
        What was removed.

    Raises:
        CompileError: Something cannot be removed.
    """
    now, total, removed = time.time(), 0, []
    for each in sorted(kept, key=lambda each: -each.used):
        total += each.bytes
        too_much = keep_bytes is not None and total > keep_bytes
        too_old = unused_seconds is not None and now - each.used > unused_seconds
        if too_much or too_old:
            total -= each.bytes
            _remove(each.path)
            removed.append(each)
    return removed


def _described(path: Path) -> Kept | None:
    """None where another process has removed it."""
    try:
        files = list(path.iterdir()) if path.is_dir() else [path]
        seen = [os.stat(file) for file in files]
    except FileNotFoundError:
        return None
    used = max((max(each.st_mtime, each.st_atime) for each in seen), default=0.0)
    return Kept(path, sum(each.st_size for each in seen), used)


def _remove(path: Path) -> None:
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return  # another process removed it first
    except OSError as error:
        raise CompileError(
            f"{path} cannot be removed: {error}", fix="check the folder's permissions"
        ) from error
