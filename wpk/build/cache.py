"""Compiled kernels on the disk, found by everything that determines them.

An entry is a folder named by the hash of compiler, options, source and headers.  It appears by one
rename of a finished folder: readers see a whole entry or none, and of two writers one loses, which
is fine since both wrote the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wpk.build.compiled import CompiledKernel
from wpk.build.resources import KernelResources
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

_log = logging.getLogger(__name__)
_FORMAT = 1  # raised whenever the files of an entry change
_FACTS, _CUBIN, _UNIT, _LOG = "kernel.json", "kernel.cubin", "unit.cu", "compiler.log"


def default_cache_folder() -> Path:
    """``$XDG_CACHE_HOME/wpk``, or ``~/.cache/wpk`` where that is not set."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "wpk"


@dataclass(frozen=True)
class Usage:
    """What a cache holds: entries, and their bytes."""

    kernels: int
    bytes: int


class KernelCache:
    """Content-addressed store of compiled kernels, safe for several processes at once.

    Attributes:
        folder: Holds one folder an entry.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Use ``folder``, or ``cubin`` in the user's cache folder; nothing is written yet."""
        self.folder = default_cache_folder() / "cubin" if folder is None else folder

    def key(self, source: KernelSource, compiler: str, options: Sequence[str]) -> str:
        """Hash of all that determines the machine code, led by the kernel's name.

        Args:
            source: Its digest covers entry, unit and headers.
            compiler: Version of the compiler, patch release included (`Nvrtc.identity`).
            options: Every option it is given; the architecture is one of them.
        """
        parts = [str(_FORMAT), compiler, *options, source.digest]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return f"{source.entry[:80]}-{digest[:40]}"

    def load(self, key: str) -> CompiledKernel | None:
        """The kernel stored under ``key``; None where there is none.

        An entry that is damaged, or that others than this user could have written, is reported,
        removed where it can be, and counts as none, so that it is built again.
        """
        entry = self.folder / key
        if not entry.is_dir():
            return None
        try:
            return _read(entry)
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("compile cache: %s is damaged (%s); compiling again", entry, error)
        shutil.rmtree(entry, ignore_errors=True)
        return None

    def store(self, key: str, source: KernelSource, kernel: CompiledKernel) -> None:
        """Keep a kernel, with its unit and log beside it to read.

        Raises:
            CompileError: the folder cannot be written.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.folder, prefix=".writing-") as scratch:
                finished = Path(scratch, key)
                finished.mkdir(mode=0o700)
                _write(finished, source, kernel)
                _publish(finished, self.folder / key)
        except OSError as error:
            raise CompileError(
                f"the compile cache {self.folder} cannot be written: {error}",
                fix="free some space, or name a folder that can be written: --cache FOLDER, or "
                "XDG_CACHE_HOME for all caches",
            ) from error

    def usage(self) -> Usage:
        """How many kernels are kept, and the bytes that they take.

        Raises:
            CompileError: the folder cannot be read.
        """
        try:
            entries = self.entries()
            sizes = [file.stat().st_size for entry in entries for file in entry.iterdir()]
        except FileNotFoundError:  # removed by another process while we looked
            return self.usage()
        except OSError as error:
            raise CompileError(
                f"the compile cache {self.folder} cannot be read: {error}",
                fix="check the folder's permissions",
            ) from error
        return Usage(len(entries), sum(sizes))

    def clear(self) -> int:
        """Remove every kernel, and nothing else that may lie in the folder. Returns how many.

        Raises:
            CompileError: one cannot be removed.
        """
        entries = self.entries()
        for entry in entries:
            try:
                shutil.rmtree(entry)
            except FileNotFoundError:
                continue  # another process removed it first
            except OSError as error:
                raise CompileError(
                    f"the cache entry {entry} cannot be removed: {error}",
                    fix="check the folder's permissions",
                ) from error
        return len(entries)

    def entries(self) -> list[Path]:
        """The folder of each kernel, and nothing else that may lie there."""
        if not self.folder.is_dir():
            return []
        return sorted(each for each in self.folder.iterdir() if (each / _FACTS).is_file())


def _write(folder: Path, source: KernelSource, kernel: CompiledKernel) -> None:
    facts = {
        "digest": kernel.digest,
        "entry": kernel.entry,
        "arch": kernel.arch,
        "compiler": kernel.compiler,
        "cubin_sha256": hashlib.sha256(kernel.cubin).hexdigest(),
        "resources": asdict(kernel.resources),
    }
    (folder / _CUBIN).write_bytes(kernel.cubin)
    (folder / _UNIT).write_text(source.text, encoding="utf-8")
    (folder / _LOG).write_text(kernel.log, encoding="utf-8")
    (folder / _FACTS).write_text(json.dumps(facts, indent=1), encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o600)


def _publish(finished: Path, entry: Path) -> None:
    try:
        finished.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
        # Another process stored the same kernel first.


def _require_ours(path: Path) -> None:
    """Machine code from the cache runs unasked: nobody else may have written it."""
    seen = path.stat()
    if seen.st_uid != os.geteuid() or seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(f"{path.name} could have been written by others than its user")


def _read(entry: Path) -> CompiledKernel:
    for path in (entry, entry / _FACTS, entry / _CUBIN):
        _require_ours(path)
    facts = json.loads((entry / _FACTS).read_text(encoding="utf-8"))
    cubin = (entry / _CUBIN).read_bytes()
    if hashlib.sha256(cubin).hexdigest() != facts["cubin_sha256"]:
        raise ValueError(f"{_CUBIN} does not have the digest that {_FACTS} states")
    return CompiledKernel(
        digest=facts["digest"],
        entry=facts["entry"],
        arch=facts["arch"],
        compiler=facts["compiler"],
        cubin=cubin,
        resources=KernelResources(**facts["resources"]),
        log=(entry / _LOG).read_text(encoding="utf-8"),
    )
