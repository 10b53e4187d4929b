"""What the emulator is as a device, in this process or another: it executes work when it is given it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from wpk.emulator.mode import Mode
from wpk.emulator.native import Statistics
from wpk.execution import (
    BoundCall,
    BoundLaunch,
    Device,
    Image,
    KernelImage,
    Libraries,
    LibraryImage,
    NoLibraries,
    OneByOne,
    Predecessors,
    Work,
)


class CpuDevice(ABC):
    """Executes sources of kernels, and calls the libraries that it is given.

    Attributes:
        name: What a report calls it.
        mode: Which checks every launch makes.
        statistics: What the last launch did; None before the first.
    """

    name = "cpu (emulator)"
    executes_source = True

    def __init__(self, mode: Mode, libraries: Libraries[Device] | None) -> None:
        """Check in a mode; call libraries besides kernels, none when not given."""
        self.mode = mode
        self.statistics: Statistics | None = None
        self._libraries: Libraries[Any] = libraries or NoLibraries()

    def load(self, image: Image) -> None:
        """Have a kernel compiled in the background; one that is loaded already costs nothing.

        Raises:
            EngineError: It is a library's, which cannot be called.
        """
        if isinstance(image, LibraryImage):
            self._libraries.load(image, self)
        else:
            self._load(image)

    def launch(self, work: Work) -> None:
        """Execute a kernel to its end, or call a library.

        Raises:
            EmulatorTimeoutError: It took longer than the time limit of the process, which is gone.
            EmulatorError: The kernel broke a rule, or crashed the process, or the launch cannot be
                executed here.
            CompileError: The kernel does not compile.
        """
        if isinstance(work, BoundCall):
            self._libraries.call(work, self)
        else:
            self._launch(work)

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        """Work to be executed together: one after the other, as it is given."""
        return OneByOne(self.launch, works)

    def synchronize(self) -> None:  # noqa: B027  # nothing is all there is to do
        """Nothing to wait for: a launch returns when its kernel has ended."""

    @abstractmethod
    def _load(self, image: KernelImage) -> None: ...

    @abstractmethod
    def _launch(self, launch: BoundLaunch) -> None: ...
