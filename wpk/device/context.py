"""A GPU's primary context, current where and while it is needed, in any thread."""

import threading
from typing import Any, Self

from wpk.device.graph import bindings, checked
from wpk.device.packages import INSTALL_GPU_PACKAGES
from wpk.errors import EngineError

_DRIVER = "libcuda.so"
"""The driver's library, which pycuda loads."""

_retained: dict[int, Any] = {}
"""pycuda's object for the primary context of each GPU, kept until the process ends: released and taken
again it would lose what others in the process still hold."""


def retain(driver: Any, ordinal: int) -> Any:
    """A GPU's primary context, made current in this thread as the CUDA runtime would.

    It is not left on pycuda's own stack: a thread that ends with a context there takes the process
    with it.

    Args:
        driver: ``pycuda.driver``.
        ordinal: Number of the GPU.
    """
    if ordinal not in _retained:
        _retained[ordinal] = driver.Device(ordinal).retain_primary_context()
    context, raw = _retained[ordinal], bindings()
    checked("enter a GPU's context", raw.cuCtxSetCurrent(raw.CUcontext(context.handle)))
    return context


class CurrentContext:
    """Entered around calls: makes the context current in this thread, and keeps other threads out.

    One thread at a time, because work of another on the same stream would become part of a graph
    that is being captured.

    Attributes:
        handle: The driver's, of the context.
        is_open: Whether it can be entered.
        lock: Held while it is entered.
    """

    def __init__(self, driver: Any, context: Any, name: str) -> None:
        """Keep what `retain` gave of ``pycuda.driver``, for a GPU of this name."""
        self._pop = driver.Context.pop
        self._context = context
        self._name = name
        self.handle = int(context.handle)
        self.is_open = True
        self.lock = threading.RLock()

    def close(self) -> None:
        """Let nobody in any more."""
        with self.lock:
            self.is_open, self._context = False, None

    def __enter__(self) -> Self:
        """Make it current.

        Raises:
            EngineError: It was closed.
        """
        self.lock.acquire()
        try:
            if not self.is_open:
                raise EngineError(
                    f"{self._name} was closed", fix="open the device again, and load the plan on it"
                )
            self._context.push()
        except BaseException:
            self.lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Make current what was before."""
        try:
            self._pop()
        finally:
            self.lock.release()


class DriverContext:
    """As `CurrentContext`, for calls of cuda-bindings alone.

    pycuda needs the context on a stack of its own. The driver does not: where it is current already,
    as in the thread that opened the device and after any call of PyTorch's, nothing is changed.
    """

    def __init__(self, whole: CurrentContext) -> None:
        """Begin outside; ``whole`` is entered where the context is not current."""
        self._whole, self._lock = whole, whole.lock
        self._ask = bindings().cuCtxGetCurrent
        self._changed: list[bool] = []

    def __enter__(self) -> Self:
        """Make it current.

        Raises:
            EngineError: It was closed.
        """
        whole = self._whole
        self._lock.acquire()
        try:
            status, current = self._ask()
            change = not whole.is_open or bool(status) or int(current) != whole.handle
            if change:
                whole.__enter__()
            self._changed.append(change)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """Make current what was before."""
        try:
            if self._changed.pop():
                self._whole.__exit__()
        finally:
            self._lock.release()


def pycuda_driver() -> Any:
    """``pycuda.driver``.

    Raises:
        EngineError: It is not installed, or the driver is not.
    """
    try:
        import pycuda.driver
    except ImportError as error:
        if _DRIVER in str(error):
            raise EngineError(
                f"executing on a GPU needs an NVIDIA driver, and none was found: {error}",
                fix="install driver 580 or newer; or use --device cpu",
            ) from error
        raise EngineError(
            f"executing on a GPU needs pycuda, which cannot be imported: {error}",
            fix=f"{INSTALL_GPU_PACKAGES}; or use --device cpu",
        ) from error
    return pycuda.driver
