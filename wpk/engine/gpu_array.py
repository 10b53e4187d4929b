"""An engine's own arrays on a GPU, which other libraries read without a copy."""

import weakref
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.device import (
    CUDA,
    LEGACY_STREAM,
    ForeignArray,
    Mark,
    StreamDevice,
    make_capsule,
)
from wpk.dtypes import DType
from wpk.errors import EngineError, LaunchError

_ALIGNMENT = 256


class GpuArray:
    """A dense array on a GPU; its memory is freed with the last reference to it.

    ``torch.from_dlpack(array)``, ``cupy.asarray(array)`` and the like use it without a copy, and wait
    for what writes it.

    Attributes:
        shape: Extents.
        dtype: NumPy's element type.
        address: The address of its first element, a multiple of 256.
        nbytes: Its size.
        description: What `wpk.device.arrays.read_array` would say of it.
    """

    def __init__(
        self, device: StreamDevice, shape: tuple[int, ...], dtype: DType, ready: Mark
    ) -> None:
        """Allocate.

        Args:
            device: Where.
            shape: Extents.
            dtype: Element type.
            ready: Lies behind what writes it, in the order of the streams.

        Raises:
            EngineError: There is not enough memory.
        """
        self.shape = shape
        self.dtype = dtype.numpy
        self.nbytes = prod(shape) * dtype.bytes
        self._device, self._kind, self._ready = device, dtype, ready
        self._stream = device.stream
        self.address = device.allocate(max(self.nbytes, _ALIGNMENT))
        self.description = ForeignArray(
            self.address, dtype.value, shape, None, device.ordinal, read_only=False
        )
        weakref.finalize(self, _release, device, self.address, ready)

    def described(self, stream: int, waited_for: Mark) -> ForeignArray:
        """Describe the array as `wpk.device.arrays.read_array` describes those of others.

        Args:
            stream: Handle of the stream that waits until it is written.
            waited_for: A mark that the stream waits for anyway.
        """
        if self._ready is not waited_for:
            self._ready.hold(stream)
        return self.description

    def written_on(self, stream: int) -> None:
        """Note the stream, by its handle, that the contents are written on."""
        self._stream = stream

    def write(self, array: NDArray[np.generic]) -> None:
        """Copy from the host, and wait for it.

        Raises:
            EngineError: Its shape or type is another.
        """
        if array.shape != self.shape or array.dtype != self.dtype:
            raise EngineError(
                f"{array.dtype}{list(array.shape)} does not fit {self}", fix="convert it first"
            )
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        with self._device.active():
            self._ready.wait()
            self._device.write(self.address, flat)
            self._device.settle()

    def numpy(self) -> NDArray[np.generic]:
        """A copy on the host, once it is written.

        Raises:
            LaunchError: What writes it failed.
        """
        with self._device.active():
            self._ready.wait()
            memory = self._device.read(self.address, self.nbytes)
        return memory.view(self.dtype).reshape(self.shape)

    def __repr__(self) -> str:
        """``fp32[2, 3] on NVIDIA H200 (sm_90)``."""
        return f"{self._kind}{list(self.shape)} on {self._device.name}"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface.

        Raises:
            AttributeError: It is of a type for which the interface has no name; DLPack has one.
        """
        if self._kind is DType.BF16 or self._kind.is_fp8:
            raise AttributeError(f"{self.dtype} has no __cuda_array_interface__; use DLPack")
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": self._stream or LEGACY_STREAM,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device on which it lies, in DLPack's numbers."""
        return CUDA, self._device.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the memory itself, of the unversioned protocol whatever is asked for.

        Args:
            stream: Where it will be used: that stream waits until it is written. None is the legacy
                default stream; -1 makes nothing wait.
            max_version: What the consumer understands.
            dl_device: Where it must lie.
            copy: Whether it must be a copy.

        Raises:
            BufferError: A copy or another device is asked for.
        """
        del max_version  # every consumer understands what is given
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"{self} is shared as it is, not copied")
        if stream != -1:
            with self._device.active():
                self._ready.hold(LEGACY_STREAM if stream is None else stream)
        return make_capsule(self.address, self._device.ordinal, self._kind, self.shape, self)


def _release(device: StreamDevice, address: int, ready: Mark) -> None:
    # A device that was closed has freed it; in one where a kernel failed nothing can be freed.
    with suppress(EngineError, LaunchError), device.active():
        ready.wait()
        device.free(address)
