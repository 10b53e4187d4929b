"""The libraries that a GPU calls: each is loaded when it is first asked."""

from wpk.device import CudaDevice
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.libraries.library import LibraryCandidate, OpenLibrary
from wpk.libraries.offer import LibraryOffer
from wpk.libraries.registry import LIBRARIES
from wpk.problems import Problem


class CudaLibraries:
    """The libraries on one GPU, and what was made ready of them: a part of its `CudaDevice`."""

    def __init__(self) -> None:
        """Begin with nothing loaded."""
        self._open: dict[str, OpenLibrary] = {}
        self._ready: dict[str, LibraryCandidate] = {}

    def close(self) -> None:
        """Unload them; before the device is closed."""
        self._ready.clear()
        while self._open:
            self._open.popitem()[1].close()

    def offer(self, library: str, problem: Problem, device: CudaDevice) -> LibraryOffer:
        """Return what a library proposes for a problem; where it is not installed, why."""
        try:
            opened = self._library(library, device)
        except EngineError as error:
            return LibraryOffer(library, "", (), (error.what,))
        proposals = opened.offer(problem)
        configurations = dict.fromkeys(each.configuration for each in proposals.candidates)
        return LibraryOffer(library, opened.version, tuple(configurations), proposals.refusals)

    def load(self, image: LibraryImage, device: CudaDevice) -> int:
        """Make an implementation ready, once; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It is of another version than the one installed, or cannot be made ready.
        """
        known = self._ready.get(image.digest)
        if known is None:
            self._ready[image.digest] = self._prepare(image, device)
        else:
            known.add_step()
        return self._ready[image.digest].workspace_bytes

    def call(self, call: BoundCall, device: CudaDevice) -> None:
        """Put an implementation that is ready on the device's stream.

        Raises:
            LaunchError: It is not ready, asks for more scratch memory than there is, or cannot be started.
        """
        candidate = self._ready.get(call.image)
        if candidate is None:
            raise LaunchError(
                f"library call {call.image[:12]} is started but not loaded",
                fix="this is a bug in the code that loads a plan",
            )
        asked = candidate.workspace_bytes
        if asked > call.workspace_bytes:
            raise LaunchError(
                f"{candidate.name} asks for {asked} bytes of scratch memory, {call.workspace_bytes} were "
                "measured",
                fix="optimize the model again on this GPU",
            )
        candidate.run(call.pointers, call.workspace, device.work_stream)

    def _prepare(self, image: LibraryImage, device: CudaDevice) -> LibraryCandidate:
        name, opened = image.library, self._library(image.library, device)
        if image.version != opened.version:
            raise EngineError(
                f"a step calls {name} {image.version}, and {name} {opened.version} is installed",
                fix="install the version that was measured "
                f"({LIBRARIES[name].requirement(image.version)}), or optimize the model again",
            )
        candidate = opened.candidate(image.problem, image.configuration)
        refusal = candidate.prepare()
        if refusal is not None:
            raise EngineError(
                f"{name} {opened.version} does not prepare {candidate.name} on "
                f"{device.name}: {refusal}",
                fix="optimize the model again on this GPU",
            )
        return candidate

    def _library(self, name: str, device: CudaDevice) -> OpenLibrary:
        if name not in self._open:
            self._open[name] = LIBRARIES[name].open(device)
        return self._open[name]
