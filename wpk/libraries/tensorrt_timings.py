"""What TensorRT has timed, kept among wpk's caches, so that it is not timed again where a plan is loaded."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from wpk.build import default_cache_folder

_LOG = logging.getLogger(__name__)


class TimingFile:
    """TensorRT's timing cache of one version on one GPU, in the user's cache folder.

    It is read before each build and written behind it: a process that is ended loses nothing, and one beside it reads
    what this one timed.

    Attributes:
        path: Where it lies; nothing of it need exist yet.
    """

    def __init__(self, version: str, gpu: str) -> None:
        """Name the file."""
        name = "".join(each if each.isalnum() else "_" for each in gpu)
        self.path: Path = default_cache_folder() / f"tensorrt-{version}-{name}.timing"
        self._read = b""
        self._is_told = False

    def open(self, config: Any) -> None:
        """Give it to a build; TensorRT begins anew where it cannot read it."""
        try:
            self._read = self.path.read_bytes()
        except OSError:
            self._read = b""
        if not config.set_timing_cache(config.create_timing_cache(self._read), False):
            config.set_timing_cache(config.create_timing_cache(b""), False)

    def keep(self, config: Any) -> None:
        """Write what a build knows now; a folder that cannot be written is told of once, and costs time only."""
        data = bytes(config.get_timing_cache().serialize())
        if data == self._read:
            return
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            if not self._is_told:
                _LOG.warning("what TensorRT timed is not kept: %s: %s", self.path, error.strerror)
            self._is_told = True
