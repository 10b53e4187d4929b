"""A cache folder keeps compiled kernels and measured trials."""

import atexit
import logging
import os
import shutil
import tempfile
from functools import cached_property
from pathlib import Path

from wpk.build import Kept, KernelCache, default_cache_folder, described

_log = logging.getLogger(__name__)

_TRIALS = "trials.sqlite"
_KERNELS = "cubin"
_CPU_KERNELS = "emulator"

KEEP_BYTES = 2 * 2**30
"""What `wpk cache prune` leaves of compiled kernels unless told otherwise: several networks for several GPUs."""


class CacheFolder:
    """A folder with a cache of kernels and a store of trials; nothing of it need exist yet.

    Attributes:
        path: The folder.
        store: The file of all trials.
        kernels: Compiled kernels.
        cpu_kernels: Folder of what was compiled for the CPU; all of that is in the user's cache folder.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Use a folder, the user's cache folder by default."""
        self.path = default_cache_folder() if folder is None else Path(folder)
        self.store = self.path / _TRIALS
        self.kernels = KernelCache(self.path / _KERNELS)
        self.cpu_kernels = self.path / _CPU_KERNELS

    def compiled(self) -> list[Kept]:
        """What was compiled, for GPUs and for the CPU: all that can be made again without measuring.

        Raises:
            CompileError: It cannot be read.
        """
        return described([*self.kernels.entries(), *self.cpu_kernels.glob("*.so")])

    @cached_property
    def writable_store(self) -> Path:
        """The file for new trials: `store`, or where this cannot be written one that is not kept."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
            if self.store.exists() and not os.access(self.store, os.W_OK):
                raise PermissionError(f"{self.store.name} is read-only")
        except OSError as error:
            folder = Path(tempfile.mkdtemp(prefix="wpk-trials-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            _log.warning(
                "trials are not kept: %s cannot be written (%s). To keep them, name another folder: "
                "--cache FOLDER",
                self.path,
                error.strerror or error,
            )
            return folder / _TRIALS
        return self.store
