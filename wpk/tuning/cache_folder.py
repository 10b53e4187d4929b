"""Where compiled kernels and measured trials are kept."""

import os
from pathlib import Path

from wpk.build.cache import KernelCache, default_cache_folder

_TRIALS = "trials.sqlite"
_KERNELS = "cubin"


class CacheFolder:
    """A folder with a cache of kernels and a store of trials; nothing of it need exist yet.

    Attributes:
        path: The folder.
        store: The file of all trials.
        kernels: Compiled kernels.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Use a folder, the user's cache folder by default."""
        self.path = default_cache_folder() if folder is None else Path(folder)
        self.store = self.path / _TRIALS
        self.kernels = KernelCache(self.path / _KERNELS)
