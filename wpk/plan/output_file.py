"""Write a file completely or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wpk.errors import WpkError


class OutputError(WpkError):
    """A file cannot be written."""


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which becomes ``path`` only when the block ends without an error.

    The bytes go to a temporary file in the same folder, reach the disk, and are renamed. An error
    or an interrupt removes the temporary file and leaves what was at ``path`` before.

    Raises:
        OutputError: The folder is missing or not writable, or the disk is full.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def require_folder(path: Path) -> None:
    """Refuse a path that nothing can be written to, before the work that is to be written.

    Raises:
        OutputError: Its folder is missing or not writable, or the path is a folder itself.
    """
    if path.is_dir():
        raise _cannot_write(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    if not path.parent.is_dir():
        raise _cannot_write(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    if not os.access(path.parent, os.W_OK):
        raise _cannot_write(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def _cannot_write(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path} cannot be written: {error.strerror or error}",
        fix="give a path in an existing folder that you may write to, on a disk with space left",
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
