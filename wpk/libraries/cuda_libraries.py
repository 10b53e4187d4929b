"""The libraries that a GPU calls: they are loaded when they are first asked."""

from wpk.device import CudaDevice
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.libraries.offer import CUDNN, LibraryOffer
from wpk.problems import Problem


class CudaLibraries:
    """The libraries on one GPU, and what was made ready of them: a part of its `CudaDevice`."""

    def __init__(self) -> None:
        """Begin with nothing loaded."""
        self._cudnn: Cudnn | None = None
        self._ready: dict[str, CudnnCandidate] = {}

    def close(self) -> None:
        """Unload them; before the device is closed."""
        self._ready.clear()
        if self._cudnn is not None:
            self._cudnn.close()
            self._cudnn = None

    def offer(self, problem: Problem, device: CudaDevice) -> LibraryOffer:
        """Return what they propose for a problem; where none is installed, why."""
        try:
            cudnn = self._library(device)
        except EngineError as error:
            return LibraryOffer(CUDNN, "", (), (error.what,))
        offer = cudnn.offer(problem)
        configurations = dict.fromkeys(each.configuration for each in offer.candidates)
        return LibraryOffer(CUDNN, cudnn.version, tuple(configurations), offer.refusals)

    def load(self, image: LibraryImage, device: CudaDevice) -> int:
        """Make an implementation ready, once; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It is of another version than the one installed, or cannot be made ready.
        """
        if image.digest not in self._ready:
            self._ready[image.digest] = self._prepare(image, device)
        return self._ready[image.digest].workspace_bytes

    def call(self, call: BoundCall, device: CudaDevice) -> None:
        """Put an implementation that is ready on the device's stream.

        Raises:
            LaunchError: It is not ready, or cannot be started.
        """
        candidate = self._ready.get(call.image)
        if candidate is None:
            raise LaunchError(
                f"library call {call.image[:12]} is started but not loaded",
                fix="this is a bug in the code that loads a plan",
            )
        candidate.run(call.pointers, call.workspace, device.work_stream)

    def _prepare(self, image: LibraryImage, device: CudaDevice) -> CudnnCandidate:
        cudnn = self._library(device)
        if (image.library, image.version) != (CUDNN, cudnn.version):
            raise EngineError(
                f"a step calls {image.library} {image.version}, and {CUDNN} {cudnn.version} is "
                "installed",
                fix=f"install the version that was measured (nvidia-cudnn-cu13=={image.version}.*), "
                "or optimize the model again",
            )
        candidate = cudnn.candidate(image.problem, image.configuration)
        refusal = candidate.prepare()
        if refusal is not None:
            raise EngineError(
                f"{CUDNN} {cudnn.version} does not prepare {candidate.name} on "
                f"{device.name}: {refusal}",
                fix="optimize the model again on this GPU",
            )
        return candidate

    def _library(self, device: CudaDevice) -> Cudnn:
        if self._cudnn is None:
            self._cudnn = Cudnn(device)
        return self._cudnn
