"""TensorRT's progress monitor, told on as wpk's progress."""

import threading
from typing import Any

from wpk.progress import Progress

STAGE = "TensorRT"


def new_monitor(module: Any, progress: Progress) -> Any:
    """A progress monitor (IProgressMonitor) that tells of the outermost phase.

    Nothing that ``progress`` raises, an interrupt included, may pass through TensorRT's own frames:
    it is kept, the build is cancelled at its next step, and ``raise_kept()`` raises it afterwards.

    Args:
        module: The binding's.
        progress: Told of the steps of the phases that lie in no other.
    """

    class Monitor(module.IProgressMonitor):  # type: ignore[misc]  # known at run time only
        """Counts steps of outermost phases; called from any of TensorRT's threads."""

        def __init__(self) -> None:
            module.IProgressMonitor.__init__(self)
            self._lock = threading.Lock()
            self._steps: dict[str, int] = {}
            self._kept: BaseException | None = None

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            if not parent:
                self._steps[phase] = steps
                self._tell(phase, 0)

        def step_complete(self, phase: str, step: int) -> bool:
            if phase in self._steps:
                self._tell(phase, step + 1)
            return self._kept is None

        def phase_finish(self, phase: str) -> None:
            if phase in self._steps:
                self._tell(phase, self._steps[phase])
                del self._steps[phase]

        def raise_kept(self) -> None:
            if self._kept is not None:
                raise self._kept

        def _tell(self, phase: str, done: int) -> None:
            with self._lock:
                if self._kept is not None:
                    return
                try:
                    total = self._steps[phase]
                    progress(f"{STAGE}: {phase}", min(done, total), total)
                except BaseException as error:  # see above
                    self._kept = error

    return Monitor()
