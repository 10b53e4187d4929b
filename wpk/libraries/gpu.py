"""A GPU with library calls."""

import weakref
from collections.abc import Iterable
from contextlib import AbstractContextManager

from wpk.device.cuda import CudaDevice
from wpk.device.graph import CudaGraph, CudaMark
from wpk.device.guarded import GuardedCudaDevice
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.libraries.offer import CUDNN, LibraryOffer
from wpk.problems import Problem


class Libraries:
    """The libraries on one GPU, loaded when they are first asked, and what was made ready of them."""

    def __init__(self, device: CudaDevice) -> None:
        """Begin with nothing loaded; the device is not kept alive."""
        self._device: CudaDevice = weakref.proxy(device)
        self._cudnn: Cudnn | None = None
        self._ready: dict[str, CudnnCandidate] = {}

    def close(self) -> None:
        """Unload them; before the device is closed."""
        self._ready.clear()
        if self._cudnn is not None:
            self._cudnn.close()
            self._cudnn = None

    def offer(self, problem: Problem) -> LibraryOffer:
        """What they propose for a problem; where none is installed, why."""
        try:
            cudnn = self._library()
        except EngineError as error:
            return LibraryOffer(CUDNN, "", (), (error.what,))
        offer = cudnn.offer(problem)
        configurations = dict.fromkeys(each.configuration for each in offer.candidates)
        return LibraryOffer(CUDNN, cudnn.version, tuple(configurations), offer.refusals)

    def load(self, image: LibraryImage) -> int:
        """Make an implementation ready, once; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It is of another version than the one installed, or cannot be made ready.
        """
        if image.digest not in self._ready:
            self._ready[image.digest] = self._prepare(image)
        return self._ready[image.digest].workspace_bytes

    def call(self, call: BoundCall) -> None:
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
        candidate.run(call.pointers, call.workspace, self._device.work_stream)

    def _prepare(self, image: LibraryImage) -> CudnnCandidate:
        cudnn = self._library()
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
                f"{self._device.name}: {refusal}",
                fix="optimize the model again on this GPU",
            )
        return candidate

    def _library(self) -> Cudnn:
        if self._cudnn is None:
            self._cudnn = Cudnn(self._device)
        return self._cudnn


class _CallsLibraries(CudaDevice):
    """What a GPU with libraries adds to one without."""

    def __init__(self, ordinal: int = 0) -> None:
        """See `CudaDevice`."""
        super().__init__(ordinal)
        self._libraries = Libraries(self)
        # Runs before the finalizer of `CudaDevice`, which is older; nobody may ever call `close`.
        self._unload = weakref.finalize(
            self, _unload, self._context, self._children, self._libraries
        )

    def close(self) -> None:
        """Unload the libraries, free all memory and leave the context."""
        try:
            self._unload()
        finally:
            super().close()

    def load_library(self, image: LibraryImage) -> None:
        """See `Libraries.load`."""
        self._libraries.load(image)

    def call_library(self, call: BoundCall) -> None:
        """See `Libraries.call`."""
        self._libraries.call(call)


class GpuDevice(_CallsLibraries):
    """A GPU that calls libraries too."""


class GuardedGpuDevice(_CallsLibraries, GuardedCudaDevice):
    """A GPU whose allocations lie between guards, and that can be asked what libraries offer."""

    def offer(self, problem: Problem) -> LibraryOffer:
        """See `Libraries.offer`."""
        return self._libraries.offer(problem)

    def prepare(self, image: LibraryImage) -> int:
        """See `Libraries.load`."""
        return self._libraries.load(image)


def _unload(
    context: AbstractContextManager[object],
    children: Iterable[CudaGraph | CudaMark],
    libraries: Libraries,
) -> None:
    """Let go of the graphs that a library's kernels were captured in, then of the libraries."""
    with context:
        for child in list(children):
            if isinstance(child, CudaGraph):
                child.close()
        libraries.close()
