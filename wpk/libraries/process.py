"""A GPU behind a process that knows libraries: what candidates are tried in."""

from typing import cast

from wpk.device.process import GpuProcess
from wpk.execution import LibraryImage
from wpk.libraries.offer import LibraryOffer
from wpk.problems import Problem

_PREPARE_SECONDS = 60.0
"""For a library to load, and to compile one implementation."""


class TrialProcess(GpuProcess):
    """As `GpuProcess`; libraries can be asked for what they offer, and be called."""

    _MODULE = "wpk.libraries.child"

    def offer(self, problem: Problem) -> LibraryOffer:
        """What libraries propose for a problem.

        Raises:
            LaunchError: The process is lost.
        """
        return cast("LibraryOffer", self._call("offer", problem, limit=_PREPARE_SECONDS))

    def prepare(self, image: LibraryImage) -> int:
        """Make an implementation ready; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It cannot be made ready here.
            LaunchError: The process is lost.
        """
        return cast("int", self._call("prepare", image, limit=_PREPARE_SECONDS))
