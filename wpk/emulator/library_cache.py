"""Built libraries on the disk, sealed: what is loaded, and thereby executed, is what was built.

A library ends in a digest of all that stands before it, which the loader of programs does not look at. A
file without its digest, as a power cut or a bad disk leaves one, is built again. So is one that somebody
else could have written: folder and files belong to this user, who alone may write them. A folder that
cannot be used costs the cache and not the work: libraries then go to a temporary one.
"""

import atexit
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from wpk.errors import CompileError

_log = logging.getLogger(__name__)

_MAGIC = b"wpk-sealed-with-sha256:"
_SEAL_BYTES = len(_MAGIC) + 32
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_sound: set[tuple[str, int, int]] = set()
"""Files whose seal this process has compared: path, size and time of the last change."""


class CacheError(Exception):
    """A folder that no library can be kept in."""


def kept(folder: Path, name: str, build: Callable[[Path], None]) -> Path:
    """The library called ``name`` in a folder, built first where it is not there or not sound.

    Args:
        folder: The cache.
        name: Says all that decides the bytes.
        build: Writes the library to a path.

    Raises:
        CompileError: It cannot be built, or not be written anywhere.
    """
    try:
        return _kept(folder, name, build)
    except CacheError as error:
        _tell_once(folder, str(error))
    try:
        return _kept(fallback(), name, build)
    except CacheError as error:
        raise CompileError(
            f"built kernels can be kept neither in {folder} nor in {fallback()}: {error}",
            fix="free space on these disks, or let XDG_CACHE_HOME or TMPDIR name a folder that can be "
            "written",
        ) from error


@cache
def fallback() -> Path:
    """A folder of this process, removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="wpk-emulator-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _tell_once(folder: Path, why: str) -> None:
    _log.warning(
        "kernels built for the CPU are not kept: %s (%s). Let XDG_CACHE_HOME name a folder of yours "
        "that can be written.",
        folder,
        why,
    )


def _kept(folder: Path, name: str, build: Callable[[Path], None]) -> Path:
    finished = folder / name
    try:
        _require_private(folder)
        if finished.exists():
            why = why_unsound(finished)
            if why is None:
                return finished
            _log.warning("%s is %s; it is built again", finished, why)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as temporary:
            target = Path(temporary) / name
            build(target)
            _seal(target)
            os.replace(target, finished)
    except OSError as error:
        raise CacheError(error.strerror or str(error)) from error
    return finished


def _require_private(folder: Path) -> None:
    """Make the folder this user's own.

    Raises:
        CacheError: It is another's.
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    seen = folder.stat()
    if seen.st_uid != os.geteuid():
        raise CacheError(f"it belongs to user {seen.st_uid}, and what is in it would be executed")
    if seen.st_mode & _OTHERS_WRITE:
        folder.chmod(seen.st_mode & ~_OTHERS_WRITE & 0o7777)


def why_unsound(library: Path) -> str | None:
    """Why a library must not be loaded, in words; None if it may.

    Raises:
        OSError: It cannot be read.
    """
    seen = library.stat()
    if seen.st_uid != os.geteuid():
        return f"another user's ({seen.st_uid})"
    if seen.st_mode & _OTHERS_WRITE:
        return "writable by others"
    known = (str(library), seen.st_size, seen.st_mtime_ns)
    if known not in _sound:
        data = library.read_bytes()
        if data[-_SEAL_BYTES:] != _seal_of(data[:-_SEAL_BYTES]):
            return "damaged"
        _sound.add(known)
    return None


def _seal(library: Path) -> None:
    """Append the digest, and let the bytes reach the disk."""
    data = library.read_bytes()
    with library.open("ab") as stream:
        stream.write(_seal_of(data))
        stream.flush()
        os.fsync(stream.fileno())
    library.chmod(0o700)


def _seal_of(data: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(data).digest()
